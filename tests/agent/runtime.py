"""A whole runtime around the two fakes that the contract allows: a scripted model and the gateway's transport."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from recollect.agent.config import load_config
from recollect.agent.loader import EngineLoader, EngineLoadResult
from recollect.agent.messages import Event, Finished, Message, TextDelta, ToolCall, ToolSpec
from tests.agent.configs import hybrid, written

RECALLED = "The parrot is called Coco."
MODES: dict[str, dict[str, Any]] = {"curated": {"memory": {"mode": "curated"}}, "hybrid": hybrid(), "implicit": {}}

Reply = list[Event] | Exception
Handler = Callable[[httpx.Request], httpx.Response] | Callable[[httpx.Request], Coroutine[None, None, httpx.Response]]


class ScriptedProvider:
    """Answers from a script, and keeps what it was shown."""

    model = "scripted"

    def __init__(self, *replies: Reply, journal: list[str] | None = None) -> None:
        self._replies = list(replies)
        self._journal = journal if journal is not None else []
        self.seen: list[tuple[Message, ...]] = []
        self.tools: list[tuple[ToolSpec, ...]] = []

    async def stream(self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]) -> AsyncGenerator[Event, None]:
        self.seen.append(messages)
        self.tools.append(tools)
        self._journal.append("provider asked")
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        for event in reply:
            yield event
        self._journal.append("provider answered")

    async def close(self) -> None:
        self._journal.append("provider closed")


class FakeGateway:
    """Keeps every request; answers as told, for each operation."""

    def __init__(
        self,
        journal: list[str] | None = None,
        results: list[Any] | None = None,
        failing: Mapping[str, int] | None = None,
    ) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._journal = journal if journal is not None else []
        self._results = [{"id": "1", "text": RECALLED, "score": 0.9, "raw": {"x": 1}}] if results is None else results
        self._failing = failing or {}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        operation = request.url.path.removeprefix("/memories/")
        self.requests.append((operation, json.loads(request.content)))
        self._journal.append(operation)
        status = self._failing.get(operation, 200)
        if status == 0:
            raise httpx.ConnectError("no route", request=request)
        return httpx.Response(status, json={"results": self._results} if status == 200 else {"detail": "no"})

    def named(self, operation: str) -> list[dict[str, Any]]:
        return [body for name, body in self.requests if name == operation]


@asynccontextmanager
async def running(
    folder: Path, provider: ScriptedProvider, gateway: Handler, mode: str = "hybrid"
) -> AsyncIterator[EngineLoadResult]:
    """The runtime that the loader makes of a configuration file."""
    config = load_config(written(folder, MODES[mode]))
    runtime = EngineLoader(config, provider=provider, gateway_transport=httpx.MockTransport(gateway)).load()
    yield runtime
    await runtime.close()


def says(text: str) -> Reply:
    return [TextDelta(text), Finished("stop")]


def calls(name: str, text: str = "", **arguments: Any) -> Reply:
    said: list[Event] = [TextDelta(text)] if text else []
    return [*said, ToolCall("call-1", name, json.dumps(arguments)), Finished("tools")]


def system_prompt(messages: tuple[Message, ...]) -> str:
    return "\n".join(message.content for message in messages if message.role == "system")


def lines(folder: Path, session_id: str) -> list[dict[str, Any]]:
    """The events of a session as they stand in its file."""
    return [json.loads(line) for line in (folder / "sessions" / f"{session_id}.jsonl").read_text().splitlines()]
