"""The LLM protocol over OpenAI's chat completions API, or any compatible server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.errors import LimitReached, Unavailable
from recollect.inference.failures import OPENAI
from recollect.inference.llm import most_tokens, one_try
from recollect.inference.requests.meter import Tokens

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion

    from recollect.inference.llm import Prompt
    from recollect.inference.requests.guard import Guard
    from recollect.inference.sdk import Sdk


class OpenAiWriter:
    """Asks one model of OpenAI, or of a compatible server."""

    def __init__(self, sdk: Sdk, guard: Guard, model: str) -> None:
        self.model_id = f"openai:{model}"
        self._sdk = sdk
        self._guard = guard
        self._model = model

    async def write(self, prompt: Prompt, seconds: float, schema: dict[str, Any] | None = None) -> str:
        options: dict[str, Any] = {}
        if schema is not None:
            shape = {"name": "answer", "schema": schema, "strict": True}
            options["response_format"] = {"type": "json_schema", "json_schema": shape}
        if prompt.temperature is not None:
            options["temperature"] = prompt.temperature
        options["timeout"] = one_try(seconds)
        client = await self._sdk.client()
        most = most_tokens(prompt, schema)
        completion = await self._guard.ask(
            prompt.namespace, prompt.feature, most, seconds, lambda: self._request(client, prompt, options, most)
        )
        choice = completion.choices[0]
        if choice.finish_reason == "length":
            raise LimitReached(f"The answer from {self.model_id} was cut off at {prompt.max_tokens:,} tokens")
        if not choice.message.content:
            raise Unavailable(f"{self.model_id} declined to answer")
        return choice.message.content

    async def _request(
        self, client: AsyncOpenAI, prompt: Prompt, options: dict[str, Any], most: int
    ) -> tuple[ChatCompletion, Tokens]:
        said = (("system", prompt.system), ("user", prompt.user))
        with self._sdk.translated():
            completion = await client.chat.completions.create(
                model=self._model,
                messages=[{"role": role, "content": text} for role, text in said if text],  # type: ignore[misc]
                max_completion_tokens=prompt.max_tokens,
                **options,
            )
        # The SDK hands on whatever came, down to plain text.
        if not getattr(completion, "choices", None):
            raise OPENAI.unreadable()
        used = completion.usage
        if used is None:
            return completion, Tokens(most - prompt.max_tokens, prompt.max_tokens)
        return completion, Tokens(used.prompt_tokens, used.completion_tokens)
