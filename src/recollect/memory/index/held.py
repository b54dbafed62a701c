"""Held: which items somebody should look at and why, and how many secrets were written over."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from recollect.storage.database import Statements, Transaction
from recollect.storage.sql import Queries, Query

State = Literal["held", "warned", "released"]
"""Held items are not recalled, warned ones are, and released ones are again."""

MAX_COUNTED = 10_000


class _Sql(Queries, file="held.sql"):
    put: Query
    find: Query
    lock: Query
    decide: Query
    remove: Query
    retire: Query
    page: Query
    count: Query
    add_masked: Query
    masked: Query


class NewlyHeld(NamedTuple):
    """An item that was judged as it was stored."""

    kind: str
    item_id: str
    state: State
    reasons: Sequence[str]
    trust: str
    digest: bytes
    author: str | None
    door: str


class HeldItem(NamedTuple):
    """An item and what became of it."""

    kind: str
    item_id: str
    state: State
    reasons: list[str]
    trust: str
    digest: bytes
    author: str | None
    door: str
    at: datetime
    decided_by: str | None
    decided_at: datetime | None


class HeldPlace(NamedTuple):
    """A place in the list, newest first."""

    at: datetime
    kind: str
    item_id: str


class Held:
    """Keeps the list. Whether an item has passages is for others to see to."""

    async def put(self, tx: Transaction, items: Sequence[NewlyHeld]) -> None:
        """Note items, in place of what was noted of them before."""
        await tx.all(
            _Sql.put,
            kinds=[item.kind for item in items],
            item_ids=[item.item_id for item in items],
            states=[item.state for item in items],
            reasons=["\n".join(item.reasons) for item in items],
            trusts=[item.trust for item in items],
            digests=[item.digest for item in items],
            authors=[item.author for item in items],
            doors=[item.door for item in items],
        )

    async def find(self, db: Statements, kind: str, item_ids: Sequence[str]) -> dict[str, HeldItem]:
        """The notes on some items of one kind."""
        rows = await db.all(_Sql.find, kind=kind, item_ids=list(item_ids))
        return {row["item_id"]: HeldItem(*row) for row in rows}

    async def lock(self, tx: Transaction, kind: str, item_id: str) -> HeldItem | None:
        """One item, which nobody else decides on meanwhile."""
        row = await tx.first(_Sql.lock, kind=kind, item_id=item_id)
        return None if row is None else HeldItem(*row)

    async def release(self, tx: Transaction, kind: str, item_id: str, by: str | None) -> None:
        """Note that somebody has released an item."""
        await tx.all(_Sql.decide, kind=kind, item_id=item_id, decided_by=by)

    async def remove(self, tx: Transaction, kind: str, item_ids: Sequence[str]) -> None:
        """Drop the notes on some items."""
        await tx.all(_Sql.remove, kind=kind, item_ids=list(item_ids))

    async def retire(self, tx: Transaction, kind: str, item_id: str, past_kind: str, past_item_id: str) -> None:
        """Hold what an item was until now, if it is held. Nobody is asked about past versions."""
        names = {"kind": kind, "item_id": item_id, "past_kind": past_kind, "past_item_id": past_item_id}
        await tx.all(_Sql.retire, **names)

    async def page(
        self, db: Statements, states: Sequence[State], limit: int, behind: HeldPlace | None = None
    ) -> list[HeldItem]:
        """Items in some states, the newest first."""
        time, kind, item_id = behind or (None, None, None)
        rows = await db.all(
            _Sql.page,
            states=list(states),
            limit=limit,
            behind_time=time,
            behind_kind=kind,
            behind_id=item_id,
        )
        return [HeldItem(*row) for row in rows]

    async def count(self, db: Statements) -> dict[str, int]:
        """How many wait for somebody, by state and up to a bound."""
        return {row["state"]: row["items"] for row in await db.all(_Sql.count, at_most=MAX_COUNTED)}

    async def add_masked(self, tx: Transaction, counts: Mapping[str, int]) -> None:
        """Add to the counts of secrets by kind."""
        await tx.all(_Sql.add_masked, kinds=list(counts), counts=list(counts.values()))

    async def masked(self, db: Statements) -> dict[str, int]:
        """How many secrets of each kind were written over."""
        return {row["kind"]: row["count"] for row in await db.all(_Sql.masked)}
