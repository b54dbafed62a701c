"""RecordStore: batches of operations on records, whose writes are one transaction and whose texts recall finds."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect import checks, origin
from recollect.errors import Forbidden
from recollect.flows.defence.masking import MasksSecrets, masks
from recollect.flows.indexing.namespace_models import NamespaceModels, SemanticQuery
from recollect.flows.indexing.passage_writer import PassageWriter
from recollect.flows.keyed import operations as ops
from recollect.flows.keyed.operations import (
    MAX_OPERATIONS,
    DeleteRecord,
    GetRecord,
    ListPaths,
    Operation,
    PutRecord,
    SearchRecords,
)
from recollect.language import words
from recollect.memory.changes import Change, Changes, Event
from recollect.memory.index.held import Held
from recollect.memory.index.passages import Excerpt, Passages, Source
from recollect.memory.index.search import NO_MODEL, Search
from recollect.memory.keyed_records import KeyedRecords, NewRecord, OwnVector, Question, StoredRecord
from recollect.storage.database import Database, Statements

RECORD = "record"
_SHORTENED = (
    "A key without role admin cannot make a stored record expire sooner, because that deletes it: leave out "
    "ttl_minutes, pass a larger one, or use a key with role admin"
)
EXPIRED: Mapping[str, Any] = {"because": "expired"}

# Records that leave in one transaction.
SWEPT_AT_ONCE = 500

Answer = StoredRecord | list[StoredRecord] | list[list[str]] | bool | None
"""Of a get the record or None, of a put the record, of a delete whether it was there, of the others a list."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What became of each operation, in their order; `degraded` says why a text was not embedded or searched."""

    answers: list[Answer]
    degraded: str | None = None


@dataclass(slots=True)
class _Work:
    """What a batch asks for, by the places of its operations."""

    gets: dict[int, UUID] = field(default_factory=dict)
    writes: dict[UUID, NewRecord] = field(default_factory=dict)
    """The last value of each record."""
    deleted: set[UUID] = field(default_factory=set)
    """Those that are to go; their values only lock them."""
    places: dict[int, UUID] = field(default_factory=dict)
    refreshed: set[UUID] = field(default_factory=set)
    degraded: str | None = None


