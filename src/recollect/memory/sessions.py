"""Sessions: who a conversation belongs to, and which position its next message takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.storage.database import Statements, Transaction
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="sessions.sql"):
    create: Query
    open: Query
    advance: Query
    find: Query
    recent_of_user: Query


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation without its messages."""

    id: str
    user_id: str
    title: str | None
    metadata: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Advance:
    """The room that a session made for new messages: their first position and their time."""

    user_id: str
    first_position: int
    at: datetime


class Sessions:
    """Stores sessions. Positions are handed out here, while the session's row is locked."""

    async def create(
        self, tx: Transaction, session_id: str, user_id: str, title: str | None = None, metadata: str | None = None
    ) -> Session | None:
        """A new session, or None if the id is taken: an owner is never overwritten."""
        row = await tx.first(_Sql.create, session_id, user_id, title, metadata)
        return None if row is None else Session(*row)

    async def open(self, tx: Transaction, owners: Mapping[str, str]) -> None:
        """Sessions that begin with their first message: id to user id."""
        await tx.all(_Sql.open, list(owners), list(owners.values()))

    async def advance(self, tx: Transaction, counts: Mapping[str, int]) -> dict[str, Advance]:
        """Lock sessions and make room in each for so many messages; a session that does not exist is left out."""
        rows = await tx.all(_Sql.advance, list(counts), list(counts.values()))
        return {row["id"]: Advance(row["user_id"], row["first_position"], row["updated_at"]) for row in rows}

    async def find(self, db: Statements, session_id: str) -> Session | None:
        """One session, or None."""
        row = await db.first(_Sql.find, session_id)
        return None if row is None else Session(*row)

    async def recent_of_user(self, db: Statements, user_id: str, limit: int) -> list[Session]:
        """A user's sessions, the last active first."""
        return [Session(*row) for row in await db.all(_Sql.recent_of_user, user_id, limit)]
