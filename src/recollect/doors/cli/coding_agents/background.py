"""The process behind the hooks: the REST door on a socket that only its user can open, until nobody asks any more."""

import asyncio
import fcntl
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.types import Receive, Scope, Send

from recollect import logs, tasks
from recollect import settings as environment
from recollect.doors.rest.app import routes_app
from recollect.engine import Engine
from recollect.errors import RecollectError
from recollect.identifiers import uuid7
from recollect.origin import acting
from recollect.settings import Settings

_log = logging.getLogger("recollect.hooks")


def main() -> None:
    """`background SOCKET SECONDS`: serve on a socket of the working directory until nobody asks for so long."""
    path, idle_seconds = Path(sys.argv[1]), float(sys.argv[2])
    with _alone(path) as is_alone:
        if is_alone:
            settings = environment.load()
            logs.configure("WARNING", settings.log_format)
            try:
                asyncio.run(_serve(settings, path, idle_seconds))
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


async def _serve(settings: Settings, path: Path, idle_seconds: float) -> None:
    engine = await Engine.open(settings, will_search=True)
    try:
        with _listening(path) as listener:
            app = _Admitting(engine, settings.namespace)
            config = uvicorn.Config(app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False)
            server = uvicorn.Server(config)
            # A hook that finds the process may be the agent's last one: the terminal's signals are not for it.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            async with tasks.beside(_stop_when_idle(server, app, idle_seconds)):
                await server.serve(sockets=[listener])
    finally:
        await engine.close()


@contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    """A socket of which the name is there only while somebody listens, and only its user can open it."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        listener.listen(64)
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


async def _stop_when_idle(server: uvicorn.Server, app: "_Admitting", seconds: float) -> None:
    while await tasks.set_within(seconds, app.asked):
        app.asked.clear()
    server.should_exit = True


class _Admitting:
    """The routes without the gate before them: who can open the socket can read the data."""

    def __init__(self, engine: Engine, namespace: str) -> None:
        self._app = routes_app(engine)
        self._namespace = namespace
        self.asked = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.set()
        scope.setdefault("state", {}).update(namespace=self._namespace, request_id=str(uuid7()))
        with acting("rest"):
            await self._app(scope, receive, send)


if __name__ == "__main__":
    main()
