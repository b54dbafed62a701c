"""Limits on the rate and concurrency of calls to a model, shared by all processes, and the clock to wait by."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from recollect.errors import Unavailable
from recollect.inference.requests.fair_queue import FairQueue

# How often a process asks again whether others have left room.
POLL_SECONDS = 0.2

# Providers ask for seconds. More than this would let one odd answer stop everybody.
LONGEST_POSTPONEMENT_SECONDS = 60.0


class Clock(Protocol):
    """Time, and waiting for it to pass."""

    def now(self) -> float:
        """Seconds since some moment; never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Return when so many seconds have passed."""


class SystemClock:
    """The time of this machine."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Limits:
    """Requests a second, evenly spaced, and requests under way at a time."""

    per_second: float
    at_once: int


@dataclass(frozen=True, slots=True)
class Turn:
    """Permission for one request, which may start after a wait."""

    model: str
    id: UUID
    wait: float


class Turns(Protocol):
    """Hands out turns to all processes together."""

    async def take(self, model: str, limits: Limits, within: float) -> Turn | None:
        """The next turn; None while too many requests are under way, Unavailable if it comes later than `within`."""

    async def end(self, turn: Turn) -> None:
        """The request is over."""

    async def postpone(self, model: str, seconds: float) -> None:
        """Let no request start for so many seconds: the provider asked for that."""


class Pace:
    """Lets requests to one model through, no faster and no more at once than its limits."""

    def __init__(self, model: str, limits: Limits, turns: Turns, clock: Clock) -> None:
        self._model = model
        self._limits = limits
        self._turns = turns
        self._clock = clock
        self._queue = FairQueue()
        self._room = asyncio.Semaphore(limits.at_once)
        self._arrivals = itertools.count()

    def arrive(self) -> int:
        """A place in the queue, which a request keeps when it is tried again."""
        return next(self._arrivals)

    @asynccontextmanager
    async def turn(self, namespace: str, arrival: int, within: float) -> AsyncIterator[None]:
        """Wait for a turn and hold it; only the first in the queue asks for one, so that none are taken in advance."""
        async with self._queue.front(namespace, arrival):
            await self._room.acquire()
            try:
                turn = await self._granted(within)
            except BaseException:
                self._room.release()
                raise
        try:
            yield
        finally:
            try:
                await self._end(turn)
            finally:
                self._room.release()

    async def postpone(self, seconds: float) -> None:
        """Make everybody wait as long as the provider asked one of us to."""
        await self._turns.postpone(self._model, min(seconds, LONGEST_POSTPONEMENT_SECONDS))

    async def _granted(self, within: float) -> Turn:
        until = self._clock.now() + within
        while (turn := await self._turns.take(self._model, self._limits, until - self._clock.now())) is None:
            if self._clock.now() + POLL_SECONDS >= until:
                raise Unavailable(f"{self._model} has reached its limit of concurrent requests. Try again later.")
            await self._clock.sleep(POLL_SECONDS)
        try:
            if turn.wait > 0:
                await self._clock.sleep(turn.wait)
        except BaseException:
            await self._end(turn)
            raise
        return turn

    async def _end(self, turn: Turn) -> None:
        """A cancelled caller ends its turn all the same."""
        await asyncio.shield(self._ended(turn))

    async def _ended(self, turn: Turn) -> None:
        with suppress(Unavailable):  # a turn that is not ended expires
            await self._turns.end(turn)
