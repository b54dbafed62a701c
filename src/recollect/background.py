"""An event loop in a background thread that holds something open, for synchronous callers and for several loops."""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from recollect import tasks

Held = TypeVar("Held")
Result = TypeVar("Result")

# For calls that other threads have under way: a user who closes waits for them, the end of a process does not.
CALLS_SECONDS = 30.0
CALLS_AT_EXIT_SECONDS = 0.5
CLOSE_SECONDS = 2.5


class Background(Generic[Held]):
    """Opened on an event loop in a daemon thread on first use, after a close and after a fork."""

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[Held]]) -> None:
        self._opening = opening
        self.reset()
        _all.add(self)

    def reset(self) -> None:
        """A forked child inherits neither the thread nor the connections of its parent."""
        self._lock = threading.Lock()
        self._opened: _Opened[Held] | None = None
        self._calls: set[Future[Any]] = set()

    def call(self, work: Callable[[Held], Coroutine[Any, Any, Result]]) -> Result:
        """Run one call on the background loop and wait for it."""
        future = self._begin(work)
        try:
            return future.result()
        finally:
            self._calls.discard(future)

    async def call_async(self, work: Callable[[Held], Coroutine[Any, Any, Result]]) -> Result:
        """The same for a caller on another event loop, which goes on meanwhile."""
        opened = self._opened is not None
        future = self._begin(work) if opened else await tasks.in_thread(self._begin, work)
        try:
            return await asyncio.wrap_future(future)
        finally:
            self._calls.discard(future)

    def _begin(self, work: Callable[[Held], Coroutine[Any, Any, Result]]) -> "Future[Result]":
        with self._lock:
            opened = self._opened = self._opened or _Opened(self._opening)
            future = asyncio.run_coroutine_threadsafe(work(opened.held), opened.loop)
            self._calls.add(future)
        return future

    def close(self, patience: float = CALLS_SECONDS) -> None:
        """Let the calls under way finish, then let go of what is held and stop the loop."""
        with self._lock:
            opened, self._opened = self._opened, None
            calls, self._calls = self._calls, set()
        if opened is not None:
            wait(calls, patience)
            opened.close()


_all: "WeakSet[Background[Any]]" = WeakSet()


def reset_all() -> None:
    """What a forked child does first."""
    for background in list(_all):
        background.reset()


def close_all() -> None:
    """What a process does last."""
    for background in list(_all):
        background.close(CALLS_AT_EXIT_SECONDS)


os.register_at_fork(after_in_child=reset_all)
atexit.register(close_all)


class _Opened(Generic[Held]):
    """What is held, and the thread whose event loop it lives in."""

    def __init__(self, open_held: Callable[[], AbstractAsyncContextManager[Held]]) -> None:
        opening: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, Held]] = Future()
        self._thread = threading.Thread(target=_serve, args=(open_held, opening), name="recollect", daemon=True)
        try:
            self._thread.start()
            self.loop, self._stop, self.held = opening.result()
        except BaseException:
            # Ctrl-C, perhaps: no one has what was opened, so the thread closes it and ends.
            if not opening.cancel() and opening.exception() is None:
                loop, stop, _ = opening.result()
                loop.call_soon_threadsafe(stop.set)
            raise

    def close(self) -> None:
        """Close what is held and stop the loop. A thread that does not end in time ends with the process."""
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(CLOSE_SECONDS)


def _serve(
    open_held: Callable[[], AbstractAsyncContextManager[Held]],
    opening: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, Held]]",
) -> None:
    async def keep_open() -> None:
        async with open_held() as held:
            if opening.set_running_or_notify_cancel():
                stop = asyncio.Event()
                opening.set_result((asyncio.get_running_loop(), stop, held))
                await stop.wait()

    try:
        asyncio.run(keep_open())
    except BaseException as problem:
        if not opening.done():
            opening.set_exception(problem)
        elif not opening.cancelled():
            raise
