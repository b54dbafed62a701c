"""OpenAI's models, and every compatible chat completions server, through the official SDK."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any, cast

import openai
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam, ChatCompletionToolParam

from recollect.agent.config import ProviderConfig
from recollect.agent.messages import (
    Event,
    Finish,
    Finished,
    Message,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolSpec,
)
from recollect.agent.providers import failures

NAME = "OpenAI"
# Servers of one's own that take no key still want the header that the SDK insists on.
NO_KEY = "none"
_REASONS: dict[str, Finish] = {
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "content_filter": "refused",
}


def open_provider(config: ProviderConfig) -> "OpenAiProvider":
    """The provider for a configuration."""
    return OpenAiProvider(config)


class OpenAiProvider:
    """Streams from a chat completions endpoint, at any address."""

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._client = openai.AsyncOpenAI(
            api_key=config.api_key.reveal() if config.api_key else NO_KEY, base_url=config.base_url
        )
        # The old name of the limit is the one that other servers know; OpenAI's newer models refuse it.
        self._limit = "max_tokens" if config.base_url else "max_completion_tokens"

    @property
    def model(self) -> str:
        """The model that answers."""
        return self._config.model or ""

    async def stream(self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]) -> AsyncGenerator[Event, None]:
        """One answer, as it comes. The SDK's errors hold the request, and with it the key: they go no further."""
        try:
            async with contextlib.aclosing(self._events(messages, tools)) as events:
                async for event in events:
                    yield event
        except openai.APITimeoutError:
            raise failures.late(NAME) from None
        except openai.APIConnectionError:
            # The SDK has one error for both: without an answer begun, there is nothing that could break off.
            raise failures.unreachable(NAME, str(self._client.base_url)) from None
        except openai.APIStatusError as problem:
            told = problem.body.get("message") if isinstance(problem.body, dict) else None
            said = told if isinstance(told, str) else None
            raise failures.refused(NAME, problem.status_code, said, self._config.api_key) from None
        except openai.APIError as problem:
            raise failures.gave_up(NAME, problem.message, self._config.api_key) from None
        except (openai.OpenAIError, ValueError, AttributeError, TypeError):
            raise failures.unreadable(NAME) from None

    async def close(self) -> None:
        """Give connections back."""
        await self._client.close()

    async def _events(self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]) -> AsyncGenerator[Event, None]:
        functions = [
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)} for tool in tools
        ]
        specs = [cast(ChatCompletionToolParam, {"type": "function", "function": each}) for each in functions]
        response = await self._client.chat.completions.create(
            model=self.model,
            messages=[_message(message) for message in messages],
            tools=specs or openai.omit,
            stream=True,
            extra_body={self._limit: self._config.max_tokens},
        )
        answer = _Answer()
        kind = response.response.headers.get("Content-Type", "")
        async with response as chunks:
            try:
                async for chunk in chunks:
                    for event in answer.read(chunk):
                        yield event
            except openai.APIConnectionError:
                raise failures.broke_off(NAME) from None
        if answer.reason is None:
            raise failures.ended(NAME, answer.began, kind)
        for call in answer.calls():
            yield call
        yield Finished(answer.reason)


class _Answer:
    """Puts the pieces of a stream together: calls come in fragments, by their index."""

    def __init__(self) -> None:
        self._calls: dict[int, dict[str, str]] = {}
        self.reason: Finish | None = None
        self.began = False

    def read(self, chunk: ChatCompletionChunk) -> list[Event]:
        """The text of a chunk; its fragments of calls are kept for the end."""
        events: list[Event] = []
        self.began = True
        for choice in chunk.choices[:1]:
            delta = choice.delta
            if thought := (delta.model_extra or {}).get("reasoning_content"):
                events.append(ReasoningDelta(str(thought)))
            events += [TextDelta(text) for text in (delta.content, delta.refusal) if text]
            for piece in delta.tool_calls or ():
                call = self._calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                call["id"] = piece.id or call["id"]
                if piece.function:
                    call["name"] = piece.function.name or call["name"]
                    call["arguments"] += piece.function.arguments or ""
            if choice.finish_reason:
                self.reason = _REASONS.get(choice.finish_reason, "stop")
        return events

    def calls(self) -> list[ToolCall]:
        """The whole calls, in order."""
        return [
            ToolCall(call["id"] or f"call_{index}", call["name"], call["arguments"] or "{}")
            for index, call in sorted(self._calls.items())
        ]


def _message(message: Message) -> ChatCompletionMessageParam:
    fields: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        fields["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        fields["tool_call_id"] = message.tool_call_id
    return cast(ChatCompletionMessageParam, fields)
