"""Sessions: who a conversation belongs to, and which position its next message takes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from recollect.storage.database import Statements, Transaction
from recollect.storage.record import PAGE_OF_SESSIONS, Record
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="sessions.sql"):
    create: Query
    open: Query
    begin: Query
    last_active: Query
    set_last_active: Query
    owners_of: Query
    next_positions: Query
    lock: Query
    find: Query
    recent_of_user: Query
    recent: Query
    page: Query
    listed: Query
    describe: Query
    then: Query
    some_of_user: Query
    remove: Query
    page_sessions: Query
    restore_sessions: Query
    compare_sessions: Query
    size_sessions: Query


RECORD = Record(
    "session",
    "sessions",
    ("id",),
    _Sql.page_sessions,
    _Sql.restore_sessions,
    _Sql.compare_sessions,
    size=_Sql.size_sessions,
    page_size=PAGE_OF_SESSIONS,
)


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation without its messages."""

    id: str
    user_id: str
    title: str | None
    metadata: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime
    agent_id: str | None


class SessionPlace(NamedTuple):
    """Where a page of sessions ends: the last of it."""

    updated_at: datetime
    id: str


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions to list; None means any. The text is part of a title or of an id, in capitals or not."""

    user_id: str | None = None
    agent_id: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A session to choose from: `said` counts messages that are forgotten, too, and texts are cut."""

    id: str
    user_id: str
    agent_id: str | None
    title: str | None
    created_at: datetime
    updated_at: datetime
    said: int
    last_role: str | None
    last_text: str | None


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to be begun, checked by its caller; metadata is JSON text. Without a time it begins now."""

    id: str
    user_id: str
    title: str | None
    metadata: str | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class SessionOwner:
    """Whose a session is; the realm is empty but for apps and projects of the gateway."""

    user_id: str
    realm: str


class Sessions:
    """Stores sessions. Positions are handed out by `Log.append`, while the session's row is locked."""

    async def create(
        self,
        tx: Transaction,
        session_id: str,
        user_id: str,
        title: str | None = None,
        metadata: str | None = None,
        agent_id: str | None = None,
    ) -> Session | None:
        """A new session, or None if the id is taken: an owner is never overwritten."""
        row = await tx.first(
            _Sql.create, session_id=session_id, user_id=user_id, title=title, metadata=metadata, agent_id=agent_id
        )
        if row is None:
            return None
        tx.tally.add(user_id, title, metadata)
        return Session(*row)

    async def describe(
        self, tx: Transaction, session_id: str, title: str | None, metadata: str | None, agent_id: str | None
    ) -> Session:
        """Set what a session that is locked says of itself, all of it."""
        row = await tx.one(_Sql.describe, session_id=session_id, title=title, metadata=metadata, agent_id=agent_id)
        tx.tally.add(row["user_id"], title, metadata)
        return Session(*row)

    async def open(self, tx: Transaction, owners: Mapping[str, str], realms: Mapping[str, str] | None = None) -> None:
        """Sessions that begin with their first message: id to user id, and to the realm if it is not the default."""
        in_realms = [(realms or {}).get(session_id, "") for session_id in owners]
        await tx.all(_Sql.open, ids=list(owners), owners=list(owners.values()), realms=in_realms)

    async def begin(self, tx: Transaction, new: Sequence[NewSession]) -> None:
        """Sessions that began elsewhere; those that exist are left as they are."""
        await tx.all(
            _Sql.begin,
            ids=[session.id for session in new],
            owners=[session.user_id for session in new],
            titles=[session.title for session in new],
            metadatas=[session.metadata for session in new],
            times=[session.at for session in new],
        )

    async def last_active(self, tx: Transaction, session_ids: Collection[str]) -> dict[str, datetime]:
        """When something last happened in sessions that this transaction holds."""
        rows = await tx.all(_Sql.last_active, session_ids=list(session_ids))
        return {row["id"]: row["updated_at"] for row in rows}

    async def set_last_active(self, tx: Transaction, times: Mapping[str, datetime]) -> None:
        """Say when something last happened in sessions that this transaction holds."""
        await tx.all(_Sql.set_last_active, session_ids=list(times), times=list(times.values()))

    async def owners_of(self, db: Statements, session_ids: Collection[str]) -> dict[str, SessionOwner]:
        """Whose those of some sessions are that exist."""
        rows = await db.all(_Sql.owners_of, session_ids=list(session_ids))
        return {row["id"]: SessionOwner(row["user_id"], row["realm"]) for row in rows}

    async def next_positions(self, db: Statements, session_ids: Collection[str]) -> dict[str, int]:
        """The positions that the next messages of those of some sessions get that exist."""
        return {
            row["id"]: row["next_position"] for row in await db.all(_Sql.next_positions, session_ids=list(session_ids))
        }

    async def lock(self, tx: Transaction, session_ids: Collection[str]) -> dict[str, SessionOwner]:
        """Whose they are; no one else writes to them before this transaction ends."""
        rows = await tx.all(_Sql.lock, session_ids=list(session_ids))
        return {row["id"]: SessionOwner(row["user_id"], row["realm"]) for row in rows}

    async def find(self, db: Statements, session_id: str, as_of: datetime | None = None) -> Session | None:
        """One session, or None; with a moment, if it was there by then."""
        if as_of is not None:
            return next(iter(await self._then(db, as_of, 1, session_id=session_id)), None)
        row = await db.first(_Sql.find, session_id=session_id)
        return None if row is None else Session(*row)

    async def recent_of_user(
        self, db: Statements, user_id: str, limit: int, as_of: datetime | None = None
    ) -> list[Session]:
        """A user's sessions, the last active first; with a moment, those that were there by then."""
        if as_of is not None:
            return await self._then(db, as_of, limit, user_id=user_id)
        return [Session(*row) for row in await db.all(_Sql.recent_of_user, user_id=user_id, limit=limit)]

    async def recent(
        self, db: Statements, user_id: str | None, limit: int, after: str | None, as_of: datetime | None = None
    ) -> list[Session]:
        """The last active sessions with a UUID, of a user or of everybody; `after` is the last of the page before."""
        if as_of is not None:
            return await self._then(db, as_of, limit, user_id=user_id, after=after, uuids=True)
        return [Session(*row) for row in await db.all(_Sql.recent, user_id=user_id, limit=limit, after=after)]

    async def page(
        self, db: Statements, user_id: str | None, agent_id: str | None, limit: int, behind: SessionPlace | None
    ) -> list[Session]:
        """Sessions of a user, of an agent or of all, the last active first."""
        at, last_id = behind or (None, None)
        rows = await db.all(_Sql.page, user_id=user_id, agent_id=agent_id, limit=limit, behind_at=at, behind_id=last_id)
        return [Session(*row) for row in rows]

    async def listed(
        self, db: Statements, wanted: SessionFilter, limit: int, behind: SessionPlace | None, characters: int
    ) -> list[ListedSession]:
        """Sessions to choose from, the last active first, with the beginnings of texts."""
        at, last_id = behind or (None, None)
        rows = await db.all(
            _Sql.listed,
            user_id=wanted.user_id,
            agent_id=wanted.agent_id,
            text=wanted.text,
            limit=limit,
            behind_at=at,
            behind_id=last_id,
            characters=characters,
        )
        return [ListedSession(*row) for row in rows]

    async def some_of_user(self, db: Statements, user_id: str, limit: int | None) -> list[str]:
        """The ids of some sessions of a user, or of all."""
        return [row["id"] for row in await db.all(_Sql.some_of_user, user_id=user_id, limit=limit)]

    async def remove(self, tx: Transaction, session_ids: Sequence[str]) -> list[str]:
        """Delete sessions; returns those that there were."""
        return [row["id"] for row in await tx.all(_Sql.remove, session_ids=list(session_ids))]

    async def _then(
        self,
        db: Statements,
        as_of: datetime,
        limit: int,
        *,
        session_id: str | None = None,
        user_id: str | None = None,
        after: str | None = None,
        uuids: bool = False,
    ) -> list[Session]:
        rows = await db.all(
            _Sql.then, as_of=as_of, limit=limit, session_id=session_id, user_id=user_id, after=after, uuids=uuids
        )
        return [Session(*row) for row in rows]
