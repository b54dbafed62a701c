"""Stores: folders of files that agents keep, each with a name and maybe a user."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from uuid import UUID

from recollect.identifiers import uuid7
from recollect.storage.database import Statements, Transaction
from recollect.storage.record import Record
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="stores.sql"):
    add: Query
    find: Query
    lock: Query
    hold: Query
    first_of_name: Query
    change: Query
    archive: Query
    newest: Query
    of_user: Query
    remove: Query
    page_memory_stores: Query
    restore_memory_stores: Query
    compare_memory_stores: Query
    size_memory_stores: Query
    shown_memory_stores: Query


RECORD = Record(
    "memory_store",
    "memory_stores",
    ("id",),
    _Sql.page_memory_stores,
    _Sql.restore_memory_stores,
    _Sql.compare_memory_stores,
    size=_Sql.size_memory_stores,
    shown=_Sql.shown_memory_stores,
)


@dataclass(frozen=True, slots=True)
class Store:
    """One store; an archived one takes no more writes."""

    id: UUID
    name: str
    description: str
    metadata: dict[str, str]
    user_id: str | None
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


def slot_of(name: str, user_id: str | None) -> bytes:
    """The one place that stores of a name and a user have, if they are made only where there is none."""
    return sha256(json.dumps([name, user_id]).encode()).digest()


@dataclass(frozen=True, slots=True)
class StoreFilter:
    """Which stores; None means all. Archived ones only where they are asked for."""

    with_archived: bool = False
    since: datetime | None = None
    until: datetime | None = None
    name: str | None = None
    user_id: str | None = None


class Stores:
    """Keeps stores, without what is in them."""

    async def add(
        self,
        tx: Transaction,
        name: str,
        description: str,
        metadata: str,
        user_id: str | None,
        slot: bytes | None = None,
    ) -> Store | None:
        """A new store; metadata is JSON text. None if there is one in the slot."""
        row = await tx.first(
            _Sql.add,
            id=uuid7(),
            name=name,
            description=description,
            metadata=metadata,
            user_id=user_id,
            slot=slot,
        )
        if row is None:
            return None
        tx.tally.add(user_id, name, description, metadata)
        return Store(*row)

    async def first_of_name(self, db: Statements, name: str, user_id: str | None) -> Store | None:
        """The oldest store of a name that is a user's, or nobody's, and takes changes."""
        row = await db.first(_Sql.first_of_name, name=name, user_id=user_id)
        return None if row is None else Store(*row)

    async def find(self, db: Statements, store_id: UUID) -> Store | None:
        """A store, if there is one of this id."""
        row = await db.first(_Sql.find, id=store_id)
        return None if row is None else Store(*row)

    async def lock(self, tx: Transaction, store_id: UUID) -> Store | None:
        """The same, locked until the transaction ends."""
        row = await tx.first(_Sql.lock, id=store_id)
        return None if row is None else Store(*row)

    async def hold(self, tx: Transaction, ids: Sequence[UUID]) -> None:
        """Lock some stores, so that nobody writes into them any more."""
        await tx.all(_Sql.hold, ids=list(ids))

    async def change(self, tx: Transaction, store_id: UUID, name: str, description: str, metadata: str) -> Store:
        """Set the name, description and metadata of a store, which is locked."""
        store = Store(*await tx.one(_Sql.change, id=store_id, name=name, description=description, metadata=metadata))
        tx.tally.add(store.user_id, name, description, metadata)
        return store

    async def archive(self, tx: Transaction, store_id: UUID) -> Store | None:
        """Archive a store; None if it is archived already."""
        row = await tx.first(_Sql.archive, id=store_id)
        return None if row is None else Store(*row)

    async def newest(
        self, db: Statements, chosen: StoreFilter, behind: tuple[datetime, UUID] | None, limit: int
    ) -> list[Store]:
        """The next stores behind a place in the list, newest first."""
        time, store_id = behind or (None, None)
        rows = await db.all(
            _Sql.newest,
            with_archived=chosen.with_archived,
            since=chosen.since,
            until=chosen.until,
            name=chosen.name,
            user_id=chosen.user_id,
            behind_time=time,
            behind_id=store_id,
            limit=limit,
        )
        return [Store(*row) for row in rows]

    async def of_user(self, db: Statements, user_id: str, behind: UUID, limit: int) -> list[UUID]:
        """The next stores of a user behind an id."""
        return [row["id"] for row in await db.all(_Sql.of_user, user_id=user_id, behind=behind, limit=limit)]

    async def remove(self, tx: Transaction, ids: Sequence[UUID]) -> int:
        """Delete stores; returns how many there were."""
        return len(await tx.all(_Sql.remove, ids=list(ids)))
