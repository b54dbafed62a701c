"""Memories: what was stored for the long term, and everything that ever happened to it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, Self
from uuid import UUID, uuid5

from recollect import origin
from recollect.identifiers import uuid7
from recollect.storage.database import Statements, Transaction
from recollect.storage.record import Record
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="memories.sql"):
    moment: Query
    add: Query
    same: Query
    take_slot: Query
    in_slot: Query
    slot_taken: Query
    find: Query
    find_as_of: Query
    pinned: Query
    lock: Query
    replaced_by: Query
    newest: Query
    newest_as_of: Query
    newest_superseded: Query
    keep_version: Query
    expire_versions: Query
    versions: Query
    last_version: Query
    hold: Query
    expired: Query
    hold_scope: Query
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
    page_memory_versions: Query
    restore_memory_versions: Query
    compare_memory_versions: Query


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
VERSION_RECORD = Record(
    "memory_version",
    "memory_versions",
    ("memory_id", "number"),
    _Sql.page_memory_versions,
    _Sql.restore_memory_versions,
    _Sql.compare_memory_versions,
)

CATEGORIES = ("semantic", "episodic", "fact", "preference")

EXPIRE = "expire"
EVENTS = ("create", "update", "delete", "supersede", "undo", EXPIRE)
"""What a history tells of. That a memory has expired is nobody's work."""


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
    position: int | None
    """Its place in its session; None without one, and for memories that are older than places."""
    since: datetime
    """When it was stored, or last changed, superseded or restored."""
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    """When it is true in the world, as far as the caller said."""
    key: str | None = None
    """In its scope, no other memory in force has it."""
    expires_at: datetime | None = None
    pinned: bool = False
    sources: tuple[str, ...] = ()
    """What it was made from, such as `message:ID`."""
    trust: str | None = None
    """Where it comes from; None for what the user said."""

    @classmethod
    def of(cls, row: Any) -> Self:
        """A row of its columns, which may be followed by others."""
        names = [each.name for each in fields(cls)]
        return cls(**dict(zip(names, row, strict=False)) | {"sources": tuple(row["sources"])})

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
    detail: dict[str, Any] | None
    """Why and by what: the successor, and where a language model decided, its name and what it saw."""
    author: str | None = None
    door: str | None = None
    """Who did it, as far as that is known."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes two memories the same one: who holds it, its category, and the gist of its text."""

    digest: bytes

    @classmethod
    def of(cls, scope: MemoryScope, category: str, gist: str) -> Self:
        """The identity of a memory by its gist."""
        parts = [scope.user_id, scope.agent_id, scope.session_id, category, gist]
        return cls(hashlib.sha256(json.dumps(parts).encode()).digest())


