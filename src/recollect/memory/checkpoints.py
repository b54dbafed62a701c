"""Checkpoints: the state of an agent's threads as its framework wrote it, in bytes that only the framework reads."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from recollect.storage.database import Statements, Transaction
from recollect.storage.record import PAGE_OF_TEXTS, Record
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="checkpoints.sql"):
    put: Query
    put_values: Query
    add_writes: Query
    put_writes: Query
    newest: Query
    with_deltas: Query
    remove_older: Query
    remove_runs: Query
    remove_writes_of: Query
    remove_unused_values: Query
    remove_threads: Query
    remove_values: Query
    remove_writes: Query
    copy: Query
    copy_values: Query
    copy_writes: Query
    of_user: Query
    count: Query
    page_checkpoints: Query
    restore_checkpoints: Query
    compare_checkpoints: Query
    size_checkpoints: Query
    page_checkpoint_values: Query
    restore_checkpoint_values: Query
    compare_checkpoint_values: Query
    page_checkpoint_writes: Query
    restore_checkpoint_writes: Query
    compare_checkpoint_writes: Query


RECORD = Record(
    "checkpoint",
    "checkpoints",
    ("thread_id", "checkpoint_ns", "checkpoint_id"),
    _Sql.page_checkpoints,
    _Sql.restore_checkpoints,
    _Sql.compare_checkpoints,
    size=_Sql.size_checkpoints,
    page_size=PAGE_OF_TEXTS,
)
VALUE_RECORD = Record(
    "checkpoint_value",
    "checkpoint_values",
    ("thread_id", "checkpoint_ns", "channel", "version"),
    _Sql.page_checkpoint_values,
    _Sql.restore_checkpoint_values,
    _Sql.compare_checkpoint_values,
    page_size=PAGE_OF_TEXTS,
)
WRITE_RECORD = Record(
    "checkpoint_write",
    "checkpoint_writes",
    ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx"),
    _Sql.page_checkpoint_writes,
    _Sql.restore_checkpoint_writes,
    _Sql.compare_checkpoint_writes,
    page_size=PAGE_OF_TEXTS,
)


class Packed(NamedTuple):
    """A value as the framework packed it, and how."""

    type: str
    body: bytes


class Place(NamedTuple):
    """A checkpoint by its thread, the graph inside a graph that it is of, and its own id."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str


@dataclass(frozen=True, slots=True)
class NewCheckpoint:
    """A checkpoint with the values that are new in it; the others are stored under the versions that it names."""

    place: Place
    parent_id: str | None
    body: Packed
    versions: Mapping[str, str]
    metadata: Mapping[str, Any]
    values: Mapping[str, Packed]
    """By channel; each under the version that the checkpoint has of it."""
    user_id: str = ""


@dataclass(frozen=True, slots=True)
class TaskWrites:
    """What a task wrote: its place, its channel and the value of each."""

    place: Place
    task_id: str
    task_path: str
    writes: Sequence[tuple[int, str, Packed]]


