"""Memories: what was stored for the long term, and everything that ever happened to it."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from recollect.identifiers import uuid7
from recollect.storage.database import Statements, Transaction
from recollect.storage.record import Record
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="memories.sql"):
    add: Query
    same: Query
    find: Query
    lock: Query
    replaced_by: Query
    newest: Query
    change: Query
    supersede: Query
    remove: Query
    record: Query
    blank_history: Query
    history: Query
    of_user: Query
    in_sessions: Query
    count: Query
    erase: Query
    erase_history: Query
    page_memories: Query
    restore_memories: Query
    compare_memories: Query
    size_memories: Query
    page_memory_history: Query
    restore_memory_history: Query
    compare_memory_history: Query


RECORD = Record(
    "memory",
    "memories",
    ("id",),
    _Sql.page_memories,
    _Sql.restore_memories,
    _Sql.compare_memories,
    size=_Sql.size_memories,
)
HISTORY_RECORD = Record(
    "memory_history",
    "memory_history",
    ("memory_id", "number"),
    _Sql.page_memory_history,
    _Sql.restore_memory_history,
    _Sql.compare_memory_history,
)


CATEGORIES = ("semantic", "episodic", "fact", "preference")

EVENTS = ("create", "update", "delete", "supersede", "undo")
"""What a history tells of."""


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """Whose memory it is: a user, an agent, a session, or several of them at once."""

    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """One long-term memory; metadata is the caller's, with what we had to say about it."""

    id: UUID
    text: str
    category: str
    user_id: str | None
    agent_id: str | None
    session_id: str | None
    metadata: dict[str, Any]
    superseded_by: UUID | None
    created_at: datetime
    updated_at: datetime | None
    position: int | None = None
    """Its place in its session; None without one, and for memories that are older than places."""

    @property
    def scope(self) -> MemoryScope:
        """Whose it is."""
        return MemoryScope(self.user_id, self.agent_id, self.session_id)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a memory stands in the list: behind it the next page begins."""

    created_at: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One thing that happened to a memory."""

    id: UUID
    memory_id: UUID
    event: str
    old_memory: str | None
    new_memory: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes two memories the same one: who holds it, its category, and the gist of its text."""

    digest: bytes

    @classmethod
    def of(cls, scope: MemoryScope, category: str, gist: str) -> Self:
        """The identity of a memory by its gist."""
        parts = [scope.user_id, scope.agent_id, scope.session_id, category, gist]
        return cls(hashlib.sha256(json.dumps(parts).encode()).digest())


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories of a scope; None means all. Metadata is JSON text that theirs must contain."""

    categories: tuple[str, ...] | None = None
    metadata: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory to be stored; its origin is the identity of what the caller gave."""

    scope: MemoryScope
    category: str
    text: str
    metadata: dict[str, Any]
    identity: Identity
    origin: Identity
    at: datetime | None = None
    """When it was said; None for now."""


class Memories:
    """Stores memories and their history; finding them by what they say is the work of passages."""

    async def add(self, tx: Transaction, draft: Draft) -> StoredMemory | None:
        """Store one memory; None if one in force says the same, or came from the same words."""
        scope = draft.scope
        row = await tx.first(
            _Sql.add,
            id=uuid7(),
            text=draft.text,
            category=draft.category,
            user_id=scope.user_id,
            agent_id=scope.agent_id,
            session_id=scope.session_id,
            metadata=draft.metadata,
            identity=draft.identity.digest,
            origin=draft.origin.digest,
            at=draft.at,
        )
        if row is None:
            return None
        await self._record(tx, row["id"], scope, "create", None, draft.text)
        return StoredMemory(*row)

    async def same(self, db: Statements, identity: Identity, origin: Identity) -> StoredMemory | None:
        """The memory in force that says the same, or came from the same words."""
        row = await db.first(_Sql.same, identity=identity.digest, origin=origin.digest)
        return None if row is None else StoredMemory(*row)

    async def find(self, db: Statements, ids: Sequence[UUID]) -> dict[UUID, StoredMemory]:
        """Those of some memories that exist, by id; superseded ones, too."""
        return {row["id"]: StoredMemory(*row) for row in await db.all(_Sql.find, ids=list(ids))}

    async def lock(self, tx: Transaction, ids: Sequence[UUID]) -> dict[UUID, StoredMemory]:
        """The same, locked against changes until this transaction ends."""
        return {row["id"]: StoredMemory(*row) for row in await tx.all(_Sql.lock, ids=list(ids))}

    async def replaced_by(self, db: Statements, memory_id: UUID) -> list[StoredMemory]:
        """What a memory superseded."""
        return [StoredMemory(*row) for row in await db.all(_Sql.replaced_by, memory_id=memory_id)]

    async def newest(
        self, db: Statements, scope: MemoryScope, chosen: Filter, limit: int, behind: Place | None
    ) -> list[StoredMemory]:
        """A page of the memories in force, newest first; None in the scope means anybody."""
        rows = await db.all(
            _Sql.newest,
            user_id=scope.user_id,
            agent_id=scope.agent_id,
            session_id=scope.session_id,
            behind_time=behind and behind.created_at,
            behind_id=behind and behind.id,
            limit=limit,
            categories=chosen.categories,
            metadata=chosen.metadata,
            since=chosen.since,
            until=chosen.until,
        )
        return [StoredMemory(*row) for row in rows]

    async def change(
        self, tx: Transaction, memory: StoredMemory, new: StoredMemory, gist: str | None = None
    ) -> StoredMemory:
        """Give a memory that this transaction holds the text, category and metadata of another.

        The gist is wanted where text or category change.
        """
        identity = None if gist is None else Identity.of(memory.scope, new.category, gist).digest
        row = await tx.one(
            _Sql.change, id=memory.id, text=new.text, category=new.category, metadata=new.metadata, identity=identity
        )
        await self._record(tx, memory.id, memory.scope, "update", memory.text, new.text)
        return StoredMemory(*row)

    async def supersede(self, tx: Transaction, old: StoredMemory, new: StoredMemory) -> None:
        """Take a memory that this transaction holds out of force, because a newer one says otherwise.

        What that one says stands in its own history only: else it would outlive being forgotten here.
        """
        await tx.one(_Sql.supersede, id=old.id, successor=new.id)
        await self._record(tx, old.id, old.scope, "supersede", old.text, None)

    async def reinstate(self, tx: Transaction, memory: StoredMemory) -> StoredMemory:
        """Bring a memory that this transaction holds back into force."""
        row = await tx.one(_Sql.supersede, id=memory.id, successor=None)
        await self._record(tx, memory.id, memory.scope, "undo", None, memory.text)
        return StoredMemory(*row)

    async def remove(self, tx: Transaction, memory_id: UUID) -> bool:
        """Delete one memory; False if there is none. Its history stays, without what the memory said."""
        row = await tx.first(_Sql.remove, memory_id=memory_id)
        if row is None:
            return False
        await tx.all(_Sql.blank_history, memory_id=memory_id)
        await self._record(tx, memory_id, MemoryScope(*row), "delete", None, None)
        return True

    async def history(self, db: Statements, memory_id: UUID) -> list[HistoryEntry]:
        """Everything that happened to a memory, in order."""
        return [HistoryEntry(*row) for row in await db.all(_Sql.history, memory_id=memory_id)]

    async def of_user(self, db: Statements, user_id: str, behind: UUID, limit: int) -> list[UUID]:
        """The next memories of a user behind an id; also those of which only a history is left."""
        return [row["id"] for row in await db.all(_Sql.of_user, user_id=user_id, behind=behind, limit=limit)]

    async def in_sessions(
        self, db: Statements, session_ids: Sequence[str], behind: UUID, limit: int, *, of_users: bool
    ) -> list[UUID]:
        """The same for sessions; without `of_users` only those that no user holds besides."""
        return [
            row["id"]
            for row in await db.all(
                _Sql.in_sessions, session_ids=list(session_ids), behind=behind, limit=limit, of_users=of_users
            )
        ]

    async def count(self, db: Statements, ids: Sequence[UUID]) -> tuple[int, int]:
        """How many of some memories there are, and how many entries their histories have."""
        row = await db.one(_Sql.count, ids=list(ids))
        return row["memories"], row["history"]

    async def erase(self, tx: Transaction, ids: Sequence[UUID]) -> tuple[int, int]:
        """Delete memories and their histories; returns how many there were of each."""
        memories = await tx.all(_Sql.erase, ids=list(ids))
        return len(memories), len(await tx.all(_Sql.erase_history, ids=list(ids)))

    async def _record(
        self, tx: Transaction, memory_id: UUID, scope: MemoryScope, event: str, old: str | None, new: str | None
    ) -> None:
        await tx.all(
            _Sql.record,
            memory_id=memory_id,
            event_id=uuid7(),
            event=event,
            old=old,
            new=new,
            user_id=scope.user_id,
            session_id=scope.session_id,
        )
