"""Anthropic's models through its official SDK."""

import contextlib
import json
from collections.abc import AsyncGenerator, Iterable
from typing import Any, cast

import anthropic
import httpx2
from anthropic.types import MessageParam, ToolParam

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

NAME = "Anthropic"
_REASONS: dict[str, Finish] = {
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


def open_provider(config: ProviderConfig) -> "AnthropicProvider":
    """The provider for a configuration."""
    return AnthropicProvider(config)


class AnthropicProvider:
    """Streams from the Messages API. The SDK repeats a request that failed before its answer began, never after."""

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._client = anthropic.AsyncAnthropic(
            api_key=config.api_key.reveal() if config.api_key else None, base_url=config.base_url
        )

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
        except anthropic.APITimeoutError:
            raise failures.late(NAME) from None
        except anthropic.APIConnectionError:
            raise failures.unreachable(NAME, str(self._client.base_url)) from None
        except anthropic.APIStatusError as problem:
            # An error that came in the midst of an answer has the answer's own status.
            if problem.status_code < httpx2.codes.BAD_REQUEST:
                raise failures.gave_up(NAME, problem.api_message, self._config.api_key) from None
            raise failures.refused(NAME, problem.status_code, problem.api_message, self._config.api_key) from None
        except httpx2.HTTPError:
            # The SDK passes on what happens to a connection once the answer has begun.
            raise failures.broke_off(NAME) from None
        except (anthropic.AnthropicError, ValueError, AttributeError):
            raise failures.unreadable(NAME) from None

    async def close(self) -> None:
        """Give connections back."""
        await self._client.close()

    async def _events(self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]) -> AsyncGenerator[Event, None]:
        response = await self._client.messages.create(
            model=self.model,
            max_tokens=self._config.max_tokens,
            system="\n\n".join(message.content for message in messages if message.role == "system"),
            messages=_conversation(messages),
            tools=[_tool(tool) for tool in tools],
            stream=True,
        )
        calls: dict[int, tuple[str, str, list[str]]] = {}
        reason: Finish | None = None
        kind = response.response.headers.get("Content-Type", "")
        began = False
        async with response as events:
            async for event in events:
                began = True
                match event.type:
                    case "content_block_start" if event.content_block.type == "tool_use":
                        calls[event.index] = (event.content_block.id, event.content_block.name, [])
                    case "content_block_delta":
                        if event.delta.type == "text_delta":
                            yield TextDelta(event.delta.text)
                        elif event.delta.type == "thinking_delta":
                            yield ReasoningDelta(event.delta.thinking)
                        elif event.delta.type == "input_json_delta" and event.index in calls:
                            calls[event.index][2].append(event.delta.partial_json)
                    case "content_block_stop" if event.index in calls:
                        call_id, name, pieces = calls.pop(event.index)
                        yield ToolCall(call_id, name, "".join(pieces) or "{}")
                    case "message_delta" if event.delta.stop_reason:
                        reason = _REASONS.get(event.delta.stop_reason, "stop")
                    case "message_stop" if reason:
                        yield Finished(reason)
                        return
        raise failures.ended(NAME, began, kind)


def _conversation(messages: Iterable[Message]) -> list[MessageParam]:
    """The conversation as content blocks; the results of one round of calls are one message."""
    turns: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "tool":
            if not results:
                turns.append({"role": "user", "content": results})
            results.append(
                {
                    "type": "tool_result",
                    "tool_use_id": message.tool_call_id,
                    "content": message.content,
                    "is_error": message.is_error,
                }
            )
            continue
        results = []
        if message.role != "system":
            text = [{"type": "text", "text": message.content}] if message.content else []
            uses = [
                {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call)}
                for call in message.tool_calls
            ]
            turns.append({"role": message.role, "content": text + uses})
    return cast(list[MessageParam], turns)


def _input(call: ToolCall) -> dict[str, Any]:
    """The arguments as they were read; a model that wrote no JSON object has been told so in the result."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _tool(tool: ToolSpec) -> ToolParam:
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
