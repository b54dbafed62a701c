"""The log: every message as it was said, append-only, in the order of its session."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from recollect.checks import Json
from recollect.storage.database import Statements, Transaction
from recollect.storage.record import Record
from recollect.storage.sql import Queries, Query

# A statement's values are put together on the event loop, which must not wait for thousands of them.
APPENDED_AT_ONCE = 512


class _Sql(Queries, file="log.sql"):
    append: Query
    recent: Query
    recent_before: Query
    by_seq: Query
    keep: Query
    known: Query
    in_session: Query
    raw_newest: Query
    raw_oldest: Query
    in_sessions: Query
    count_in_sessions: Query
    remove: Query
    page_messages: Query
    restore_messages: Query
    size_messages: Query


RECORD = Record("message", "messages", ("id",), _Sql.page_messages, _Sql.restore_messages, size=_Sql.size_messages)


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to be written, checked by its door; metadata is JSON text. Without a time it takes the commit's."""

    role: str
    content: str
    metadata: str | None = None
    speaker: str | None = None
    at: datetime | None = None
    id: UUID | None = None
    """One that brings its id, in a turn of a realm, is written once, however often it comes."""


class Place(NamedTuple):
    """Where a new message goes, under which id, and as of when."""

    id: UUID
    session_id: str
    position: int
    at: datetime


class Message(NamedTuple):
    """A message as the log holds it; a tuple, because histories make many and a frozen dataclass costs 4 times more."""

    id: UUID
    seq: int
    session_id: str
    position: int
    role: str
    speaker: str | None
    content: str
    metadata: Json
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RawFilter:
    """Which messages of a namespace to read; None means any. Both ends of the range of time belong to it."""

    session_id: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    speaker: str | None = None


class Log:
    """Appends messages and reads them back in order."""

    async def append(self, tx: Transaction, messages: Sequence[NewMessage], places: Sequence[Place]) -> list[Message]:
        """Write messages, each at its place; their sessions must be locked by this transaction."""
        stored: list[Message] = []
        for start in range(0, len(messages), APPENDED_AT_ONCE):
            some = slice(start, start + APPENDED_AT_ONCE)
            rows = await tx.all(
                _Sql.append,
                ids=[place.id for place in places[some]],
                session_ids=[place.session_id for place in places[some]],
                positions=[place.position for place in places[some]],
                roles=[message.role for message in messages[some]],
                speakers=[message.speaker for message in messages[some]],
                contents=[message.content for message in messages[some]],
                metadatas=[message.metadata for message in messages[some]],
                created_ats=[place.at for place in places[some]],
            )
            numbers = {row["id"]: row["seq"] for row in rows}
            stored += [
                Message(
                    place.id,
                    numbers[place.id],
                    place.session_id,
                    place.position,
                    message.role,
                    message.speaker,
                    message.content,
                    None if message.metadata is None else json.loads(message.metadata),
                    place.at,
                )
                for message, place in zip(messages[some], places[some], strict=True)
            ]
        return stored

    async def recent(self, db: Statements, session_id: str, limit: int, before: UUID | None = None) -> list[Message]:
        """The last messages of a session, or the last before one of them, oldest first."""
        if before is None:
            rows = await db.all(_Sql.recent, session_id=session_id, limit=limit)
        else:
            rows = await db.all(_Sql.recent_before, session_id=session_id, limit=limit, before=before)
        return [Message._make(row) for row in reversed(rows)]

    async def by_seq(self, db: Statements, numbers: Sequence[int]) -> dict[int, Message]:
        """Those of some messages that exist, by the integer that names them."""
        return {row["seq"]: Message._make(row) for row in await db.all(_Sql.by_seq, numbers=list(numbers))}

    async def keep(self, tx: Transaction, numbers: Sequence[int]) -> set[int]:
        """Those of some messages that are there, by number; no one removes them before this transaction ends."""
        return {row["seq"] for row in await tx.all(_Sql.keep, numbers=list(numbers))}

    async def known(self, db: Statements, ids: Sequence[UUID]) -> set[UUID]:
        """Those of some ids that messages have already."""
        return {row["id"] for row in await db.all(_Sql.known, ids=list(ids))}

    async def holds(self, db: Statements, session_id: str, message_id: UUID) -> bool:
        """Whether a message is one of a session's."""
        return await db.first(_Sql.in_session, session_id=session_id, message_id=message_id) is not None

    async def raw(self, db: Statements, wanted: RawFilter, limit: int, *, newest_first: bool) -> list[Message]:
        """Messages of all sessions in the order of time."""
        statement = _Sql.raw_newest if newest_first else _Sql.raw_oldest
        rows = await db.all(
            statement,
            limit=limit,
            session_id=wanted.session_id,
            since=wanted.start,
            until=wanted.end,
            speaker=wanted.speaker,
        )
        return [Message._make(row) for row in rows]

    async def in_sessions(self, db: Statements, session_ids: Sequence[str], limit: int) -> list[UUID]:
        """Some messages of some sessions, so many at most."""
        return [row["id"] for row in await db.all(_Sql.in_sessions, session_ids=list(session_ids), limit=limit)]

    async def count_in_sessions(self, db: Statements, session_ids: Sequence[str]) -> int:
        """How many messages some sessions have."""
        return int((await db.one(_Sql.count_in_sessions, session_ids=list(session_ids)))["messages"])

    async def remove(self, tx: Transaction, message_ids: Sequence[UUID]) -> list[int]:
        """Delete messages for good; returns the numbers of those that there were."""
        return [row["seq"] for row in await tx.all(_Sql.remove, message_ids=list(message_ids))]
