"""One background event loop a process, for callers that are not asynchronous."""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from recollect.engine import Engine

Result = TypeVar("Result")

CLOSE_SECONDS = 30


class BackgroundEngine:
    """An engine on an event loop in a daemon thread, opened on first use, after a close and after a fork."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)
        atexit.register(self.close)

    def _reset(self) -> None:
        """A forked child inherits neither the thread nor the connections of its parent."""
        self._lock = threading.Lock()
        self._opened: tuple[asyncio.AbstractEventLoop, Engine] | None = None
        self._calls: set[Future[Any]] = set()

    def call(self, work: Callable[[Engine], Coroutine[Any, Any, Result]]) -> Result:
        """Run one call on the background loop and wait for it."""
        with self._lock:
            loop, engine = self._opened = self._opened or self._open()
            future = asyncio.run_coroutine_threadsafe(work(engine), loop)
            self._calls.add(future)
        try:
            return future.result()
        finally:
            self._calls.discard(future)

    def close(self) -> None:
        """Let the calls under way finish, then let go of the database and stop the loop."""
        with self._lock:
            opened, self._opened = self._opened, None
            calls, self._calls = self._calls, set()
        if opened is not None:
            loop, engine = opened
            wait(set(calls), CLOSE_SECONDS)
            asyncio.run_coroutine_threadsafe(engine.close(), loop).result(CLOSE_SECONDS)
            loop.call_soon_threadsafe(loop.stop)

    @staticmethod
    def _open() -> tuple[asyncio.AbstractEventLoop, Engine]:
        loop = asyncio.new_event_loop()
        threading.Thread(target=_serve, args=(loop,), name="recollect", daemon=True).start()
        try:
            return loop, asyncio.run_coroutine_threadsafe(Engine.open(), loop).result()
        except BaseException:
            loop.call_soon_threadsafe(loop.stop)
            raise


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


background = BackgroundEngine()
