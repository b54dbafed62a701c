"""Working memory: the few things that matter right now; what must make room is archived, never lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from recollect.errors import Conflict
from recollect.storage.database import Statements, Transaction
from recollect.storage.record import Record
from recollect.storage.sql import Queries, Query

CAPACITY = 10
DEFAULT_IMPORTANCE = 0.5

# Above this an item is critical, and makes room only when all the others are critical, too.
CRITICAL = 0.8

EVICTED = "LRU_EVICTION"
ARCHIVED = "MANUAL_ARCHIVE"
REASONS = (EVICTED, ARCHIVED)


class _Sql(Queries, file="working.sql"):
    open: Query
    lock: Query
    places: Query
    add: Query
    refresh: Query
    take: Query
    archive: Query
    items: Query
    items_then: Query
    stale: Query
    remove_stale: Query
    page_working_items: Query
    restore_working_items: Query
    compare_working_items: Query
    size_working_items: Query
    shown_working_items: Query
    shown_stale_items: Query
    page_stale_items: Query
    restore_stale_items: Query
    compare_stale_items: Query


RECORD = Record(
    "working_item",
    "working_items",
    ("id",),
    _Sql.page_working_items,
    _Sql.restore_working_items,
    _Sql.compare_working_items,
    size=_Sql.size_working_items,
    shown=_Sql.shown_working_items,
)
STALE_RECORD = Record(
    "stale_item",
    "stale_items",
    ("id",),
    _Sql.page_stale_items,
    _Sql.restore_stale_items,
    _Sql.compare_stale_items,
    shown=_Sql.shown_stale_items,
)


@dataclass(frozen=True, slots=True)
class WorkingItem:
    """Something to keep in mind."""

    id: int
    content: str
    importance: float
    last_accessed: datetime
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StaleItem:
    """Something that left working memory."""

    id: int
    original_content: str
    importance: float
    reason: str
    archived_at: datetime


@dataclass(frozen=True, slots=True)
class WorkingUpdate:
    """The item that was added or refreshed, the one that made room for it, and that one's id in the archive."""

    added_id: int
    evicted_id: int | None = None
    archived_id: int | None = None
    refreshed: bool = False
    """Whether the item was there before."""


class Place(NamedTuple):
    """An item as eviction sees it."""

    id: int
    importance: float
    last_accessed: datetime


class Working:
    """Holds at most `CAPACITY` items a namespace, whatever the number of writers."""

    async def update(self, tx: Transaction, content: str, importance: float | None) -> WorkingUpdate:
        """Add an item, or refresh the one that says the same; a full memory archives one to make room.

        That may be the new one: it is not critical, and all the others are.
        """
        await self._hold(tx)
        rows = await tx.all(_Sql.places, content=content)
        for row in rows:
            if row["same"]:
                kept = row["importance"] if importance is None else importance
                await tx.all(_Sql.refresh, id=row["id"], importance=kept, at=row["now"])
                return WorkingUpdate(row["id"], refreshed=True)
        places = [Place(row["id"], row["importance"], row["last_accessed"]) for row in rows]
        importance = DEFAULT_IMPORTANCE if importance is None else importance
        added: int = (await tx.one(_Sql.add, content=content, importance=importance))["id"]
        tx.tally.add(None, content)
        if len(places) < CAPACITY:
            return WorkingUpdate(added)
        is_last = importance <= CRITICAL and all(place.importance > CRITICAL for place in places)
        evicted = added if is_last else to_evict(places)
        return WorkingUpdate(added, evicted, await self._move(tx, evicted, EVICTED))

    async def require_room(self, tx: Transaction) -> None:
        """Refuse what this transaction has put in by other ways, if it is more than fits."""
        await self._hold(tx)
        if len(await tx.all(_Sql.places, content="")) > CAPACITY:
            raise Conflict(
                f"Working memory already has {CAPACITY} items: first delete some with `recollect forget working:ID`"
            )

    async def archive(self, tx: Transaction, item_id: int) -> int | None:
        """Take one item out of working memory; returns its id in the archive, or None if there is no such item."""
        await self._hold(tx)
        return await self._move(tx, item_id, ARCHIVED)

    async def items(self, db: Statements, as_of: datetime | None = None) -> list[WorkingItem]:
        """Everything in working memory, or what was there at a moment, the last accessed first."""
        rows = await (db.all(_Sql.items) if as_of is None else db.all(_Sql.items_then, as_of=as_of))
        return [WorkingItem(*row) for row in rows]

    async def stale(
        self,
        db: Statements,
        since: datetime,
        until: datetime | None,
        reason: str | None,
        importance_min: float | None,
        limit: int,
    ) -> list[StaleItem]:
        """What left working memory, the last archived first."""
        rows = await db.all(
            _Sql.stale, since=since, until=until, reason=reason, importance_min=importance_min, limit=limit
        )
        return [StaleItem(*row) for row in rows]

    async def remove(self, tx: Transaction, item_id: int) -> bool:
        """Delete one item of working memory without archiving it; False if there is none."""
        await self._hold(tx)
        return await tx.first(_Sql.take, item_id=item_id) is not None

    async def remove_stale(self, tx: Transaction, item_id: int) -> bool:
        """Delete one item of the archive; False if there is none."""
        return await tx.first(_Sql.remove_stale, item_id=item_id) is not None

    async def _hold(self, tx: Transaction) -> None:
        await tx.all(_Sql.open)
        await tx.one(_Sql.lock)

    async def _move(self, tx: Transaction, item_id: int, reason: str) -> int | None:
        taken = await tx.first(_Sql.take, item_id=item_id)
        if taken is None:
            return None
        archived = await tx.one(
            _Sql.archive,
            content=taken["content"],
            importance=taken["importance"],
            reason=reason,
            item_id=taken["id"],
            created_at=taken["created_at"],
            last_accessed=taken["last_accessed"],
        )
        return int(archived["id"])


def to_evict(places: Sequence[Place]) -> int:
    """The least recently used that is not critical; if all are, the least important, then least recently used."""
    all_critical = all(place.importance > CRITICAL for place in places)
    return min(
        (place for place in places if all_critical or place.importance <= CRITICAL),
        key=lambda place: (place.importance if all_critical else 0.0, place.last_accessed, place.id),
    ).id
