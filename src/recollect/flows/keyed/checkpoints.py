"""CheckpointStore: the checkpoints of an agent's threads, put and read whole; nothing in them is searched."""

from collections.abc import Sequence
from typing import Literal

from recollect import checks
from recollect.errors import Conflict, Invalid
from recollect.flows.defence.masking import MasksSecrets, masks
from recollect.memory.checkpoints import (
    Checkpoints,
    NewCheckpoint,
    Packed,
    Place,
    StoredCheckpoint,
    TaskWrites,
    Which,
)
from recollect.storage.database import Database

MAX_PAGE = 100
MAX_THREADS = 1_000
MAX_CHANNELS = 10_000
MAX_NAME_BYTES = 500
"""Of the ids and names that a row is known by, which must fit into an entry of an index together."""

Strategy = Literal["keep_latest", "delete"]
STRATEGIES: tuple[Strategy, ...] = ("keep_latest", "delete")


class CheckpointStore(MasksSecrets):
    """Keeps the state of threads for the framework that runs them."""

    def __init__(self, database: Database, checkpoints: Checkpoints) -> None:
        self._database = database
        self._checkpoints = checkpoints

    @masks("checkpoint")
    async def put(self, namespace: str, checkpoint: NewCheckpoint) -> None:
        """Store a checkpoint, in place of an earlier one of its id."""
        _check_place(checkpoint.place)
        _check_names(checkpoint.parent_id or "", checkpoint.body.type)
        if checkpoint.user_id:
            checks.identifier(checkpoint.user_id, "user_id")
        checks.between(len(checkpoint.versions), 0, MAX_CHANNELS, "the number of channels")
        for channel, version in checkpoint.versions.items():
            _check_names(channel, version)
        if unknown := checkpoint.values.keys() - checkpoint.versions.keys():
            raise Invalid(f"channel {min(unknown)[:64]!r} has a value but no version: name its version")
        _check_sizes([checkpoint.body, *checkpoint.values.values()])
        checks.metadata(checkpoint.metadata)
        async with self._database.transaction(namespace) as tx:
            await self._checkpoints.put(tx, checkpoint)

    @masks("written")
    async def put_writes(self, namespace: str, written: TaskWrites, *, replace: bool) -> None:
        """Store what a task wrote to a checkpoint; with `replace`, in place of what it wrote before."""
        _check_place(written.place)
        _check_names(written.task_id, written.task_path)
        checks.between(len(written.writes), 0, MAX_CHANNELS, "the number of writes")
        places = [place for place, _, _ in written.writes]
        if len(set(places)) < len(places):
            raise Invalid("two writes of a task have the same idx: number them")
        for place, channel, _ in written.writes:
            checks.between(place, -(2**31), 2**31 - 1, "idx")
            _check_names(channel)
        _check_sizes([value for _, _, value in written.writes])
        if written.writes:
            async with self._database.transaction(namespace) as tx:
                await self._checkpoints.put_writes(tx, written, replace=replace)

    async def newest(self, namespace: str, which: Which, limit: int) -> list[StoredCheckpoint]:
        """Checkpoints, the newest first."""
        checks.between(limit, 1, MAX_PAGE, "limit")
        behind = which.behind or Place("", "", "")
        _check_names(which.thread_id or "", which.checkpoint_ns or "", which.checkpoint_id or "", which.before or "")
        _check_names(*behind)
        async with self._database.reading(namespace) as db:
            return await self._checkpoints.newest(db, which, limit)

    async def delete(self, namespace: str, thread_ids: Sequence[str]) -> int:
        """Delete everything of some threads; returns how many checkpoints."""
        _check_ids(thread_ids, "thread_id")
        async with self._database.transaction(namespace) as tx:
            return (await self._checkpoints.remove_threads(tx, thread_ids)).checkpoints

    async def delete_runs(self, namespace: str, run_ids: Sequence[str]) -> int:
        """Delete the checkpoints that some runs made, by `run_id` in their metadata; returns how many."""
        _check_ids(run_ids, "run_id")
        async with self._database.transaction(namespace) as tx:
            return await self._checkpoints.remove_runs(tx, run_ids)

    async def copy(self, namespace: str, source: str, target: str) -> int:
        """Copy everything of a thread to another one; returns how many checkpoints."""
        _check_ids([source, target], "thread_id")
        async with self._database.transaction(namespace) as tx:
            return await self._checkpoints.copy(tx, source, target)

    async def prune(self, namespace: str, thread_ids: Sequence[str], strategy: Strategy) -> int:
        """Keep only the newest checkpoint of each graph in some threads, or none; returns how many went."""
        checks.one_of(strategy, STRATEGIES, "strategy")
        if strategy == "delete":
            return await self.delete(namespace, thread_ids)
        _check_ids(thread_ids, "thread_id")
        async with self._database.transaction(namespace) as tx:
            if deltas := await self._checkpoints.with_deltas(tx, thread_ids):
                raise Conflict(
                    f"Thread {deltas[0]} keeps a channel as changes since a snapshot, so its latest checkpoint needs "
                    "the earlier ones: leave it out, or delete it"
                )
            return await self._checkpoints.remove_older(tx, thread_ids)


def _check_place(place: Place) -> None:
    checks.identifier(place.thread_id, "thread_id")
    checks.identifier(place.checkpoint_id, "checkpoint_id")
    _check_names(*place)


def _check_ids(ids: Sequence[str], name: str) -> None:
    checks.between(len(ids), 0, MAX_THREADS, f"the number of {name}s")
    for each in ids:
        checks.identifier(each, name)
    _check_names(*ids)


def _check_names(*names: str) -> None:
    for name in names:
        checks.storable(name, "an id or a name of a checkpoint")
        if len(name.encode()) > MAX_NAME_BYTES:
            raise Invalid(f"an id or a name of a checkpoint is longer than {MAX_NAME_BYTES} bytes")


def _check_sizes(values: Sequence[Packed]) -> None:
    for value in values:
        checks.storable(value.type, "type")
        if len(value.body) > checks.MAX_TEXT_BYTES:
            raise Invalid(f"a value is larger than the limit of {checks.MAX_TEXT_MEGABYTES} MB: keep less in the state")