def slot_of(scope: MemoryScope, key: str | None) -> bytes | None:
    """The one place that a key has in a scope."""
    if key is None:
        return None
    parts = [scope.user_id, scope.agent_id, scope.session_id, key]
    return hashlib.sha256(json.dumps(parts).encode()).digest()


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories of a scope; None means all. Metadata is JSON text that theirs must contain.

    `where` is a JSON path that must hold for it. `as_of` asks for what was in force then, `valid_at` for what is true
    then in the world, `superseded` for what is no longer in force.
    """

    categories: tuple[str, ...] | None = None
    metadata: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    key: str | None = None
    pinned: bool | None = None
    as_of: datetime | None = None
    valid_at: datetime | None = None
    where: str | None = None
    expires_before: datetime | None = None
    superseded: bool = False


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
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    key: str | None = None
    expires_at: datetime | None = None
    pinned: bool = False
    sources: tuple[str, ...] = ()
    detail: dict[str, Any] | None = None
    """What its history tells of how it came about."""
    id: UUID | None = None
    """One that brings its id is stored once, even if it was replaced since."""
    trust: str | None = None


class Memories:
    """Stores memories and their history; finding them by what they say is the work of passages."""

    async def moment(self, tx: Transaction, touched: Sequence[StoredMemory] = ()) -> datetime:
        """The time of what a transaction does to the memories that it holds: never before their last change."""
        moment: datetime = (await tx.one(_Sql.moment, ids=[memory.id for memory in touched]))["moment"]
        return moment

    async def add(self, tx: Transaction, draft: Draft, moment: datetime) -> StoredMemory | None:
        """Store one memory; None if one in force says the same, or came from the same words.

        Another one may still have its key: see take_slot.
        """
        scope = draft.scope
        row = await tx.first(
            _Sql.add,
            id=draft.id or uuid7(),
            text=draft.text,
            category=draft.category,
            user_id=scope.user_id,
            agent_id=scope.agent_id,
            session_id=scope.session_id,
            metadata=draft.metadata,
            identity=draft.identity.digest,
            origin=draft.origin.digest,
            at=draft.at,
            moment=moment,
            valid_from=draft.valid_from,
            valid_until=draft.valid_until,
            key=draft.key,
            expires_at=draft.expires_at,
            pinned=draft.pinned,
            sources=list(draft.sources),
            trust=draft.trust,
        )
        if row is None:
            return None
        tx.tally.add(scope.user_id, draft.text, draft.metadata)
        await self._record(tx, row["id"], scope, "create", None, draft.text, moment, draft.detail)
        return StoredMemory.of(row)

    async def same(self, db: Statements, identity: Identity, origin: Identity) -> StoredMemory | None:
        """The memory in force that says the same, or came from the same words."""
        row = await db.first(_Sql.same, identity=identity.digest, origin=origin.digest)
        return None if row is None else StoredMemory.of(row)

    async def take_slot(self, tx: Transaction, memory: StoredMemory) -> None:
        """Make a new memory the one that has its key; raises Duplicate if another has it in this moment."""
        if memory.key is not None:
            await tx.all(_Sql.take_slot, id=memory.id, slot=slot_of(memory.scope, memory.key))

    async def in_slot(self, tx: Transaction, scope: MemoryScope, key: str) -> StoredMemory | None:
        """The memory in force that has a key in a scope, locked until this transaction ends."""
        slot = slot_of(scope, key)
        # The one that was waited for may have given way: then its successor has the key.
        while (row := await tx.first(_Sql.in_slot, slot=slot)) is None:
            if await tx.first(_Sql.slot_taken, slot=slot) is None:
                return None
        return StoredMemory.of(row)

    async def find(
        self, db: Statements, ids: Sequence[UUID], as_of: datetime | None = None
    ) -> dict[UUID, StoredMemory]:
        """Those of some memories that exist, by id; superseded ones, too. With `as_of`, as they were then."""
        if as_of is None:
            rows = await db.all(_Sql.find, ids=list(ids))
        else:
            rows = await db.all(_Sql.find_as_of, ids=list(ids), as_of=as_of)
        return {row["id"]: StoredMemory.of(row) for row in rows}

    async def pinned(self, db: Statements, ids: Sequence[UUID]) -> set[UUID]:
        """Which of some memories are pinned today."""
        return {row["id"] for row in await db.all(_Sql.pinned, ids=list(ids))}

    async def lock(self, tx: Transaction, ids: Sequence[UUID]) -> dict[UUID, StoredMemory]:
        """The same, locked against changes until this transaction ends."""
        return {row["id"]: StoredMemory.of(row) for row in await tx.all(_Sql.lock, ids=list(ids))}

    async def replaced_by(self, db: Statements, memory_id: UUID) -> list[StoredMemory]:
        """What a memory superseded."""
        return [StoredMemory.of(row) for row in await db.all(_Sql.replaced_by, memory_id=memory_id)]

    async def newest(
        self, db: Statements, scope: MemoryScope, chosen: Filter, limit: int, behind: Place | None
    ) -> list[StoredMemory]:
        """A page of the memories in force, newest first; None in the scope means anybody."""
        values = asdict(scope) | asdict(chosen) | {"behind_time": None, "behind_id": None, "limit": limit}
        statement = _Sql.newest_superseded if values.pop("superseded") else _Sql.newest
        if behind is not None:
            values |= {"behind_time": behind.created_at, "behind_id": behind.id}
        if chosen.as_of is None:
            del values["as_of"]
        rows = await db.all(statement if chosen.as_of is None else _Sql.newest_as_of, **values)
        return [StoredMemory.of(row) for row in rows]

    async def change(
        self, tx: Transaction, memory: StoredMemory, new: StoredMemory, moment: datetime, gist: str | None = None
    ) -> StoredMemory:
        """Change a locked memory to `new`; what it was is kept as a version.

        Pass the gist if text or category change.
        """
        identity = None if gist is None else Identity.of(memory.scope, new.category, gist).digest
        await self._keep(tx, memory, moment)
        row = await tx.one(
            _Sql.change,
            id=memory.id,
            text=new.text,
            category=new.category,
            metadata=new.metadata,
            identity=identity,
            valid_from=new.valid_from,
            valid_until=new.valid_until,
            key=new.key,
            slot=slot_of(memory.scope, new.key),
            expires_at=new.expires_at,
            pinned=new.pinned,
            sources=list(new.sources),
            trust=new.trust,
            moment=moment,
        )
        tx.tally.add(memory.scope.user_id, new.text, new.metadata)
        # Versions expire with their memory, so that only the history tells what the time was before.
        expiry = [each and each.isoformat() for each in (memory.expires_at, new.expires_at)]
        detail = None if expiry[0] == expiry[1] else {"expires_at": expiry}
        await self._record(tx, memory.id, memory.scope, "update", memory.text, new.text, moment, detail)
        return StoredMemory.of(row)

    async def supersede(
        self, tx: Transaction, old: StoredMemory, new: StoredMemory, moment: datetime, detail: Mapping[str, Any]
    ) -> None:
        """Supersede a locked memory by a newer one.

        The newer text is only in its own history: here it would survive being forgotten.
        """
        await self._keep(tx, old, moment, new.id)
        await tx.one(_Sql.supersede, id=old.id, successor=new.id, moment=moment)
        told = {"superseded_by": str(new.id), **detail}
        await self._record(tx, old.id, old.scope, "supersede", old.text, None, moment, told)

    async def reinstate(self, tx: Transaction, memory: StoredMemory, moment: datetime) -> StoredMemory:
        """Restore a locked memory."""
        row = await tx.one(_Sql.supersede, id=memory.id, successor=None, moment=moment)
        await self._record(tx, memory.id, memory.scope, "undo", None, memory.text, moment)
        return StoredMemory.of(row)

    async def remove(self, tx: Transaction, ids: Sequence[UUID], event: str) -> list[UUID]:
        """Delete memories; returns those that existed. Their histories stay, without texts."""
        removed = await tx.all(_Sql.remove, ids=list(ids))
        await tx.all(_Sql.blank_history, ids=[row["id"] for row in removed])
        for row in removed:
            scope = MemoryScope(row["user_id"], row["agent_id"], row["session_id"])
            await self._record(tx, row["id"], scope, event, None, None, row["ended"] if event == EXPIRE else None)
        return [row["id"] for row in removed]

    async def expire_versions(self, tx: Transaction, memory: StoredMemory) -> list[str]:
        """Let the past versions of a memory expire when it does; returns them, as their passages name them."""
        rows = await tx.all(_Sql.expire_versions, memory_id=memory.id, expires_at=memory.expires_at)
        return [past_item(memory.id, row["number"]) for row in rows]

    async def versions(self, db: Statements, ids: Sequence[UUID]) -> list[str]:
        """The past versions of some memories, as their passages name them."""
        return [past_item(row["memory_id"], row["number"]) for row in await db.all(_Sql.versions, ids=list(ids))]

    async def hold(self, tx: Transaction, ids: Sequence[UUID]) -> None:
        """Lock memories that are to be removed, so that nobody adds a version meanwhile."""
        await tx.all(_Sql.hold, ids=list(ids))

    async def last_version(self, db: Statements, memory_id: UUID) -> str:
        """The last past version of a memory, as its passages name it."""
        return past_item(memory_id, (await db.one(_Sql.last_version, memory_id=memory_id))["number"])

    async def expired(self, db: Statements, limit: int) -> list[UUID]:
        """Expired memories that are still stored, locked."""
        return [row["id"] for row in await db.all(_Sql.expired, limit=limit)]

    async def hold_scope(self, tx: Transaction, scope: MemoryScope, limit: int) -> list[UUID]:
        """Lock some memories of a scope, superseded and expired ones included; None in the scope means anybody."""
        return [row["id"] for row in await tx.all(_Sql.hold_scope, **asdict(scope), limit=limit)]

    async def history(self, db: Statements, memory_id: UUID) -> list[HistoryEntry]:
        """Everything that happened to a memory, in order."""
        return [
            HistoryEntry(**{**row, "detail": None if row["detail"] is None else json.loads(row["detail"])})
            for row in await db.all(_Sql.history, memory_id=memory_id, expiry_id=uuid5(memory_id, EXPIRE))
        ]

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

    async def _keep(
        self, tx: Transaction, memory: StoredMemory, until: datetime, superseded_by: UUID | None = None
    ) -> None:
        """Keep a memory as it has been until now, as a version."""
        kept = {name: getattr(memory, name) for name in _KEPT}
        await tx.all(_Sql.keep_version, memory_id=memory.id, **kept, superseded_by=superseded_by, until=until)

    async def _record(
        self,
        tx: Transaction,
        memory_id: UUID,
        scope: MemoryScope,
        event: str,
        old: str | None,
        new: str | None,
        moment: datetime | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        here = None if event == EXPIRE else origin.current()
        await tx.all(
            _Sql.record,
            memory_id=memory_id,
            event_id=uuid5(memory_id, EXPIRE) if here is None else uuid7(),
            event=event,
            old=old,
            new=new,
            user_id=scope.user_id,
            session_id=scope.session_id,
            moment=moment,
            detail=None if detail is None else json.dumps(detail),
            author=here and here.author,
            door=here and here.door,
        )


_KEPT = [each.name for each in fields(StoredMemory) if each.name not in ("id", "superseded_by", "sources", "trust")]


def past_item(memory_id: UUID | str, number: int) -> str:
    """What passages call a past version."""
    return f"{memory_id}/{number}"


def memory_of(past: str) -> str:
    """The id of the memory that a past version is of."""
    return past.partition("/")[0]