class RecordStore(MasksSecrets):
    """Values under keys: read and written by key, and found by what they say."""

    def __init__(
        self,
        database: Database,
        keyed_records: KeyedRecords,
        passages: Passages,
        held: Held,
        changes: Changes,
        search: Search,
        passage_writer: PassageWriter,
        namespace_models: NamespaceModels,
    ) -> None:
        self._database = database
        self._records = keyed_records
        self._passages = passages
        self._held = held
        self._changes = changes
        self._search = search
        self._passage_writer = passage_writer
        self._namespace_models = namespace_models

    @masks("operations")
    async def batch(self, namespace: str, operations: Sequence[Operation], user_id: str | None = None) -> Batch:
        """Do operations on the records of a user, or of nobody, all or none.

        Reads see what was there before the writes of the batch. Of several writes to one record the last counts.
        """
        owner = "" if user_id is None else checks.identifier(user_id, "user_id")
        checks.between(len(operations), 1, MAX_OPERATIONS, "the number of operations")
        work = _checked(owner, operations)
        answers: list[Answer] = [None] * len(operations)
        await self._read(namespace, owner, operations, work, answers)
        await self._refresh(namespace, sorted(work.refreshed))
        if work.writes:
            stored, gone = await self._write(namespace, work)
            for place, record_id in work.places.items():
                is_put = isinstance(operations[place], PutRecord)
                answers[place] = stored.get(record_id) if is_put else record_id in gone
        return Batch(answers, work.degraded)

    async def sweep(self, namespace: str) -> int:
        """Remove some records whose time is over; returns how many there were."""
        with origin.own_work():
            async with self._database.transaction(namespace) as tx:
                over = await self._records.expired(tx, SWEPT_AT_ONCE)
                if over:
                    await self._records.remove(tx, over)
                    await self._passages.remove_items(tx, RECORD, list(map(str, over)))
                    await self._held.remove(tx, RECORD, list(map(str, over)))
                    await self._changes.record(tx, [Change("delete", RECORD, str(each), EXPIRED) for each in over])
        return len(over)

    async def _read(
        self, namespace: str, owner: str, operations: Sequence[Operation], work: _Work, answers: list[Answer]
    ) -> None:
        if all(isinstance(operation, PutRecord | DeleteRecord) for operation in operations):
            return
        asked = await self._questions(namespace, operations, work)
        async with self._database.searching(namespace) as db:
            found = await self._records.find(db, list(work.gets.values())) if work.gets else {}
            for place, operation in enumerate(operations):
                if isinstance(operation, GetRecord):
                    answers[place] = found.get(work.gets[place])
                    work.refreshed |= {work.gets[place]} if operation.refresh else set()
                elif isinstance(operation, ListPaths):
                    answers[place] = await self._records.paths(
                        db, owner, ops.patterns(operation), operation.max_depth, operation.limit, operation.offset
                    )
                elif isinstance(operation, SearchRecords):
                    best = await self._searched(db, owner, operation, asked.get(operation.query or ""))
                    work.refreshed |= {each.id for each in best} if operation.refresh else set()
                    answers[place] = best
        expiring = (each for answer in answers for each in (answer if isinstance(answer, list) else [answer]))
        lasting = {each.id for each in expiring if isinstance(each, StoredRecord) and each.ttl_minutes is not None}
        work.refreshed &= lasting

    async def _questions(
        self, namespace: str, operations: Sequence[Operation], work: _Work
    ) -> dict[str, SemanticQuery]:
        """Every question that is asked, embedded before a connection is taken."""
        asked: dict[str, SemanticQuery] = {}
        for operation in operations:
            if isinstance(operation, SearchRecords) and operation.query and operation.vector is None:
                asked[operation.query] = await self._namespace_models.question(namespace, operation.query)
        work.degraded = next((query.degraded for query in asked.values() if query.degraded is not None), None)
        return asked

    async def _searched(
        self, db: Statements, owner: str, operation: SearchRecords, query: SemanticQuery | None
    ) -> list[StoredRecord]:
        by: Question | OwnVector | None = ops.own_vector(operation)
        if by is None and query is not None and operation.query is not None:
            by = await self._question(db, owner, operation.query, query)
        found = await self._records.search(db, ops.wanted(owner, operation), by, NO_MODEL)
        if query is not None:
            query.require(not found or any(each.score for each in found))
        return found

    async def _question(self, db: Statements, owner: str, text: str, query: SemanticQuery) -> Question:
        terms = [term.variants for term in words.query_terms(text)]
        lexical = await self._search.lexical(db, owner or None, terms)
        meaning = query.meaning
        vector, model = (None, NO_MODEL) if meaning is None else (meaning.vector, meaning.model)
        return Question(lexical.vector, lexical.bound or 1.0, vector, model)

    async def _refresh(self, namespace: str, ids: Sequence[UUID]) -> None:
        """What was read lives on, and so do its passages; what a reader sees who may not write does not."""
        if not ids or not origin.may("write"):
            return
        async with self._database.transaction(namespace) as tx:
            until: dict[datetime, list[str]] = {}
            for record_id, moment in (await self._records.refresh(tx, ids)).items():
                until.setdefault(moment, []).append(str(record_id))
            for moment, item_ids in until.items():
                await self._passages.expire(tx, RECORD, item_ids, moment)

    async def _write(self, namespace: str, work: _Work) -> tuple[dict[UUID, StoredRecord], set[UUID]]:
        new = list(work.writes.values())
        excerpts, prepared = await self._passage_writer.prepare_each(namespace, [each.texts for each in new])
        ids = sorted(work.writes)
        async with self._database.transaction(namespace) as tx:
            if not origin.may("admin") and await self._records.shortened(tx, new):
                raise Forbidden(_SHORTENED)
            stored = {each.id: each for each in await self._records.put(tx, new)}
            gone = {each for each in work.deleted if stored.pop(each).replaced}
            if work.deleted:
                await self._records.remove(tx, sorted(work.deleted))
            await self._records.note_expiries(tx, list(stored))
            replaced = await self._passages.of_items(tx, RECORD, list(map(str, ids)))
            sources = [
                _source(stored[each.id], passages)
                for each, passages in zip(new, excerpts, strict=True)
                if each.id in stored
            ]
            await self._held.remove(tx, RECORD, list(map(str, sorted(work.deleted))))
            await self._passage_writer.replace(tx, replaced, sources, prepared)
            await self._changes.record(tx, _changes(stored, gone))
        self._passage_writer.committed(namespace, prepared)
        work.degraded = work.degraded or prepared.degraded
        return stored, gone


def _checked(owner: str, operations: Sequence[Operation]) -> _Work:
    """Check every operation, so that none is done if one cannot be."""
    work = _Work()
    for place, operation in enumerate(operations):
        if isinstance(operation, GetRecord):
            work.gets[place] = ops.address(owner, operation)
        elif isinstance(operation, PutRecord):
            record = ops.new_record(owner, operation)
            work.places[place] = record.id
            work.writes[record.id] = record
            work.deleted.discard(record.id)
        elif isinstance(operation, DeleteRecord):
            work.places[place] = ops.address(owner, operation)
            work.writes[work.places[place]] = NewRecord(owner, operation.path, operation.key, "null")
            work.deleted.add(work.places[place])
        elif isinstance(operation, SearchRecords):
            ops.wanted(owner, operation)
            ops.own_vector(operation)
        else:
            ops.patterns(operation)
    return work


def _source(record: StoredRecord, excerpts: tuple[Excerpt, ...]) -> Source:
    return Source(
        RECORD,
        str(record.id),
        excerpts,
        record.updated_at,
        owner=record.user_id,
        metadata=json.dumps({"path": record.path, "key": record.key}, ensure_ascii=False),
        beside=json.dumps({"value": record.value}, ensure_ascii=False),
        expires_at=record.expires_at,
    )


def _changes(stored: Mapping[UUID, StoredRecord], gone: set[UUID]) -> list[Change]:
    told: list[Change] = []
    for record in stored.values():
        event: Event = "update" if record.replaced else "add"
        told.append(Change(event, RECORD, str(record.id)))
    return told + [Change("delete", RECORD, str(each)) for each in gone]
