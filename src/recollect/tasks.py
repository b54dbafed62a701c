"""Work that ends on request: background tasks, tasks beside a block, and threads that no one waits for.

A task is ended by cancelling it until it has ended. Once is not enough: what it runs may lose a cancellation, as
`asyncio.wait_for` of Python 3.11 does when its awaitable is done at that moment, and asyncio.run would wait for ever.
"""

import asyncio
import contextvars
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Executor, Future
from contextlib import asynccontextmanager
from functools import partial, wraps
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from recollect import origin

T = TypeVar("T")
P = ParamSpec("P")

# Long enough for a rollback; short enough that a lost cancellation is made good before anybody notices.
CANCEL_AGAIN_SECONDS = 0.25

# What other tasks may take for their own end before what they use is closed.
LAST_WORDS_SECONDS = 1.0

# As many as asyncio's own pool has on a small machine.
MAX_THREADS = 8


class BackgroundTask:
    """A task that works until it is stopped, or until asyncio.run cancels what is left at its end."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: asyncio.Task[None] | None = None
        self._guard: asyncio.Task[None] | None = None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin to work, for everybody: the rights of the caller who happens to start it do not matter."""
        with origin.own_work():
            self._work = asyncio.create_task(work, name=self._name)
        self._guard = asyncio.create_task(_see_to_its_end(self._work), name=f"{self._name}-guard")
        _adopt(self._work, self._guard)

    async def stop(self) -> None:
        """Return when it has ended; what it failed with, if it did, is no news any more."""
        if self._work is not None and self._guard is not None:
            await end(self._work, self._guard)


class ClosedAtTheEnd:
    """Closes at the end of asyncio.run what its user did not close: a task that waits to be cancelled."""

    def __init__(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._close = close
        self._task = asyncio.create_task(self._wait(), name="recollect-closing")
        _adopt(self._task)

    async def close(self) -> None:
        """Close now, which leaves nothing for the end."""
        close, self._close = self._close, _nothing
        await close()
        await end(self._task)

    async def _wait(self) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            if self._close is not _nothing:
                # The end of asyncio.run cancels the user's tasks too, and one may have something left to write.
                others = [task for task in asyncio.all_tasks() if task not in _ours]
                if others:
                    await asyncio.wait(others, timeout=LAST_WORDS_SECONDS)
                await self._close()
            raise


class Finisher:
    """Work that goes on to its end when its caller is cancelled."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work. A caller that is cancelled hears of that at once, and the work goes on."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await _outlasting(task)

    async def close(self, seconds: float) -> None:
        """Let the work end for so many seconds, then cancel it."""
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)
        await end(*self._running)


def to_its_end(call: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Let a write go on when its caller is cancelled, if the audit log is on: its line waits to learn what it stored.

    Without that, a client could hang up during the commit, and the line would not say what was stored.
    """

    @wraps(call)
    async def run(*values: P.args, **named: P.kwargs) -> T:
        touched = origin.current().touched
        if touched is None:
            return await call(*values, **named)
        task = asyncio.create_task(call(*values, **named))
        _adopt(task)
        touched.wait_for(task)
        return await _outlasting(task)

    return run


async def _outlasting(task: "asyncio.Task[T]") -> T:
    """The result of a task that is not cancelled with its caller."""
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # looked at, even if nobody is left
    await asyncio.wait([task])
    return task.result()


async def _nothing() -> None:
    """Nothing is left to close."""


async def end(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel tasks until all of them have ended."""
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=CANCEL_AGAIN_SECONDS)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # Python reports a failure that was never looked at


@asynccontextmanager
async def beside(*work: Coroutine[Any, Any, T]) -> "AsyncIterator[list[asyncio.Task[T]]]":
    """Tasks that run beside a block; when the block is left, however it is left, they have ended."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield tasks
    finally:
        await end(*tasks)


async def all_of(*work: Coroutine[Any, Any, T]) -> list[T]:
    """Run work concurrently and return the results. If one part fails, the others are cancelled first."""
    if len(work) == 1:
        return [await work[0]]
    async with beside(*work) as running:
        return list(await asyncio.gather(*running))


async def ended_within(seconds: float, work: Coroutine[Any, Any, object]) -> bool:
    """Whether work ended by itself in so many seconds; it is cancelled otherwise. Its failure is raised."""
    async with beside(work) as (task,):
        await asyncio.wait([task], timeout=seconds)
        if task.done():
            task.result()
            return True
    return False


async def set_within(seconds: float, event: asyncio.Event) -> bool:
    """Whether an event was set in so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


async def in_thread(work: Callable[P, T], *values: P.args, **named: P.kwargs) -> T:
    """The result of work in a thread. Unlike asyncio.to_thread, neither asyncio.run nor the process waits for its end.

    Not for native code that releases Python's lock: a process that ends under it may crash.
    """
    context = contextvars.copy_context()
    call = partial(context.run, work, *values, **named)
    return await asyncio.get_running_loop().run_in_executor(_threads, call)


async def _see_to_its_end(work: "asyncio.Task[None]") -> None:
    """Ends with the work. Cancelled, it waits for nothing but the work, so that it cannot lose a cancellation."""
    cancelled = False
    while not work.done():
        try:
            await asyncio.wait([work], timeout=CANCEL_AGAIN_SECONDS if cancelled else None)
        except asyncio.CancelledError:
            cancelled = True
        if cancelled:
            work.cancel()
    if cancelled:
        raise asyncio.CancelledError


# Held until they have ended: a loop knows its tasks by weak references, and one without other references would be
# collected as garbage before the end of asyncio.run could cancel it.
_ours: "set[asyncio.Task[Any]]" = set()


def _adopt(*tasks: "asyncio.Task[Any]") -> None:
    # Copied first: other threads have tasks of their own.
    _ours.difference_update([task for task in _ours.copy() if task.get_loop().is_closed()])
    _ours.update(tasks)
    for task in tasks:
        task.add_done_callback(_ours.discard)
        # A loop that is closed without cancelling its tasks is its owner's way to end, and no fault to report.
        task._log_destroy_pending = False  # type: ignore[attr-defined]


class _DaemonThreads(Executor):
    """Threads that end with the process: those of ThreadPoolExecutor are waited for."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        """A forked child has none of its parent's threads."""
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._starting = threading.Lock()
        self._started = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        future: Future[T] = Future()
        self._waiting.put((future, partial(fn, *args, **kwargs)))
        with self._starting:
            if not self._idle.acquire(blocking=False) and self._started < self._limit:
                threading.Thread(target=self._work, name=f"recollect-{self._started}", daemon=True).start()
                self._started += 1
        return future

    def _work(self) -> None:
        while True:
            future, work = self._waiting.get()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as problem:  # noqa: BLE001  # it is for the caller that waits for the result
                    future.set_exception(problem)
            # A thread that waits must not hold on to what it did last.
            del future, work
            self._idle.release()


_threads = _DaemonThreads(MAX_THREADS)
