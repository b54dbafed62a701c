"""Usage: requests to providers, and how much of the daily budget they used."""

from dataclasses import dataclass
from datetime import date

from recollect.storage.database import Statements, Transaction
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="usage.sql"):
    reserve: Query
    adjust: Query
    count: Query
    spent: Query
    since: Query


@dataclass(frozen=True, slots=True)
class UsageLine:
    """What one feature asked of one model on one day."""

    day: date
    feature: str
    model: str
    requests: int
    input_tokens: int
    output_tokens: int


class Usage:
    """Counts tokens; what may be spent is the flow's to say."""

    async def reserve(self, tx: Transaction, day: date, tokens: int, budget: int) -> bool:
        """Set tokens aside; False if the day's budget does not allow it. Callers at once take turns."""
        if tokens > budget:
            return False
        return await tx.first(_Sql.reserve, day=day, tokens=tokens, budget=budget) is not None

    async def adjust(self, tx: Transaction, day: date, tokens: int) -> None:
        """Add to what is set aside; negative gives back."""
        await tx.all(_Sql.adjust, day=day, tokens=tokens)

    async def count(
        self, tx: Transaction, day: date, feature: str, model: str, input_tokens: int, output_tokens: int
    ) -> None:
        """Note one request."""
        await tx.all(
            _Sql.count, day=day, feature=feature, model=model, input_tokens=input_tokens, output_tokens=output_tokens
        )

    async def spent(self, db: Statements, day: date) -> int:
        """Tokens of a day that are used or set aside."""
        row = await db.first(_Sql.spent, day=day)
        return 0 if row is None else int(row["tokens"])

    async def since(self, db: Statements, day: date) -> list[UsageLine]:
        """Everything counted from a day on, the newest first."""
        return [UsageLine(*row) for row in await db.all(_Sql.since, day=day)]
