"""Fair shares of a server: a caller at full speed waits for its turn, so that the others need not wait for it."""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException

# Requests at work at once when several callers share the server; each caller has its part of them, and at least one.
SHARED = 10

# So long a caller counts as one of those who share, after its last request.
PRESENT_SECONDS = 1.0

# Nobody waits longer for a turn: a client is told to come back instead.
WAIT_SECONDS = 30.0

# A request that takes longer waits for a model, a slow client or the next change: it no longer keeps others waiting.
COUNTED_SECONDS = 1.0


@dataclass(slots=True)
class _Line:
    """The requests of one caller: how many are at work, and those that wait, by member of the caller."""

    at_work: int = 0
    last_request_at: float = 0.0
    waiting: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.at_work and not self.waiting

    def next(self) -> asyncio.Future[None]:
        """The request that has waited longest of the member whose turn it is: members take turns."""
        member, places = next(iter(self.waiting.items()))
        del self.waiting[member]
        place = places.popleft()
        if places:
            self.waiting[member] = places
        return place


_BUSY = "Too many requests of this caller are waiting: send fewer at once, and try again in a moment"


@dataclass(slots=True)
class _Turn:
    """A request that is at work, as long as it counts."""

    line: _Line
    is_counted: bool = True


class FairShare:
    """One caller alone has all of the server. With others, each has its share, and what is above that waits."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}
        self._swept = 0.0

    @asynccontextmanager
    async def turn(self, caller: str, member: str = "") -> AsyncIterator[None]:
        """Be at work for the length of the block, once it is this caller's turn.

        Members of a caller, if several share its part, take turns when they have to wait.
        """
        line = self._lines.setdefault(caller, _Line())
        line.last_request_at = time.monotonic()
        loop = asyncio.get_running_loop()
        if line.waiting or line.at_work >= self._share():
            await self._wait(line, member, loop.create_future())
        else:
            line.at_work += 1
        turn = _Turn(line)
        counted = loop.call_later(COUNTED_SECONDS, self._end, turn)
        try:
            yield
        finally:
            counted.cancel()
            self._end(turn)

    async def _wait(self, line: _Line, member: str, place: asyncio.Future[None]) -> None:
        """Wait in a line until called."""
        places = line.waiting.setdefault(member, deque())
        places.append(place)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await place
        except (asyncio.CancelledError, TimeoutError) as problem:
            if place.done() and not place.cancelled():
                self._leave(line)
            elif place in places:
                places.remove(place)
                if not places:
                    del line.waiting[member]
            if isinstance(problem, TimeoutError):
                raise HTTPException(429, _BUSY, {"Retry-After": "5"}) from None
            raise

    def _end(self, turn: _Turn) -> None:
        """A request ends, or has been at work for so long that it no longer counts."""
        if turn.is_counted:
            turn.is_counted = False
            self._leave(turn.line)

    def _leave(self, line: _Line) -> None:
        """One request less at work; those of this caller that now have their turn begin."""
        line.at_work -= 1
        share = self._share()
        while line.waiting and line.at_work < share:
            if not (place := line.next()).done():
                line.at_work += 1
                place.set_result(None)

    def _share(self) -> float:
        """How many requests of each caller may be at work."""
        now = time.monotonic()
        if now - self._swept > PRESENT_SECONDS / 4:
            self._swept = now
            gone = [
                name
                for name, line in self._lines.items()
                if now - line.last_request_at > PRESENT_SECONDS and line.is_empty
            ]
            for caller in gone:
                del self._lines[caller]
        return math.inf if len(self._lines) < 2 else max(1, SHARED // len(self._lines))
