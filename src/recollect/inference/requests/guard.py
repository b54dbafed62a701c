"""Guard: everything between us and a provider's model: rate limits, retries and the budget."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from recollect.errors import RecollectError, Unavailable
from recollect.inference.failures import Throttled, Transient
from recollect.inference.requests.breaker import FAILURES_TO_OPEN, Breaker
from recollect.inference.requests.limits import Clock, Pace
from recollect.inference.requests.meter import Meter, Purpose, Tokens
from recollect.inference.requests.retry import Retry

_Answer = TypeVar("_Answer")
_Request = Callable[[], Awaitable[tuple[_Answer, Tokens]]]


class Guard:
    """Asks one model: no faster than its limits, again after what may pass, not at all while it is down or unpaid."""

    def __init__(
        self, model_id: str, pace: Pace, meter: Meter, clock: Clock, silences_to_open: int = FAILURES_TO_OPEN
    ) -> None:
        self._model_id = model_id
        self._meter = meter
        self._pace = pace
        self._retry = Retry(clock)
        self._breaker = Breaker(model_id, clock, silences_to_open)

    async def ask(
        self,
        namespace: str,
        feature: str,
        most_tokens: int,
        seconds: float,
        request: _Request[_Answer],
        *,
        hurried: bool = False,
    ) -> _Answer:
        """The answer to a request that takes so many tokens at most; every attempt is paid for by itself.

        It is not repeated after `seconds`; cutting off an attempt that is under way is the caller's to do.
        """
        purpose = Purpose(namespace, feature, self._model_id)
        arrival = self._pace.arrive()
        with self._breaker.request() as trying:
            paid = partial(self._paid, purpose, most_tokens, request)
            attempt = partial(self._attempt, namespace, arrival, seconds, trying, paid)
            return await self._retry.run(attempt, seconds, hurried=hurried)

    async def _attempt(
        self, namespace: str, arrival: int, seconds: float, trying: bool, paid: Callable[[], Awaitable[_Answer]]
    ) -> _Answer:
        try:
            async with self._pace.turn(namespace, arrival, seconds):
                with self._breaker.attempt(trying):
                    return await paid()
        except Throttled as problem:
            if problem.retry_after is not None:
                # So that the others wait as well. If they cannot be told, this request is tried again all the same.
                with suppress(Unavailable):
                    await self._pace.postpone(problem.retry_after)
            raise

    async def _paid(self, purpose: Purpose, most_tokens: int, request: _Request[_Answer]) -> _Answer:
        reservation = await self._meter.reserve(purpose, most_tokens)
        try:
            answer, used = await request()
        except Transient as problem:
            if problem.perhaps_billed:
                # The provider may have done the work: better to count it than to be surprised by the bill.
                await self._meter.settle(reservation, Tokens(most_tokens, 0))
            else:
                await self._meter.release(reservation)
            raise
        except RecollectError:
            await self._meter.release(reservation)
            raise
        except BaseException:
            # Cancelled, or worse; the provider may have done the work all the same.
            await asyncio.shield(self._meter.settle(reservation, Tokens(most_tokens, 0)))
            raise
        await asyncio.shield(self._meter.settle(reservation, used))
        return answer
