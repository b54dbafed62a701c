"""Keyed records: JSON values under a path of labels and a key, which come back as they were sent."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from recollect.checks import Json
from recollect.identifiers import uuid_of
from recollect.storage import citus
from recollect.storage.database import Database, Statements, Transaction
from recollect.storage.record import PAGE_OF_TEXTS, Record
from recollect.storage.sql import Queries, Query

Distance = Literal["cosine", "inner_product", "l2"]
Path = tuple[str, ...]

# Behind everything that begins with a label, byte by byte: no text that PostgreSQL holds comes between.
_NEXT = "\x01"

# As pgvector stores a number of a vector.
BYTES_OF_NUMBER = 4


class _Sql(Queries, file="keyed_records.sql"):
    hold: Query
    put: Query
    shortened: Query
    remove: Query
    find: Query
    search: Query
    paths: Query
    refresh: Query
    drop_expiries: Query
    note_expiries: Query
    expired: Query
    namespaces_with_expired: Query
    of_user: Query
    page_records: Query
    restore_records: Query
    compare_records: Query
    size_records: Query
    shown_records: Query


RECORD = Record(
    "record",
    "records",
    ("id",),
    _Sql.page_records,
    _Sql.restore_records,
    _Sql.compare_records,
    size=_Sql.size_records,
    shown=_Sql.shown_records,
    page_size=PAGE_OF_TEXTS,
)


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A value to keep; JSON as the text that PostgreSQL will store."""

    user_id: str
    path: Path
    key: str
    value: str
    texts: tuple[str, ...] = ()
    """What it is found by."""
    vectors: tuple[str, ...] = ()
    """In the caller's own space, as pgvector's text form."""
    ttl_minutes: float | None = None
    derives_texts: bool = False
    """Whether the texts are what the value says, so that they do not count again."""

    @property
    def id(self) -> UUID:
        return record_id(self.user_id, self.path, self.key)

    def as_json(self, namespace: str) -> str:
        """The columns that a caller gives."""
        fields = {
            "namespace": namespace,
            "id": str(self.id),
            "user_id": self.user_id,
            "path": self.path,
            "key": self.key,
            "texts": self.texts,
            "vectors": self.vectors or None,
            "ttl_minutes": self.ttl_minutes,
        }
        return f'{json.dumps(fields)[:-1]}, "value": {self.value}}}'


class StoredRecord(NamedTuple):
    """A record as it is; `score` says how well it answers a search by meaning."""

    id: UUID
    user_id: str
    path: list[str]
    key: str
    value: Json
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    ttl_minutes: float | None
    score: float | None = None

    @property
    def replaced(self) -> bool:
        """Whether this is not the first value under its key."""
        return self.updated_at != self.created_at


@dataclass(frozen=True, slots=True)
class Question:
    """A question's words and, if there is a model, its vector in the deployment's own space."""

    words: str
    bound: float
    meaning: str | None
    model: str


