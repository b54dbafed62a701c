"""One background event loop per process, for synchronous callers."""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from recollect.engine import Engine

Result = TypeVar("Result")

# For calls that other threads have under way: a user who closes waits for them, the end of a process does not.
CALLS_SECONDS = 30.0
CALLS_AT_EXIT_SECONDS = 0.5
CLOSE_SECONDS = 2.5


class BackgroundEngine:
    """An engine on an event loop in a daemon thread, opened on first use, after a close and after a fork."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)
        atexit.register(self._close, CALLS_AT_EXIT_SECONDS)

    def _reset(self) -> None:
        """A forked child inherits neither the thread nor the connections of its parent."""
        self._lock = threading.Lock()
        self._opened: _Opened | None = None
        self._calls: set[Future[Any]] = set()

    def call(self, work: Callable[[Engine], Coroutine[Any, Any, Result]]) -> Result:
        """Run one call on the background loop and wait for it."""
        with self._lock:
            opened = self._opened = self._opened or _Opened()
            future = asyncio.run_coroutine_threadsafe(work(opened.engine), opened.loop)
            self._calls.add(future)
        try:
            return future.result()
        finally:
            self._calls.discard(future)

    def close(self) -> None:
        """Let the calls under way finish, then let go of the database and stop the loop."""
        self._close(CALLS_SECONDS)

    def _close(self, patience: float) -> None:
        with self._lock:
            opened, self._opened = self._opened, None
            calls, self._calls = self._calls, set()
        if opened is not None:
            wait(calls, patience)
            opened.close()


class _Opened:
    """An engine, and the thread whose event loop it lives in."""

    def __init__(self) -> None:
        opening: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, Engine]] = Future()
        self._thread = threading.Thread(target=_serve, args=(opening,), name="recollect", daemon=True)
        try:
            self._thread.start()
            self.loop, self._stop, self.engine = opening.result()
        except BaseException:
            # Ctrl-C, perhaps: no one has the engine, so the thread closes it and ends.
            if not opening.cancel() and opening.exception() is None:
                loop, stop, _ = opening.result()
                loop.call_soon_threadsafe(stop.set)
            raise

    def close(self) -> None:
        """Close the engine and stop the loop. A thread that does not end in time ends with the process."""
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(CLOSE_SECONDS)


def _serve(opening: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, Engine]]") -> None:
    try:
        asyncio.run(_keep_open(opening))
    except BaseException as problem:
        if not opening.done():
            opening.set_exception(problem)
        elif not opening.cancelled():
            raise


async def _keep_open(opening: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, Engine]]") -> None:
    engine = await Engine.open()
    stop = asyncio.Event()
    try:
        if opening.set_running_or_notify_cancel():
            opening.set_result((asyncio.get_running_loop(), stop, engine))
            await stop.wait()
    finally:
        await engine.close()


background = BackgroundEngine()
