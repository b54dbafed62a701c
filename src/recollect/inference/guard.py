"""Guard: everything between us and a provider's model, so that it is asked politely and within the budget."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from recollect.errors import RecollectError
from recollect.inference.breaker import Breaker
from recollect.inference.failures import Transient
from recollect.inference.limits import Clock, Limiter
from recollect.inference.meter import Meter, Purpose, Tokens
from recollect.inference.retry import Retry

_Answer = TypeVar("_Answer")


class Guard:
    """Asks one model: no faster than its limit, again after what may pass, not at all while it is down or unpaid."""

    def __init__(self, model_id: str, per_second: int, meter: Meter, clock: Clock) -> None:
        self._model_id = model_id
        self._meter = meter
        self._limiter = Limiter(per_second, clock)
        self._retry = Retry(clock)
        self._breaker = Breaker(model_id, clock)

    async def ask(
        self,
        namespace: str,
        feature: str,
        most_tokens: int,
        request: Callable[[], Awaitable[tuple[_Answer, Tokens]]],
    ) -> _Answer:
        """The answer to a request that takes so many tokens at most; every attempt is paid for by itself."""
        purpose = Purpose(namespace, feature, self._model_id)
        return await self._retry.run(lambda: self._attempt(purpose, most_tokens, request))

    async def _attempt(
        self, purpose: Purpose, most_tokens: int, request: Callable[[], Awaitable[tuple[_Answer, Tokens]]]
    ) -> _Answer:
        with self._breaker.attempt():
            await self._limiter.wait()
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
