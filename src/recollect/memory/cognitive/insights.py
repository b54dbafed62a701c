"""Insights: what was condensed from the log, how dense it is, and which messages it came from."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.storage.database import Statements, Transaction
from recollect.storage.record import Record
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="insights.sql"):
    add: Query
    find: Query
    newest: Query
    made_from: Query
    made_from_sessions: Query
    remove: Query
    page_insights: Query
    restore_insights: Query
    compare_insights: Query
    size_insights: Query
    shown_insights: Query


RECORD = Record(
    "insight",
    "insights",
    ("id",),
    _Sql.page_insights,
    _Sql.restore_insights,
    _Sql.compare_insights,
    size=_Sql.size_insights,
    shown=_Sql.shown_insights,
)


@dataclass(frozen=True, slots=True)
class Insight:
    """A condensed piece of knowledge; its sources are messages by their `seq`."""

    id: int
    content: str
    source_ids: list[int]
    fidelity: float
    metadata: dict[str, Any]
    created_at: datetime


class Insights:
    """Stores insights; finding them by what they say is the work of passages."""

    async def add(
        self,
        tx: Transaction,
        content: str,
        source_ids: list[int],
        fidelity: float,
        metadata: dict[str, Any],
        trust: str | None = None,
    ) -> Insight:
        """Store one insight; its trust is null where its kind says it."""
        row = await tx.one(
            _Sql.add, content=content, source_ids=source_ids, fidelity=fidelity, metadata=metadata, trust=trust
        )
        tx.tally.add(None, content, metadata)
        return Insight(row["id"], content, source_ids, fidelity, metadata, row["created_at"])

    async def find(self, db: Statements, ids: Sequence[int], fidelity_min: float | None = None) -> dict[int, Insight]:
        """Those of some insights that exist and are dense enough, by id."""
        return {row["id"]: Insight(*row) for row in await db.all(_Sql.find, ids=list(ids), fidelity_min=fidelity_min)}

    async def newest(
        self,
        db: Statements,
        limit: int,
        fidelity_min: float | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Insight]:
        """The last insights, newest first; both ends of the range belong to it."""
        return [
            Insight(*row)
            for row in await db.all(_Sql.newest, limit=limit, fidelity_min=fidelity_min, since=since, until=until)
        ]

    async def made_from(self, db: Statements, numbers: Sequence[int]) -> dict[int, bool]:
        """The insights that some messages went into, and whether others did that are still there."""
        return {row["id"]: row["from_others"] for row in await db.all(_Sql.made_from, numbers=list(numbers))}

    async def made_from_sessions(self, db: Statements, session_ids: Sequence[str]) -> dict[int, bool]:
        """The same for all the messages of some sessions."""
        return {
            row["id"]: row["from_others"]
            for row in await db.all(_Sql.made_from_sessions, session_ids=list(session_ids))
        }

    async def remove(self, tx: Transaction, ids: Sequence[int]) -> list[int]:
        """Delete insights; returns those that there were."""
        return [row["id"] for row in await tx.all(_Sql.remove, ids=list(ids))]