@dataclass(frozen=True, slots=True)
class OwnVector:
    """A vector in the caller's space, and how to compare with it."""

    vector: str
    distance: Distance


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records of an owner to look at, and which of those in order to return."""

    user_id: str
    under: Path
    filters: str
    """A JSON list of [field, operator, value]."""
    limit: int
    offset: int


def record_id(user_id: str, path: Sequence[str], key: str) -> UUID:
    """One id for each owner, path and key: the primary key keeps them unique."""
    return uuid_of(user_id, *path, key)


class KeyedRecords:
    """Stores values by their keys; making their texts available to search is for a flow."""

    async def put(self, tx: Transaction, records: Sequence[NewRecord]) -> list[StoredRecord]:
        """Store values, each in place of an earlier one under its key."""
        given = "[" + ",".join(record.as_json(tx.namespace) for record in records) + "]"
        stored = [StoredRecord(*row) for row in await tx.all(_Sql.put, records=given)]
        for record in records:
            numbers = sum(vector.count(",") + 1 for vector in record.vectors)
            texts = () if record.derives_texts else record.texts
            address = (*record.path, record.key)
            tx.tally.add(record.user_id, *address, record.value, *texts, size=numbers * BYTES_OF_NUMBER)
        return stored

    async def shortened(self, tx: Transaction, records: Sequence[NewRecord]) -> list[UUID]:
        """Stored records that would be over sooner if these replaced them, locked."""
        lives = {record.id: record.ttl_minutes for record in records if record.ttl_minutes is not None}
        if not lives:
            return []
        rows = await tx.all(_Sql.shortened, ids=list(lives), minutes=list(lives.values()))
        return [row["id"] for row in rows]

    async def remove(self, tx: Transaction, ids: Sequence[UUID]) -> list[UUID]:
        """Delete records; returns those that were there."""
        gone = [row["id"] for row in await tx.all(_Sql.remove, ids=list(ids))]
        await tx.all(_Sql.drop_expiries, ids=gone)
        return gone

    async def find(self, db: Statements, ids: Sequence[UUID]) -> dict[UUID, StoredRecord]:
        """Those of some records that are there and not over."""
        return {row["id"]: StoredRecord(*row) for row in await db.all(_Sql.find, ids=list(ids))}

    async def search(
        self, db: Statements, wanted: Wanted, by: Question | OwnVector | None, no_model: str
    ) -> list[StoredRecord]:
        """Records under a path that pass the filters, the best or else the last changed first."""
        question = by if isinstance(by, Question) else None
        own = by if isinstance(by, OwnVector) else None
        rows = await db.all(
            _Sql.search,
            user_id=wanted.user_id,
            **_range(wanted.under),
            filters=wanted.filters,
            words=None if question is None else question.words,
            bound=1.0 if question is None else question.bound,
            meaning=None if question is None else question.meaning,
            model=no_model if question is None else question.model,
            vector=None if own is None else own.vector,
            distance=None if own is None else own.distance,
            limit=wanted.limit,
            offset=wanted.offset,
        )
        return [StoredRecord(*row) for row in rows]

    async def paths(
        self, db: Statements, user_id: str, patterns: str, max_depth: int | None, limit: int, offset: int
    ) -> list[list[str]]:
        """The paths that an owner's records have, in order; patterns are a JSON list of `match` and `path`."""
        rows = await db.all(
            _Sql.paths, user_id=user_id, patterns=patterns, max_depth=max_depth, limit=limit, offset=offset
        )
        return [row["path"] for row in rows]

    async def refresh(self, tx: Transaction, ids: Sequence[UUID]) -> dict[UUID, datetime]:
        """Let records live on for as long again; returns until when."""
        await tx.all(_Sql.hold, ids=list(ids))
        fresh = {row["id"]: row["expires_at"] for row in await tx.all(_Sql.refresh, ids=list(ids))}
        await self.note_expiries(tx, list(fresh))
        return fresh

    async def note_expiries(self, tx: Transaction, ids: Sequence[UUID]) -> None:
        """Keep in step what maintenance reads of when records are over."""
        await tx.all(_Sql.drop_expiries, ids=list(ids))
        await tx.all(_Sql.note_expiries, ids=list(ids))

    async def expired(self, tx: Transaction, limit: int) -> list[UUID]:
        """Some records that are over, locked."""
        return [row["id"] for row in await tx.all(_Sql.expired, limit=limit)]

    async def namespaces_with_expired(self, database: Database, besides: Sequence[str], limit: int) -> list[str]:
        """Whose records are over, besides some; it looks across namespaces, and sees only their names."""
        async with database.alone() as connection:
            if database.distributed:
                return await citus.namespaces_with_expired(connection, "record_expiries", besides, limit)
            rows = await connection.fetch(_Sql.namespaces_with_expired.text, list(besides), limit)
        return [row["namespace"] for row in rows]

    async def of_user(self, db: Statements, user_id: str, behind: UUID, limit: int) -> list[UUID]:
        """The next records of a user behind an id."""
        return [row["id"] for row in await db.all(_Sql.of_user, user_id=user_id, behind=behind, limit=limit)]


def _range(under: Path) -> Mapping[str, Any]:
    """What begins with a path is one range of all paths."""
    if not under:
        return {"first": None, "behind": None}
    return {"first": list(under), "behind": [*under[:-1], under[-1] + _NEXT]}
