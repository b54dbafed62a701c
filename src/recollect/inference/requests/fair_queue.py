"""A queue in which namespaces take turns: one that asks for much does not hold the others up."""

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_Waiting = tuple[int, int, asyncio.Future[None]]


class FairQueue:
    """Lets one caller at a time to the front; within a namespace, the one who arrived first."""

    def __init__(self) -> None:
        # In the order of turns: the namespace that was served goes to the end.
        self._waiting: dict[str, list[_Waiting]] = {}
        self._taken = False
        self._numbers = itertools.count()

    @asynccontextmanager
    async def front(self, namespace: str, arrival: int) -> AsyncIterator[None]:
        """Be at the front for the length of the block."""
        if self._taken:
            called = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting.setdefault(namespace, []), (arrival, next(self._numbers), called))
            try:
                await called
            except asyncio.CancelledError:
                if not called.cancelled():
                    self._pass_on()
                raise
        self._taken = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting:
            namespace = next(iter(self._waiting))
            waiting = self._waiting.pop(namespace)
            _, _, called = heapq.heappop(waiting)
            if waiting:
                self._waiting[namespace] = waiting
            if not called.done():
                called.set_result(None)
                return
        self._taken = False
