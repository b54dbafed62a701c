"""The whole HTTP application on a real socket, for tests."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
import uvicorn

from recollect.doors.console.door import Console
from recollect.doors.mcp import toolsets
from recollect.doors.mcp.authorization import Authorization
from recollect.doors.mcp.server import RecollectServer, http_routes
from recollect.doors.rest.app import create_app
from recollect.doors.rest.edge.server import configured
from recollect.engine import Engine

# Nothing here speaks TLS, and a client that reads all certificates of the system takes as long as a short test.
_WITHOUT_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class _Server(uvicorn.Server):
    """One that leaves signals to the test runner, and tells when it serves."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@asynccontextmanager
async def listening(engine: Engine, host: str = "127.0.0.1", tools: Sequence[str] = toolsets.ALL) -> AsyncIterator[str]:
    """The address of a server over an engine; `host` is what it believes to be bound to.

    The engine is closed when the server stops, as in `recollect serve`.
    """
    mcp = RecollectServer(engine, tools)
    console, authorization = Console(engine), Authorization(engine)
    routes = [*http_routes(mcp), *authorization.routes, *console.routes]
    app = create_app(engine, routes, mcp.session_manager.run, host, console, authorization)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(512)
        server = _Server(configured(app, engine.settings))
        serving = asyncio.create_task(server._serve([listener]))
        ready = asyncio.create_task(server.ready.wait())
        try:
            await asyncio.wait({serving, ready}, return_when=asyncio.FIRST_COMPLETED)
            assert server.started, "the server did not start"
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            ready.cancel()
            await serving


@asynccontextmanager
async def serving(engine: Engine, host: str = "127.0.0.1", **options: object) -> AsyncIterator[httpx.AsyncClient]:
    """A client of such a server; options are httpx's, `headers` for example."""
    async with (
        listening(engine, host) as url,
        httpx.AsyncClient(
            base_url=url,
            timeout=60,
            verify=_WITHOUT_CERTIFICATES,
            **options,  # type: ignore[arg-type]
        ) as client,
    ):
        yield client
