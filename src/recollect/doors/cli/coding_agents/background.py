"""The process behind the hooks: the REST door on a socket that only its user can open, until nobody asks any more."""

import asyncio
import fcntl
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from recollect import logs, tasks
from recollect import settings as environment
from recollect.doors.cli.coding_agents.record import home, socket_name
from recollect.doors.rest.app import routes_app
from recollect.engine import Engine
from recollect.errors import RecollectError
from recollect.identifiers import uuid7
from recollect.origin import acting
from recollect.settings import Settings

# Of a socket, in bytes, on any system.
LONGEST_PATH = 100

_log = logging.getLogger("recollect.hooks")


def main() -> None:
    """`background SOCKET SECONDS`: serve on a socket of the working directory until nobody asks for so long."""
    path, idle_seconds = Path(sys.argv[1]), float(sys.argv[2])
    with _alone(path) as is_alone:
        if is_alone:
            settings = environment.load()
            logs.configure("WARNING", settings.log_format)
            try:
                asyncio.run(serve(settings, path, idle_seconds))
            except RecollectError as problem:
                _log.error("the hooks have no memory: %s", problem)
                sys.exit(1)


@contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Whether no other process serves this socket; the operating system lets go of the lock if this one dies."""
    with path.with_suffix(".lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        lock.truncate(0)
        lock.write(str(os.getpid()))  # for `recollect install --check`
        lock.flush()
        yield True


async def serve(settings: Settings, path: Path, idle_seconds: float) -> None:
    """Open the memory, and answer on a socket until a signal or idleness ends it."""
    engine = await Engine.open(settings, will_search=True)
    listener = _listening(path)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        """Ends what was begun here: the server hands a signal on as soon as it has stopped."""
        try:
            async with tasks.beside(app.stop_when_idle(server, idle_seconds)):
                yield
        finally:
            await tasks.in_thread(path.unlink, True)
            await engine.close()

    app = _Admitting(routes_app(engine, lifespan=lifespan), settings.namespace)
    config = uvicorn.Config(app, http="h11", ws="none", lifespan="on", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    # The terminal that an agent ran in is closed: other agents may still ask.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    await server.serve(sockets=[listener])


@asynccontextmanager
async def answering_hooks(engine: Engine) -> AsyncIterator[None]:
    """Answer the hooks of this user in a process that has the memory open anyway, unless another does."""
    settings = engine.settings
    path = home() / socket_name(settings, settings.namespace)
    if settings.database_url is not None or not path.parent.is_dir() or len(os.fsencode(path)) > LONGEST_PATH:
        yield
        return
    with _alone(path) as is_alone:
        if not is_alone:
            yield
            return
        app = _Admitting(routes_app(engine), settings.namespace)
        config = uvicorn.Config(app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False)
        config.load()
        state = ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_unix_server(
            lambda: H11Protocol(config=config, server_state=state, app_state={}), sock=_listening(path)
        )
        try:
            yield
        finally:
            await tasks.in_thread(path.unlink, True)
            server.close()


def _listening(path: Path) -> socket.socket:
    """A socket that only its user can open."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    listener.listen(64)
    return listener


class _Admitting:
    """The routes without the gate before them: who can open the socket can read the data."""

    def __init__(self, app: FastAPI, namespace: str) -> None:
        self._app = app
        self._namespace = namespace
        self._asked = asyncio.Event()

    async def stop_when_idle(self, server: uvicorn.Server, seconds: float) -> None:
        """Stop a server that nobody has asked anything for so long."""
        while await tasks.set_within(seconds, self._asked):
            self._asked.clear()
        server.should_exit = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        self._asked.set()
        scope.setdefault("state", {}).update(namespace=self._namespace, request_id=str(uuid7()))
        with acting("rest"):
            await self._app(scope, receive, send)


if __name__ == "__main__":
    main()
