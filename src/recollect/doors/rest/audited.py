"""Audited: holds back each answer until its operation is in the audit log."""

import asyncio
from dataclasses import replace
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect import origin, telemetry
from recollect.doors.rest import problems
from recollect.engine import Engine
from recollect.errors import Unavailable
from recollect.flows.accounts.audit import outcome_of_status
from recollect.origin import Origin, Touched


class Audited:
    """ASGI middleware for REST and the console. MCP requests are recorded one by one in `doors/mcp/audited.py`."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self._app = app
        self._engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._engine.audit.is_on or origin.current().door == "mcp":
            await self._app(scope, receive, send)
            return
        with origin.touching() as touched:
            answer = _Answer(self._engine, scope, send, touched)
            try:
                await self._app(scope, receive, answer.send)
            except BaseException as problem:
                await answer.record_failed(problem)
                raise
        if answer.failure is None:
            return
        if origin.current().door == "console":
            raise answer.failure  # the gate has a page for it
        await problems.answer(answer.failure, scope["path"])(scope, receive, send)


class _Answer:
    """What a route sends, held back until its line is stored.

    Each part of a stream that shows something new has its own line. If a line cannot be stored, the stream breaks off.
    """

    def __init__(self, engine: Engine, scope: Scope, send: Send, touched: Touched) -> None:
        self._engine = engine
        self._scope = scope
        self._send = send
        self._touched = touched
        self._status = 0
        self._is_recorded = False
        self.failure: Unavailable | None = None

    async def send(self, message: Message) -> None:
        """Pass a message on once what it shows is in the log."""
        if self.failure is not None:
            return
        if message["type"] == "http.response.start":
            self._status = message["status"]
            if "content-length" in Headers(raw=message["headers"]):
                try:
                    await self._record()
                except Unavailable as problem:
                    self.failure = problem
                    return
        elif self._touched or not (self._is_recorded or message.get("more_body")):
            await self._record()
        await self._send(message)

    async def record_failed(self, problem: BaseException) -> None:
        """Record an operation that failed unexpectedly or was cut off, unless its line is stored."""
        # A stream is always cut off when the server stops; what it showed until then has its lines.
        is_ended_stream = isinstance(problem, asyncio.CancelledError) and self._status and not self._touched
        if not (self._is_recorded or is_ended_stream) and (line := self._line()) is not None:
            namespace, action, by = line
            await self._engine.audit.record_failed(namespace, action, problem, self._touched, by)

    async def _record(self) -> None:
        self._is_recorded = True
        if (line := self._line()) is not None:
            namespace, action, by = line
            outcome = outcome_of_status(self._status)
            await self._engine.audit.record(namespace, action, outcome, self._touched, by)

    def _line(self) -> tuple[str, str, Origin] | None:
        """The namespace, the action and the caller of the operation; None if it shows nothing of anybody's memory."""
        state: dict[str, Any] = self._scope.get("state", {})
        path = getattr(self._scope.get("route"), "path_format", None)
        # Gateway routes find the namespace in the body. A request without a route or a namespace shows nothing.
        if path is None or state.get("namespace") is None:
            return None
        by = origin.current()
        key_id = state.get("key_id", by.key_id)
        by = replace(by, author=state.get("author"), door=state.get("door", by.door), key_id=key_id)
        return state["namespace"], f"{telemetry.known_method(self._scope['method'])} {path}", by