class StoredWrite(NamedTuple):
    """What a task wrote to a channel."""

    task_id: str
    channel: str
    value: Packed


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint as it was put, with the values of its channels and what tasks have written since."""

    place: Place
    parent_id: str | None
    body: Packed
    metadata: Mapping[str, Any]
    values: Mapping[str, Packed]
    writes: Sequence[StoredWrite]


@dataclass(frozen=True, slots=True)
class Which:
    """Checkpoints to read; None means any."""

    thread_id: str | None = None
    checkpoint_ns: str | None = None
    checkpoint_id: str | None = None
    before: str | None = None
    filter: str | None = None
    """JSON text that the metadata must contain."""
    behind: Place | None = None
    """The last one of the page before."""


@dataclass(frozen=True, slots=True)
class Removed:
    """How many rows went, or would."""

    checkpoints: int
    values: int
    writes: int


class Checkpoints:
    """Stores checkpoints; a value that many of them share is stored once."""

    async def put(self, tx: Transaction, checkpoint: NewCheckpoint) -> None:
        """Store a checkpoint and its new values."""
        place = checkpoint.place
        # In one order, so that two writers never wait for each other.
        values = dict(sorted(checkpoint.values.items()))
        if values:
            await tx.all(
                _Sql.put_values,
                thread_id=place.thread_id,
                checkpoint_ns=place.checkpoint_ns,
                channels=list(values),
                versions=[checkpoint.versions[channel] for channel in values],
                types=[value.type for value in values.values()],
                bodies=[value.body for value in values.values()],
            )
        await tx.all(
            _Sql.put,
            **place._asdict(),
            parent_id=checkpoint.parent_id,
            user_id=checkpoint.user_id,
            **checkpoint.body._asdict(),
            versions=json.dumps(checkpoint.versions),
            metadata=json.dumps(checkpoint.metadata),
        )
        texts = checkpoint.versions, checkpoint.metadata
        bodies = (value.body for value in values.values())
        tx.tally.add(checkpoint.user_id, *map(json.dumps, texts), checkpoint.body.body, *bodies)

    async def put_writes(self, tx: Transaction, written: TaskWrites, *, replace: bool) -> None:
        """Store what a task wrote; with `replace`, in place of what it wrote before."""
        await tx.all(
            _Sql.put_writes if replace else _Sql.add_writes,
            **written.place._asdict(),
            task_id=written.task_id,
            task_path=written.task_path,
            places=[place for place, _, _ in written.writes],
            channels=[channel for _, channel, _ in written.writes],
            types=[value.type for _, _, value in written.writes],
            bodies=[value.body for _, _, value in written.writes],
        )
        tx.tally.add(None, *(value.body for _, _, value in written.writes), rows=len(written.writes))

    async def newest(self, db: Statements, which: Which, limit: int) -> list[StoredCheckpoint]:
        """Checkpoints, the newest first."""
        behind = which.behind
        rows = await db.all(
            _Sql.newest,
            thread_id=which.thread_id,
            checkpoint_ns=which.checkpoint_ns,
            checkpoint_id=which.checkpoint_id,
            before=which.before,
            filter=which.filter,
            behind_id=None if behind is None else behind.checkpoint_id,
            behind_thread=None if behind is None else behind.thread_id,
            behind_ns=None if behind is None else behind.checkpoint_ns,
            limit=limit,
        )
        return list(map(_stored, rows))

    async def with_deltas(self, db: Statements, thread_ids: Sequence[str]) -> list[str]:
        """Those of some threads whose checkpoints do not stand alone."""
        return [row["thread_id"] for row in await db.all(_Sql.with_deltas, thread_ids=list(thread_ids))]

    async def remove_older(self, tx: Transaction, thread_ids: Sequence[str]) -> int:
        """Keep only the newest checkpoint of each graph in some threads; returns how many went."""
        return await self._remove_rest(tx, await tx.all(_Sql.remove_older, thread_ids=list(thread_ids)))

    async def remove_runs(self, tx: Transaction, run_ids: Sequence[str]) -> int:
        """Delete the checkpoints that some runs made; returns how many."""
        return await self._remove_rest(tx, await tx.all(_Sql.remove_runs, run_ids=list(run_ids)))

    async def _remove_rest(self, tx: Transaction, gone: Sequence[Any]) -> int:
        """Delete what belongs to no checkpoint any more."""
        threads = [row["thread_id"] for row in gone]
        await tx.all(
            _Sql.remove_writes_of,
            thread_ids=threads,
            spaces=[row["checkpoint_ns"] for row in gone],
            checkpoint_ids=[row["checkpoint_id"] for row in gone],
        )
        await tx.all(_Sql.remove_unused_values, thread_ids=sorted(set(threads)))
        return len(gone)

    async def remove_threads(self, tx: Transaction, thread_ids: Sequence[str]) -> Removed:
        """Delete everything of some threads."""
        statements = (_Sql.remove_threads, _Sql.remove_values, _Sql.remove_writes)
        return Removed(*[len(await tx.all(statement, thread_ids=list(thread_ids))) for statement in statements])

    async def copy(self, tx: Transaction, source: str, target: str) -> int:
        """Copy everything of a thread to another one; returns how many checkpoints."""
        values, writes, copied = [
            await tx.all(statement, source=source, target=target)
            for statement in (_Sql.copy_values, _Sql.copy_writes, _Sql.copy)
        ]
        for row in copied:
            tx.tally.add(row["user_id"], size=row["size"])
        # Checkpoints share values, so these count for the user of the thread.
        owner = copied[0]["user_id"] if copied else None
        tx.tally.add(owner, size=sum(row["size"] for row in values), rows=0)
        tx.tally.add(None, size=sum(row["size"] for row in writes), rows=len(writes))
        return len(copied)

    async def of_user(self, db: Statements, user_id: str, behind: str, limit: int) -> list[str]:
        """The next threads of a user behind an id."""
        rows = await db.all(_Sql.of_user, user_id=user_id, behind=behind, limit=limit)
        return [row["thread_id"] for row in rows]

    async def count(self, db: Statements, thread_ids: Sequence[str]) -> Removed:
        """What there is of some threads."""
        return Removed(*await db.one(_Sql.count, thread_ids=list(thread_ids)))


def _stored(row: Any) -> StoredCheckpoint:
    values = zip(row["channels"] or (), map(Packed, row["types"] or (), row["bodies"] or ()), strict=True)
    written = map(Packed, row["written_types"] or (), row["written_bodies"] or ())
    return StoredCheckpoint(
        Place(row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"]),
        row["parent_id"],
        Packed(row["type"], row["body"]),
        row["metadata"],
        dict(values),
        list(map(StoredWrite, row["tasks"] or (), row["written_channels"] or (), written)),
    )
