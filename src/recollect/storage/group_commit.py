"""Group commit: writes that arrive at the same time share one transaction, and each caller gets its own result."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from recollect import origin, tasks
from recollect.errors import Conflict, Invalid, LimitReached, RecollectError, Unavailable

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_ITEMS = 256
MAX_BYTES = 4 * 1024 * 1024

# While one batch is with the database, the next one is made ready; callers that wait are shared out among them.
CONCURRENT_BATCHES = 2
MIN_SHARE = 8

# Longer than a queue of thousands takes; a database that hangs must not keep the process.
CLOSE_SECONDS = 1.0

# The database rolled back because of one item's data: the others may go again without it.
_ONE_ITEMS_FAULT = (Invalid, Conflict, LimitReached)


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[Item, Result]):
    item: Item
    size: int
    answer: "asyncio.Future[Result]"


@dataclass(slots=True)
class _Queue(Generic[Item, Result]):
    waiting: "deque[_Waiting[Item, Result]]" = field(default_factory=deque)
    drains: int = 0


class GroupCommit(Generic[Item, Result]):
    """One queue a namespace: while batches commit, the next one gathers.

    `write` commits a batch and returns, for each item in order, its result or the error that is its alone.
    """

    def __init__(self, write: Callable[[str, Sequence[Item]], Awaitable[Sequence[Result | RecollectError]]]) -> None:
        self._write = write
        self._queues: dict[str, _Queue[Item, Result]] = {}
        self._drains: set[asyncio.Task[None]] = set()
        self._closed = False

    async def submit(self, namespace: str, item: Item, size: int) -> Result:
        """Write one item of about `size` bytes; returns after the commit that holds it."""
        origin.require("write", namespace)
        origin.require_no_limits()  # what is written below is written without any
        if self._closed:
            raise Unavailable("The engine is closed: open a new one")
        waiting: _Waiting[Item, Result] = _Waiting(item, size, asyncio.get_running_loop().create_future())
        queue = self._queues.setdefault(namespace, _Queue())
        queue.waiting.append(waiting)
        if queue.drains < CONCURRENT_BATCHES:
            queue.drains += 1
            with origin.own_work():  # it writes what others bring, too
                drain = asyncio.create_task(self._drain(namespace, queue))  # noqa: TID251  # close ends it
            self._drains.add(drain)
            drain.add_done_callback(self._drains.discard)
        return await waiting.answer

    async def close(self) -> None:
        """Finish what was accepted, then refuse; what takes too long fails its callers."""
        self._closed = True
        if self._drains:
            await asyncio.wait(self._drains, timeout=CLOSE_SECONDS)
        await tasks.end(*self._drains)

    async def _drain(self, namespace: str, queue: "_Queue[Item, Result]") -> None:
        try:
            while batch := _next_batch(queue.waiting):
                await self._commit(namespace, batch)
        finally:
            queue.drains -= 1
            if queue.drains == 0:
                del self._queues[namespace]
                for waiting in queue.waiting:
                    _answer(waiting, Unavailable("The write was interrupted before it was stored: try again"))

    async def _commit(self, namespace: str, batch: list[_Waiting[Item, Result]]) -> None:
        try:
            answers = await self._write(namespace, [waiting.item for waiting in batch])
        except RecollectError as problem:
            if len(batch) > 1 and isinstance(problem, _ONE_ITEMS_FAULT):
                await self._commit_each(namespace, batch)
                return
            answers = [problem] * len(batch)
        except asyncio.CancelledError:
            _give_up(batch)
            raise
        except BaseException as problem:
            # A fault of ours must reach the callers too, who would otherwise wait for ever.
            for waiting in batch:
                _answer(waiting, problem)
            raise
        for waiting, answer in zip(batch, answers, strict=True):
            _answer(waiting, answer)

    async def _commit_each(self, namespace: str, batch: list[_Waiting[Item, Result]]) -> None:
        """Each item alone, so that the one at fault fails its own caller; none is left without an answer."""
        try:
            for waiting in batch:
                await self._commit(namespace, [waiting])
        finally:
            _give_up(batch)


def _give_up(batch: Sequence[_Waiting[Item, Result]]) -> None:
    """Tell the callers who have heard nothing yet."""
    for waiting in batch:
        _answer(waiting, Unavailable("The engine was closed before this write was confirmed"))


def _next_batch(queue: deque[_Waiting[Item, Result]]) -> list[_Waiting[Item, Result]]:
    batch: list[_Waiting[Item, Result]] = []
    size = 0
    share = max(MIN_SHARE, -(-len(queue) // CONCURRENT_BATCHES))
    while queue and len(batch) < min(share, MAX_ITEMS) and (not batch or size + queue[0].size <= MAX_BYTES):
        waiting = queue.popleft()
        if not waiting.answer.cancelled():
            batch.append(waiting)
            size += waiting.size
    return batch


def _answer(waiting: _Waiting[Item, Result], answer: Result | BaseException) -> None:
    if waiting.answer.done():
        return
    if isinstance(answer, BaseException):
        waiting.answer.set_exception(answer)
    else:
        waiting.answer.set_result(answer)
