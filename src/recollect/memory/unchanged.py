"""Unchanged memories: long-term memories to which nothing has happened for a while."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from recollect.storage.database import Statements
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="unchanged.sql"):
    page: Query


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Memories that have not changed since a moment; None leaves a filter out."""

    before: datetime
    user_id: str | None = None
    agent_id: str | None = None
    category: str | None = None


class UnchangedMemory(NamedTuple):
    """A memory found. Whatever happens to it moves `since`."""

    id: UUID
    user_id: str | None
    category: str
    since: datetime


class UnchangedMemories:
    """Finds them in id order, without pinned ones, and without expired ones, which maintenance removes."""

    async def page(self, db: Statements, unchanged: Unchanged, behind: UUID, limit: int) -> Sequence[UnchangedMemory]:
        """The next after an id, superseded ones included."""
        rows = await db.all(_Sql.page, **asdict(unchanged), behind=behind, limit=limit)
        return [UnchangedMemory(*row) for row in rows]
