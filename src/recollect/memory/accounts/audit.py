"""AuditLog: the audit lines of a namespace, as a hash chain."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, Self

from recollect.storage.database import Statements, Transaction
from recollect.storage.sql import Queries, Query

Outcome = Literal["done", "refused", "failed"]
OUTCOMES: tuple[Outcome, ...] = ("done", "refused", "failed")

START = bytes(32)
"""The hash before the first line."""


class _Sql(Queries, file="audit.sql"):
    lock: Query
    append: Query
    advance: Query
    head: Query
    since: Query
    newest: Query
    first_from: Query
    hash_of: Query
    remove: Query
    anchor: Query


@dataclass(frozen=True, slots=True)
class Entry:
    """An operation that has no place in the chain yet."""

    key_id: str | None
    author: str | None
    door: str
    action: str
    outcome: str
    request_id: str | None
    touched: list[dict[str, Any]]
    """For each event and kind: the number of items, and the first ids."""


@dataclass(frozen=True, slots=True)
class Line:
    """An operation in the chain."""

    number: int
    at: datetime
    entry: Entry
    hash: bytes

    @classmethod
    def of(cls, row: Any) -> Self:
        """From its row."""
        number, at, *fields, own_hash = row
        return cls(number, at, Entry(*fields), own_hash)

    def fields(self, namespace: str) -> dict[str, Any]:
        """The line as it is exported, without the hash."""
        entry = self.entry
        return {
            "namespace": namespace,
            "number": self.number,
            "at": self.at.astimezone(UTC).isoformat(timespec="microseconds"),
            "key_id": entry.key_id,
            "author": entry.author,
            "door": entry.door,
            "action": entry.action,
            "outcome": entry.outcome,
            "request_id": entry.request_id,
            "touched": entry.touched,
        }

    def hash_after(self, previous: bytes, namespace: str) -> bytes:
        """What its hash must be, given the hash of the line before."""
        return hash_after(previous, self.fields(namespace))


@dataclass(frozen=True, slots=True)
class Place:
    """The number and hash of a line."""

    number: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """Both ends of a chain: the line before the first, and the last."""

    anchor: Place
    last: Place
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Selects lines that match every field that is set."""

    by: str | None = None
    """The id or label of a key, or a gateway user."""
    door: str | None = None
    action: str | None = None
    outcome: str | None = None
    kind: str | None = None
    item_id: str | None = None

    def touched(self) -> str | None:
        """What `touched` must contain, as JSON."""
        item = ({} if self.kind is None else {"kind": self.kind}) | (
            {} if self.item_id is None else {"ids": [self.item_id]}
        )
        return json.dumps([item]) if item else None


def hash_after(previous: bytes, fields: Mapping[str, Any]) -> bytes:
    """The hash of a line: SHA-256 of the hash before it and of its fields, as canonical JSON."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(previous + text.encode()).digest()


class AuditLog:
    """Adds lines to the end of the chain, reads them, and removes the oldest."""

    async def lock(self, tx: Transaction) -> tuple[int, datetime, bytes]:
        """Lock the chain; returns the number of its last line, the time for the next, and the last hash."""
        now = datetime.now(UTC)
        row = await tx.one(_Sql.lock, at=now, start=START)
        # Clocks differ between servers and may be set back; times in the chain must not.
        return row["number"], max(now, row["at"]), row["hash"]

    async def append(self, tx: Transaction, entries: Sequence[Entry]) -> Place:
        """Append lines; returns the last. The chain stays locked until the transaction ends."""
        number, at, previous = await self.lock(tx)
        lines = []
        for entry in entries:
            number += 1
            line = Line(number, at, entry, b"")
            previous = line.hash_after(previous, tx.namespace)
            lines.append(replace(line, hash=previous))
        await tx.all(
            _Sql.append,
            numbers=[line.number for line in lines],
            times=[line.at for line in lines],
            key_ids=[entry.key_id for entry in entries],
            authors=[entry.author for entry in entries],
            doors=[entry.door for entry in entries],
            actions=[entry.action for entry in entries],
            outcomes=[entry.outcome for entry in entries],
            request_ids=[entry.request_id for entry in entries],
            touched=[json.dumps(entry.touched) for entry in entries],
            hashes=[line.hash for line in lines],
        )
        await tx.all(_Sql.advance, number=number, at=at, hash=previous)
        return Place(number, previous)

    async def head(self, db: Statements) -> Head:
        """Where the chain begins and ends."""
        row = await db.first(_Sql.head)
        if row is None:
            return Head(Place(0, START), Place(0, START))
        return Head(Place(row["anchor"], row["anchor_hash"]), Place(row["number"], row["hash"]), row["at"])

    async def since(self, db: Statements, number: int, limit: int) -> list[Line]:
        """The next lines after a number, in order."""
        return [Line.of(row) for row in await db.all(_Sql.since, since=number, limit=limit)]

    async def newest(self, db: Statements, before: int, least: int, limit: int, chosen: AuditFilter) -> list[Line]:
        """Matching lines from `least` up to, but not including, `before`; newest first."""
        values = {"by": chosen.by, "door": chosen.door, "action": chosen.action, "outcome": chosen.outcome}
        bounds = {"before": before, "least": least, "limit": limit, "touched": chosen.touched()}
        return [Line.of(row) for row in await db.all(_Sql.newest, **values, **bounds)]

    async def last_before(self, db: Statements, head: Head, moment: datetime) -> Place:
        """The last line before a moment."""
        first = await db.first(_Sql.first_from, moment=moment)
        number = head.last.number if first is None else first["number"] - 1
        row = await db.first(_Sql.hash_of, number=number)
        return head.anchor if row is None else Place(number, row["hash"])

    async def remove(self, tx: Transaction, last: Place) -> None:
        """Delete the lines up to and including one, from which the chain then continues."""
        await tx.all(_Sql.remove, number=last.number)
        await tx.all(_Sql.anchor, number=last.number, hash=last.hash)
