"""MCP at `/mcp` of an HTTP server, loaded during the first requests: its SDK loads as slowly as all the rest."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect import forks, tasks
from recollect.engine import Engine

if TYPE_CHECKING:
    from recollect.doors.mcp.server import RecollectServer

PATH = "/mcp"

_log = logging.getLogger("recollect.mcp")


def quiet_sdk(level: str) -> None:
    """The SDK tells at INFO of every request that ends, which belongs to DEBUG."""
    logging.getLogger("mcp").setLevel("INFO" if level == "DEBUG" else "WARNING")


class LoadedRoute:
    """An ASGI application whose first requests wait until the SDK is imported."""

    def __init__(self, engine: Engine, names: Sequence[str]) -> None:
        self._engine = engine
        self._names = names
        self._app: asyncio.Future[ASGIApp] = asyncio.get_running_loop().create_future()
        self._endless: set[asyncio.Task[Any]] = set()
        self._is_stopping = False

    @property
    def routes(self) -> list[BaseRoute]:
        return [Route(PATH, self)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Load it and serve it. On the way out an import under way is waited for: a process must not end inside it."""
        stop = asyncio.Event()
        async with tasks.beside(self._serve(stop)) as (serving,):
            try:
                yield
            finally:
                stop.set()
                await asyncio.wait([serving])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = asyncio.current_task()
        assert request is not None
        self._endless.add(request)
        # It passed the gate while the server began to stop.
        if self._is_stopping and (scope["method"] == "GET" or not self._app.done()):
            request.cancel()
        try:
            app = await asyncio.shield(self._app)
            if scope["method"] != "GET":
                self._endless.discard(request)
            await app(scope, receive, send)
        finally:
            self._endless.discard(request)

    def end_streams(self) -> None:
        """Cancel what would outlast a shutdown: streams that clients listen to, and requests that wait for the SDK."""
        self._is_stopping = True
        for request in self._endless:
            request.cancel()

    async def _serve(self, stop: asyncio.Event) -> None:
        try:
            server = await tasks.in_thread(self._load)
            from recollect.doors.mcp.server import http_routes

            routes = Router(http_routes(server))
            async with server.session_manager.run():
                self._app.set_result(routes)
                gc.freeze()  # as at the start of the server: what is loaded stays
                await stop.wait()
        except Exception as problem:
            # Callers must hear of it: a future that is never set would keep them waiting for ever.
            if not self._app.done():
                _log.exception("MCP could not be loaded")
                self._app.set_exception(problem)
            raise

    def _load(self) -> "RecollectServer":
        with forks.importing():
            from recollect.doors.mcp.server import RecollectServer

            return RecollectServer(self._engine, self._names)
