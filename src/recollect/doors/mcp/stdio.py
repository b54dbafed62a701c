"""Answers every line of standard input: the SDK skips those it cannot parse, and their client waits for ever."""

import json
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

NO_BATCHES = "Invalid request: MCP does not support batches; send each message on its own line"
NO_MESSAGE = "Invalid request: this is not a JSON-RPC 2.0 message"


class AnsweredLines:
    """A stream of the SDK's messages; what could not be read never comes out of it, for it is answered at once."""

    def __init__(self, lines: Any, answers: Any) -> None:
        self._lines = lines
        self._answers = answers

    @property
    def last_context(self) -> Any:
        """Where the SDK looks for the context of the last message."""
        return self._lines.last_context

    async def receive(self) -> SessionMessage:
        while isinstance(item := await self._lines.receive(), Exception):
            if (refused := refusal(item)) is not None:
                await self._answers.send(SessionMessage(refused))
        message: SessionMessage = item
        return message

    async def aclose(self) -> None:
        await self._lines.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def refusal(problem: Exception) -> JSONRPCError | None:
    """The answer to a line; None if it needs none: the line is blank, or it is an answer itself."""
    if not isinstance(problem, ValidationError):
        return _error(None, PARSE_ERROR, "Parse error: invalid line")
    errors = problem.errors(include_url=False)
    if errors[0]["type"] == "json_invalid":
        line = errors[0]["input"]
        if not line.strip():
            return None
        try:
            sent = json.loads(line)  # takes half a surrogate, so that its sender learns which request failed
        except (ValueError, RecursionError):
            sent = None
        return _error(sent, PARSE_ERROR, f"Parse error: {errors[0]['msg']}")
    # What misses a field is the message itself; the other errors may be of a part of it.
    sent = next((error["input"] for error in errors if error["type"] == "missing"), errors[0]["input"])
    if isinstance(sent, dict) and "method" not in sent and sent.keys() & {"result", "error"}:
        return None
    return _error(sent, INVALID_REQUEST, NO_BATCHES if isinstance(sent, list) else NO_MESSAGE)


def _error(sent: Any, code: int, sentence: str) -> JSONRPCError:
    given = sent.get("id") if isinstance(sent, dict) else None
    # Only an id that can be written back as it came; a half surrogate cannot.
    known = type(given) is int or (isinstance(given, str) and given.isprintable())
    return JSONRPCError(jsonrpc="2.0", id=given if known else None, error=ErrorData(code=code, message=sentence))
