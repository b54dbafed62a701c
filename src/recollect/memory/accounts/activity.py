"""Activity: how often a namespace was searched, by the hour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from recollect.storage.database import Statements, Transaction
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="activity.sql"):
    add: Query
    is_filled: Query
    remove_before: Query
    between: Query


@dataclass(slots=True)
class Recalls:
    """Searches that ran in full, those that had to do without semantic search, and those that failed."""

    recalls: int = 0
    degraded: int = 0
    failed: int = 0

    def add(self, more: "Recalls") -> None:
        """Count others, too."""
        self.recalls += more.recalls
        self.degraded += more.degraded
        self.failed += more.failed


class RecallCounts:
    """Adds up what processes count."""

    async def add(self, tx: Transaction, hours: Mapping[datetime, Recalls]) -> None:
        """Add the counts of some hours to what is stored of them."""
        await tx.all(
            _Sql.add,
            hours=list(hours),
            recalls=[each.recalls for each in hours.values()],
            degraded=[each.degraded for each in hours.values()],
            failed=[each.failed for each in hours.values()],
        )

    async def is_filled(self, db: Statements) -> bool:
        """Whether there is anything to recall in the namespace."""
        return bool((await db.one(_Sql.is_filled))["is_filled"])

    async def remove_before(self, tx: Transaction, moment: datetime) -> None:
        """Delete the hours before a moment."""
        await tx.all(_Sql.remove_before, moment=moment)

    async def between(self, db: Statements, moments: Sequence[datetime]) -> dict[int, Recalls]:
        """The counts of the periods between moments, by place; the last period has no end. Those without any are left
        out."""
        rows = await db.all(_Sql.between, moments=list(moments))
        return {row["period"]: Recalls(row["recalls"], row["degraded"], row["failed"]) for row in rows}
