"""The LLM protocol over Anthropic's messages API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.errors import LimitReached, Unavailable
from recollect.inference.failures import ANTHROPIC
from recollect.inference.llm import most_tokens, one_try
from recollect.inference.requests.meter import Tokens

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import Message

    from recollect.inference.llm import Prompt
    from recollect.inference.requests.guard import Guard
    from recollect.inference.sdk import Sdk


class AnthropicWriter:
    """Asks one model of Anthropic."""

    def __init__(self, sdk: Sdk, guard: Guard, model: str) -> None:
        self.model_id = f"anthropic:{model}"
        self._sdk = sdk
        self._guard = guard
        self._model = model

    async def write(self, prompt: Prompt, seconds: float, schema: dict[str, Any] | None = None) -> str:
        options: dict[str, Any] = {"system": prompt.system} if prompt.system else {}
        if schema is not None:
            options["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        if prompt.temperature is not None:
            # The API takes it for models such as Haiku; the SDK has no parameter for it.
            options["extra_body"] = {"temperature": prompt.temperature}
        options["timeout"] = one_try(seconds)
        client = await self._sdk.client()
        most = most_tokens(prompt, schema)
        message = await self._guard.ask(
            prompt.namespace, prompt.feature, most, seconds, lambda: self._request(client, prompt, options)
        )
        if message.stop_reason in ("max_tokens", "model_context_window_exceeded"):
            raise LimitReached(f"The answer from {self.model_id} was cut off at {prompt.max_tokens:,} tokens")
        text = "".join(block.text for block in message.content if block.type == "text")
        if message.stop_reason == "refusal" or not text:
            raise Unavailable(f"{self.model_id} declined to answer")
        return text

    async def _request(self, client: AsyncAnthropic, prompt: Prompt, options: dict[str, Any]) -> tuple[Message, Tokens]:
        with self._sdk.translated():
            message = await client.messages.create(
                model=self._model,
                messages=[{"role": "user", "content": prompt.user}],
                max_tokens=prompt.max_tokens,
                **options,
            )
        # The SDK hands on whatever came, down to plain text.
        if getattr(message, "content", None) is None or getattr(message, "usage", None) is None:
            raise ANTHROPIC.unreadable()
        used = message.usage
        read = used.input_tokens + (used.cache_creation_input_tokens or 0) + (used.cache_read_input_tokens or 0)
        return message, Tokens(read, used.output_tokens)
