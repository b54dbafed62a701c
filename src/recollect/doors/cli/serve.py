"""`recollect serve`: the HTTP server, which says where it listens and what to try first."""

import asyncio
import socket
import sys

import click
import uvicorn

from recollect import logs
from recollect import settings as environment
from recollect.doors.cli.loopback import is_loopback
from recollect.doors.mcp import toolsets
from recollect.doors.mcp.server import PATH, RecollectServer, http_routes, quiet_sdk
from recollect.doors.rest.app import create_app
from recollect.engine import Engine
from recollect.errors import Misconfigured
from recollect.settings import Settings


def run(host: str | None, port: int | None, names: str | None) -> None:
    """Serve until a signal stops it; requests in flight finish first."""
    chosen = toolsets.chosen(names)
    settings = environment.load()
    logs.configure(settings.log_level, settings.log_format)
    quiet_sdk(settings.log_level)
    asyncio.run(_serve(settings, _listen(host or settings.host, settings.port if port is None else port), chosen))


async def _serve(settings: Settings, listener: socket.socket, chosen: tuple[str, ...]) -> None:
    # Opened here, so that a failure is one sentence; closed by the application, so that a signal does not skip it.
    engine = await Engine.open(settings)
    mcp = RecollectServer(engine, chosen)
    app = create_app(engine, http_routes(mcp, listener.getsockname()[0]), mcp.session_manager.run)
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on")
    await _AnnouncingServer(config, _url(listener)).serve(sockets=[listener])


class _AnnouncingServer(uvicorn.Server):
    """Prints the address once the database and the application are ready, not before."""

    def __init__(self, config: uvicorn.Config, url: str) -> None:
        super().__init__(config)
        self._url = url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            click.echo(
                f"Recollect listens on {self._url}\nTry it:  curl {self._url}/health\n"
                f"MCP:     {self._url}{PATH}\nStop it: Ctrl-C"
            )
            sys.stdout.flush()


def _listen(host: str, port: int) -> socket.socket:
    if not is_loopback(host):
        raise Misconfigured(
            f"Recollect does not bind to {host}: without access keys only loopback addresses are safe. Use 127.0.0.1."
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as problem:
        listener.close()
        raise Misconfigured(
            f"Cannot listen on {host} port {port}: {problem.strerror}. "
            "Choose another with --port or RECOLLECT_PORT; 0 takes a free one."
        ) from problem
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
