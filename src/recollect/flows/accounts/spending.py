"""Spending: every request to a provider is charged to its namespace's daily budget before it is made."""

from datetime import UTC, date, datetime, timedelta

from recollect import checks, origin
from recollect.inference.requests.meter import BudgetSpent, Purpose, Reservation, Tokens
from recollect.memory.accounts.usage import Usage, UsageLine
from recollect.storage.database import Database

MAX_DAYS = 3650


class Spending:
    """Keeps the budget in the database, so that it holds for all processes together. Whoever asks is charged."""

    def __init__(self, database: Database, usage: Usage, daily_tokens: int) -> None:
        self._database = database
        self._usage = usage
        self.daily_tokens = daily_tokens

    async def reserve(self, purpose: Purpose, tokens: int) -> Reservation:
        """Set the most that a request may take aside, or refuse it."""
        day = _today()
        with origin.own_work():
            async with self._database.transaction(purpose.namespace) as tx:
                if not await self._usage.reserve(tx, day, tokens, self.daily_tokens):
                    spent = await self._usage.spent(tx, day)
                    raise BudgetSpent(
                        f"The token budget for {day} does not cover this request: {spent:,} of {self.daily_tokens:,} "
                        f"tokens are used or reserved, and {purpose.feature} with {purpose.model} may need {tokens:,}. "
                        "Raise RECOLLECT_LLM_DAILY_TOKENS, or wait until tomorrow (UTC)."
                    )
        return Reservation(purpose, day, tokens)

    async def settle(self, reservation: Reservation, used: Tokens) -> None:
        """Count what a request took and give the rest back."""
        purpose, day = reservation.purpose, reservation.day
        with origin.own_work():
            async with self._database.transaction(purpose.namespace) as tx:
                await self._usage.adjust(tx, day, used.input + used.output - reservation.tokens)
                await self._usage.count(tx, day, purpose.feature, purpose.model, used.input, used.output)

    async def release(self, reservation: Reservation) -> None:
        """Give all of it back."""
        with origin.own_work():
            async with self._database.transaction(reservation.purpose.namespace) as tx:
                await self._usage.adjust(tx, reservation.day, -reservation.tokens)

    async def spent_today(self, namespace: str) -> int:
        """Tokens of this day that are used or set aside."""
        async with self._database.reading(namespace) as db:
            return await self._usage.spent(db, _today())

    async def lines(self, namespace: str, days: int) -> list[UsageLine]:
        """Usage of the last days, today included, the newest first."""
        checks.between(days, 1, MAX_DAYS, "days")
        async with self._database.reading(namespace) as db:
            return await self._usage.since(db, _today() - timedelta(days=days - 1))


def _today() -> date:
    return datetime.now(UTC).date()
