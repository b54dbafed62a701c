"""`recollect serve`: the HTTP server, which prints its URL and what to try first."""

import asyncio
import gc
import logging
import shlex
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn

from recollect import logs
from recollect import settings as environment
from recollect.doors import telemetry_export
from recollect.doors.cli.coding_agents.background import answering_hooks
from recollect.doors.cli.printing import echo
from recollect.doors.cli.serving.workers import supervise
from recollect.doors.console import door as console_door
from recollect.doors.loopback import is_loopback
from recollect.doors.mcp import toolsets
from recollect.doors.mcp.authorization import Authorization
from recollect.doors.mcp.route import PATH, LoadedRoute, quiet_sdk
from recollect.doors.rest.app import create_app
from recollect.doors.rest.edge.server import configured
from recollect.engine import Engine
from recollect.errors import Misconfigured
from recollect.settings import Settings
from recollect.storage.opening import place


def run(host: str | None, port: int | None, workers: int, names: str | None, require_key: bool) -> None:
    """Serve until a signal stops it; requests in flight have a moment to finish."""
    chosen = toolsets.chosen(names)
    settings = environment.load()
    if require_key:
        settings = settings.model_copy(update={"require_key": True})
    logs.configure(settings.log_level, settings.log_format)
    telemetry_export.check()
    host = host or settings.host
    if not is_loopback(host) or workers > 1:
        # In this process and before anybody can connect: a failure is one sentence, and the schema is there in time.
        asyncio.run(_rehearse(settings, host))
    listener = _listen(host, settings.port if port is None else port)
    if workers == 1:
        asyncio.run(_serve(settings, listener, chosen, lambda: _announce(listener, settings)))
    else:
        supervise(workers, _work, (settings, listener, chosen), lambda: _announce(listener, settings))


def _work(settings: Settings, listener: socket.socket, chosen: tuple[str, ...], started: Callable[[], None]) -> None:
    logs.configure(settings.log_level, settings.log_format)
    asyncio.run(_serve(settings, listener, chosen, started))


async def _serve(
    settings: Settings, listener: socket.socket, chosen: tuple[str, ...], started: Callable[[], None]
) -> None:
    quiet_sdk(settings.log_level)
    sys.setswitchinterval(SWITCH_SECONDS)
    # Opened here, so that a failure is one sentence; closed by the application, so that a signal does not skip it.
    engine = await Engine.open(settings, will_search=True)
    mcp = LoadedRoute(engine, chosen)

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        async with telemetry_export.exporting(engine, scraped=True), mcp.running(), answering_hooks(engine):
            yield

    console, authorization = console_door.Console(engine), Authorization(engine)
    routes = [*mcp.routes, *authorization.routes, *console.routes]
    app = create_app(engine, routes, running, listener.getsockname()[0], console, authorization)

    def end_streams() -> None:
        engine.feed.end()
        mcp.end_streams()

    server = _AnnouncingServer(configured(app, settings), started, end_streams)
    try:
        await asyncio.sleep(0)  # a stop signal that came while all this was set up ends it here, without a traceback
    except asyncio.CancelledError:
        await engine.close()
        raise
    await server.serve(sockets=[listener])


async def _rehearse(settings: Settings, host: str) -> None:
    """Refuse a public address without keys: anyone who reaches it could read everything."""
    engine = await Engine.open(settings.model_copy(update={"indexer": False}))
    try:
        makes_keys = settings.sign_in_header is not None
        if not is_loopback(host) and not makes_keys and not await engine.access.has_keys():
            raise Misconfigured(
                f"Recollect does not bind to {host} without a key: anyone could read the memory. "
                "Create a key with `recollect keys create`, or bind to a loopback address such as 127.0.0.1."
            )
    finally:
        await engine.close()


class _AnnouncingServer(uvicorn.Server):
    """Announces itself once the database and the application are ready, and shuts down quietly."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None], end_streams: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce
        self._end_streams = end_streams
        logging.getLogger("uvicorn.error").addFilter(self._is_news)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            for listener in sockets or []:
                listener.listen(BACKLOG)  # the server below lets as few wait as it accepts at once
            # What is loaded by now stays: the collector need not look through it again for every few requests.
            gc.collect()
            gc.freeze()
            self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._end_streams()
        await super().shutdown(sockets)

    def _is_news(self, record: logging.LogRecord) -> bool:
        """Whether to log it: the SDK cuts its streams as soon as a signal arrives."""
        return not (self.should_exit and _CUT_STREAM in record.getMessage())


def _announce(listener: socket.socket, settings: Settings) -> None:
    host, port = listener.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    echo(f"Recollect is listening on {url}")
    if host in ANY_ADDRESS:
        url = f"http://127.0.0.1:{port}"
    echo(f"Try it:  curl {url}/health\nAPI:     {url}/docs")
    echo(f"MCP:     {url}{PATH}, for MCP clients")
    if settings.console:
        echo(f"Console: {url}{console_door.PATH}, for your browser")
    if settings.public_url is not None:
        echo(f"Sign-in: {settings.public_url}{PATH}, for remote MCP clients")
    if settings.audit != "off":
        echo(f"Audit:   {settings.audit}")
    echo(f"Data:    {place(settings)}")
    if settings.data_dir is not None and settings.database_url is None:
        echo(f"         In other terminals, first: export RECOLLECT_DATA_DIR={shlex.quote(place(settings))}")
    echo("Stop:    Ctrl-C")


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP: only then does asyncio send answers at once, instead of waiting 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as problem:
        listener.close()
        raise Misconfigured(
            f"Cannot listen on {host} port {port}: {problem.strerror}. "
            "Choose another with --port or RECOLLECT_PORT; 0 picks a free one."
        ) from problem
    return listener


_CUT_STREAM = "ASGI callable returned without completing response"

# How soon a busy thread yields to the event loop. Python's five milliseconds are too long for a request that waits
# for the loop a dozen times.
SWITCH_SECONDS = 0.001

# They stand for all addresses of this machine, and no client can connect to them.
ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - to be told apart, not to listen on

# Clients that connect at the same time wait here instead of being refused.
BACKLOG = 2048
