"""Traces: what is recorded of how items came to be what they are: their changes, turns and past versions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from recollect import checks
from recollect.storage.database import Statements
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="traces.sql"):
    versions: Query
    superseded: Query
    changes: Query
    firsts: Query
    turns: Query
    metadata: Query


class Version(NamedTuple):
    """What a memory was until a moment."""

    text: str
    category: str
    metadata: dict[str, Any]
    valid_from: datetime | None
    valid_until: datetime | None
    key: str | None
    expires_at: datetime | None
    pinned: bool
    until: datetime


class Superseded(NamedTuple):
    """A memory that another took out of force."""

    memory_id: UUID
    at: datetime
    because: str | None


class Trace(NamedTuple):
    """A change of one item."""

    at: datetime
    event: str
    author: str | None
    door: str | None
    detail: dict[str, Any] | None = None


class By(NamedTuple):
    """Who stored something, and through which door."""

    author: str | None
    door: str | None


class Traces:
    """Reads only; the other capabilities write what is read here."""

    async def versions(self, db: Statements, memory_id: UUID, limit: int) -> list[Version]:
        """The last past versions of a memory, in order."""
        rows = await db.all(_Sql.versions, memory_id=memory_id, limit=limit)
        return [Version._make(row) for row in reversed(rows)]

    async def superseded(self, db: Statements, memory_id: UUID, limit: int) -> list[Superseded]:
        """What a memory superseded, also where that was undone, in order."""
        return [Superseded._make(row) for row in await db.all(_Sql.superseded, memory_id=memory_id, limit=limit)]

    async def changes(self, db: Statements, kind: str, item_id: str, limit: int) -> list[Trace]:
        """The last changes of an item, in order."""
        rows = await db.all(_Sql.changes, kind=kind, item_id=item_id, limit=limit)
        return [Trace._make(row) for row in reversed(rows)]

    async def firsts(self, db: Statements, kind: str, item_ids: Sequence[str]) -> dict[str, By]:
        """Who stored some items that are no messages; of imported ones, that is not known."""
        rows = await db.all(_Sql.firsts, kind=kind, item_ids=list(item_ids))
        return {row["item_id"]: By(row["author"], row["door"]) for row in rows if row["event"] != "import"}

    async def metadata(self, db: Statements, kind: str, item_id: str) -> dict[str, Any]:
        """The metadata that recall shows of an item; empty if it has none, or is not to be found."""
        row = await db.first(_Sql.metadata, kind=kind, item_id=item_id)
        return checks.as_object(row["metadata"] if row else None) or {}

    async def turns(self, db: Statements, places: Sequence[tuple[str, int]]) -> list[list[Trace]]:
        """What brought some messages, each given by its session and position."""
        found: list[list[Trace]] = [[] for _ in places]
        rows = await db.all(
            _Sql.turns,
            session_ids=[session_id for session_id, _ in places],
            positions=[position for _, position in places],
        )
        for number, *fields in rows:
            found[number - 1].append(Trace(*fields))
        return found
