"""Retry: asks again after a failure that may pass, later each time, while there is time left."""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from recollect.inference.failures import Throttled, Transient, Unreachable
from recollect.inference.requests.limits import Clock

ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 8.0

# On top of what a provider asks for, so that callers do not come back together.
SPREAD_SECONDS = 0.25

_Result = TypeVar("_Result")


class Retry:
    """Repeats a request with pauses that double, each shortened by chance so that callers do not come back together.

    Being asked to wait is no failure: such a request is repeated as long as there is time.
    """

    def __init__(self, clock: Clock, chance: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._chance = chance

    async def run(self, request: Callable[[], Awaitable[_Result]], seconds: float, *, hurried: bool = False) -> _Result:
        """The result of the first attempt that succeeds, or the failure after which nothing is left to try.

        Who is hurried does not wait for a server that is not there.
        """
        until = self._clock.now() + seconds
        failures = repeats = 0
        while True:
            try:
                return await request()
            except Transient as problem:
                if hurried and isinstance(problem, Unreachable):
                    raise
                failures += not isinstance(problem, Throttled)
                repeats += 1
                if problem.retry_after is not None:
                    pause = problem.retry_after + self._chance() * SPREAD_SECONDS
                else:
                    longest = min(FIRST_PAUSE_SECONDS * float(2 ** (repeats - 1)), LONGEST_PAUSE_SECONDS)
                    pause = longest * (0.5 + self._chance() / 2)
                if failures == ATTEMPTS or self._clock.now() + pause >= until:
                    raise
                await self._clock.sleep(pause)
