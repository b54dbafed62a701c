"""Stale memories: to which long-term memories nothing has happened for long."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from recollect.storage.database import Statements
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="stale.sql"):
    page: Query


@dataclass(frozen=True, slots=True)
class Stale:
    """Memories that have not changed since a moment; None leaves a filter out."""

    before: datetime
    user_id: str | None = None
    agent_id: str | None = None
    category: str | None = None


class StaleMemory(NamedTuple):
    """One of them. Whatever happens to it moves `since`."""

    id: UUID
    user_id: str | None
    category: str
    since: datetime


class StaleMemories:
    """Finds them in the order of their ids; pinned ones are none, and what has expired is left to maintenance."""

    async def page(self, db: Statements, stale: Stale, behind: UUID, limit: int) -> Sequence[StaleMemory]:
        """The next behind an id, superseded ones included."""
        rows = await db.all(_Sql.page, **asdict(stale), behind=behind, limit=limit)
        return [StaleMemory(*row) for row in rows]
