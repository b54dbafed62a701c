"""Changes: what happened to the items of a namespace, numbered in the order of commits, by ids and without content."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

from recollect import origin
from recollect.origin import Origin
from recollect.storage.database import Statements, Transaction
from recollect.storage.sql import Queries, Query

Event = Literal["add", "update", "delete", "forget", "import"]
"""A deleted item may leave traces, such as a history; of a forgotten one nothing is left but its id."""
EVENTS: tuple[str, ...] = get_args(Event)


class _Sql(Queries, file="changes.sql"):
    record: Query
    hold: Query
    since: Query
    newest: Query
    first: Query
    last: Query
    before: Query
    of_item: Query
    erase: Query
    erase_turn: Query


RELEASED = "released_despite"
"""In the detail of an update: a person released the item from review, and this is why it had been held."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something to be recorded. A turn of messages is one change, of its session; see `turn`."""

    event: Event
    kind: str
    item_id: str
    detail: Mapping[str, Any] | None = None
    by: Origin | None = None
    """Whose work it is, if it is not the present caller's."""

    @property
    def items(self) -> int:
        """How many items it is a change of."""
        return self.detail["count"] if self.kind == "message" and self.detail and "count" in self.detail else 1

    @classmethod
    def turn(cls, event: Event, session_id: str, first: int, count: int, by: Origin | None = None) -> "Change":
        """Messages next to each other in a session, by the position of the first."""
        return cls(event, "message", session_id, {"first": first, "count": count}, by)


class Recorded(NamedTuple):
    """A change as it is read; the number is the place in the namespace's order."""

    number: int
    at: datetime
    event: str
    kind: str
    item_id: str
    author: str | None
    door: str
    detail: dict[str, Any] | None


class Changes:
    """Records changes and reads them back in order."""

    async def record(self, tx: Transaction, changes: Sequence[Change]) -> None:
        """Record changes, which must be the last thing a transaction does: it locks the counter of the namespace."""
        if not changes:
            return
        here = origin.current()
        for change in changes:
            # What is done for somebody else is told of by whoever asked for it.
            if here.touched is not None and change.by is None:
                here.touched.note(tx.namespace, change.event, change.kind, [change.item_id], change.items)
        origins = [change.by or here for change in changes]
        await tx.one(
            _Sql.record,
            events=[change.event for change in changes],
            kinds=[change.kind for change in changes],
            item_ids=[change.item_id for change in changes],
            details=[None if change.detail is None else json.dumps(change.detail) for change in changes],
            authors=[each.author for each in origins],
            doors=[each.door for each in origins],
        )

    async def hold(self, tx: Transaction) -> None:
        """Let no other transaction of the namespace record or hold until this one ends; the last lock it waits for."""
        await tx.one(_Sql.hold)

    async def since(self, db: Statements, number: int, limit: int) -> list[Recorded]:
        """The next changes behind a number, in order. None is missing among them, and none will come before them."""
        return [Recorded._make(row) for row in await db.all(_Sql.since, since=number, limit=limit)]

    async def newest(
        self, db: Statements, number: int, least: int, limit: int, kind: str | None, event: str | None
    ) -> list[Recorded]:
        """The changes ahead of a number, the newest first, down to another number."""
        values = {"before": number, "least": least, "limit": limit, "kind": kind, "event": event}
        return [Recorded._make(row) for row in await db.all(_Sql.newest, **values)]

    async def first_at(self, db: Statements) -> datetime | None:
        """When the first change was made that is still known."""
        row = await db.first(_Sql.first)
        return None if row is None else row["at"]

    async def last(self, db: Statements) -> int:
        """The number of the last change; 0 if there was none."""
        row = await db.first(_Sql.last)
        return 0 if row is None else int(row["last"])

    async def before(self, db: Statements, moments: Sequence[datetime]) -> dict[datetime, int]:
        """How many changes there were before each of some moments; at the cost of a few index lookups for each.

        Erased changes count; when they were made is an estimate.
        """
        return {row["moment"]: row["changes"] for row in await db.all(_Sql.before, moments=list(moments))}

    async def of_item(self, db: Statements, kind: str, item_id: str) -> list[Recorded]:
        """What happened to one item, the oldest first."""
        return [Recorded._make(row) for row in await db.all(_Sql.of_item, kind=kind, item_id=item_id)]

    async def erase(self, tx: Transaction, kind: str, item_ids: Sequence[str]) -> None:
        """Delete what is known of some items; of messages, of their whole sessions."""
        await tx.all(_Sql.erase, kind=kind, item_ids=list(item_ids))

    async def erase_turn(self, tx: Transaction, session_id: str, position: int) -> None:
        """Delete the turn that had a message at a position, if none of its messages is left."""
        await tx.all(_Sql.erase_turn, session_id=session_id, position=position)
