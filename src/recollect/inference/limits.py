"""Limits on how fast a provider is asked: a limiter that waits, and the clock that it waits by."""

import asyncio
import time
from collections import deque
from typing import Protocol

PERIOD_SECONDS = 1.0

# The least pause: shorter ones may be too small for a clock to notice.
_TICK_SECONDS = 0.001


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


class Limiter:
    """Lets so many callers a second through, in the order they came, and makes the others wait.

    It remembers when the last ones went instead of refilling a bucket, because a bucket lets twice its rate through in
    the second after a pause.
    """

    def __init__(self, per_second: int, clock: Clock) -> None:
        self._clock = clock
        self._granted: deque[float] = deque(maxlen=per_second)
        self._turn = asyncio.Lock()

    async def wait(self) -> None:
        """Return when it is the caller's turn."""
        async with self._turn:
            while len(self._granted) == self._granted.maxlen:
                left = PERIOD_SECONDS - (self._clock.now() - self._granted[0])
                if left <= 0:
                    break
                await self._clock.sleep(max(left, _TICK_SECONDS))
            self._granted.append(self._clock.now())
