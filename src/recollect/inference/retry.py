"""Retry: asks again after a failure that may pass, later each time, and not for ever."""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from recollect.inference.failures import Transient
from recollect.inference.limits import Clock

ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 8.0

# A provider that asks for more than this is better asked again by the caller.
LONGEST_RETRY_AFTER_SECONDS = 60.0

_Result = TypeVar("_Result")


class Retry:
    """Repeats a request with pauses that double, each shortened by chance so that callers do not come back together."""

    def __init__(self, clock: Clock, chance: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._chance = chance

    async def run(self, request: Callable[[], Awaitable[_Result]]) -> _Result:
        """The result of the first attempt that succeeds, or the failure of the last."""
        for attempt in range(1, ATTEMPTS):
            try:
                return await request()
            except Transient as problem:
                if (problem.retry_after or 0.0) > LONGEST_RETRY_AFTER_SECONDS:
                    raise
                await self._clock.sleep(self._pause(attempt, problem.retry_after))
        return await request()

    def _pause(self, attempt: int, retry_after: float | None) -> float:
        longest = min(FIRST_PAUSE_SECONDS * float(2 ** (attempt - 1)), LONGEST_PAUSE_SECONDS)
        pause = longest * (0.5 + self._chance() / 2)
        # What the provider asks for is the least; chance goes on top of it.
        return pause if retry_after is None else retry_after + pause / 2
