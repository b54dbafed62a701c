"""Embedding switch: moves a namespace to another model while searches go on with the old one."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from recollect.errors import Conflict
from recollect.flows.indexing.giant_indexes import GiantIndexes
from recollect.flows.indexing.namespace_models import NamespaceModels
from recollect.inference.embedding.embedder import Embedder, as_text
from recollect.memory.index.embedding_models import EmbeddingModels, Outdated, State
from recollect.memory.index.passages import Passages
from recollect.storage.database import Database

# Passages a transaction: large enough for a provider that allows few requests, small enough that a kill repeats little.
BATCH = 64
SWEEP_BATCH = 1000

# So few passages written at the last moment are left to the indexer: waiting for none might take for ever.
MAX_LEFT_TO_INDEXER = 64

POLL_SECONDS = 0.05
MAX_COUNTED = 100_000_000

# A search that began before the switch may still read the old vectors: embedding and every statement of it end sooner.
GRACE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Status:
    """Where a namespace stands."""

    active: str | None
    next: str | None
    vectors: dict[str, int]
    waiting: int


class EmbeddingSwitch:
    """Fills in vectors of the new model, then changes one row. Any number may run; killed anywhere, one is resumed.

    Passages that the indexer completes meanwhile get their vector of the old model, and the new one here. A writer
    of vectors holds the namespace's record; the switch takes it, so that nothing slips in between.
    """

    def __init__(
        self,
        database: Database,
        models: EmbeddingModels,
        passages: Passages,
        indexes: GiantIndexes,
        namespace_models: NamespaceModels,
        build_indexes: Callable[[str, Embedder], Awaitable[object]],
        switched: Callable[[str], None],
    ) -> None:
        self._database = database
        self._models = models
        self._passages = passages
        self._indexes = indexes
        self._namespace_models = namespace_models
        self._build_indexes = build_indexes
        self._switched = switched

    async def run(self, namespace: str, name: str, progress: Callable[[int, int], None] | None = None) -> bool:
        """Move to a model; False if it is the namespace's already. `progress` hears what is done and of how many."""
        new = await self._namespace_models.next_embedder(namespace, name)
        old = await self._begin(namespace, new.model_id)
        if old is None:
            return False
        while True:
            await self._fill(namespace, old, new, progress)
            await self._build_indexes(namespace, new)
            if await self._flip(namespace, old, new.model_id):
                break
            await asyncio.sleep(POLL_SECONDS)
        self._switched(namespace)
        return True

    async def status(self, namespace: str) -> Status:
        """Where a namespace stands now."""
        current = await self._namespace_models.current(namespace)
        async with self._database.reading(namespace) as db:
            vectors = await self._models.sizes(db)
            waiting = await self._passages.waiting(db, MAX_COUNTED)
        return Status(current.active, current.next, vectors, waiting)

    async def seconds_to_sweep(self, namespace: str) -> float | None:
        """How long the old vectors must still stay; None if there are none."""
        async with self._database.reading(namespace) as db:
            state = await self._models.state(db)
        return None if state is None or not state.leftovers else _left(state)

    async def sweep(self, namespace: str) -> bool:
        """Remove vectors of other models, if no search can need them any more; False if it is too early."""
        after: int | None = 0
        while after is not None:
            async with self._database.transaction(namespace) as tx:
                known = await self._models.state(tx)
                if known is None or not known.leftovers:
                    return True
                state = await self._models.lock_for_change(tx, known.active)
                if _left(state) > 0:
                    return False
                keep = [model for model in (state.active, state.next) if model is not None]
                after = await self._models.remove_others(tx, keep, after, SWEEP_BATCH)
        await self._indexes.drop(namespace, lambda giant: giant.model not in keep)
        async with self._database.transaction(namespace) as tx:
            # Another switch may have left others meanwhile.
            if await self._models.lock_for_change(tx, state.active) == state:
                await self._models.swept(tx)
        return True

    async def _begin(self, namespace: str, model: str) -> str | None:
        """Note where the namespace moves to; its present model, or None if there is nothing to do."""
        async with self._database.transaction(namespace) as tx:
            state = await self._models.lock_for_change(tx, model)
            if state.active == model:
                # Someone who was on the way to another stays where he is.
                await self._models.aim(tx, None, leaves=state.next is not None)
                return None
            await self._models.aim(tx, model, leaves=state.next not in (None, model))
            return state.active

    async def _fill(self, namespace: str, old: str, new: Embedder, progress: Callable[[int, int], None] | None) -> None:
        async with self._database.reading(namespace) as db:
            total = await self._models.missing(db, old, new.model_id, MAX_COUNTED)
        done, after = 0, 0
        while True:
            claimed = await self._batch(namespace, old, new, after)
            if claimed:
                done, after = done + len(claimed), claimed[-1].id
                if progress is not None:
                    progress(done, max(done, total))
            elif after == 0:
                return
            else:
                # Once more from the start: the indexer completes old passages too, and others may have let go of some.
                after = 0

    async def _batch(self, namespace: str, old: str, new: Embedder, after: int) -> list[Outdated]:
        async with self._database.transaction(namespace) as tx:
            claimed = await self._models.claim(tx, old, new.model_id, after, BATCH)
            if claimed:
                vectors = await new.embed_documents([passage.text for passage in claimed])
                if not _is_moving(await self._models.lock(tx, old), old, new.model_id):
                    return []
                await self._models.add(tx, claimed, new.model_id, list(map(as_text, vectors)))
        return claimed

    async def _flip(self, namespace: str, old: str, new: str) -> bool:
        """Change the model, unless too much has been written meanwhile."""
        async with self._database.transaction(namespace) as tx:
            state = await self._models.lock_for_change(tx, old)
            if not _is_moving(state, old, new):
                return True
            if await self._models.missing(tx, old, new, MAX_LEFT_TO_INDEXER + 1) > MAX_LEFT_TO_INDEXER:
                return False
            await self._models.requeue(tx, old, new)
            await self._models.flip(tx, new)
        return True


def _is_moving(state: State, old: str, new: str) -> bool:
    """Whether the namespace is still on its way; False if someone else has brought it there."""
    if state.active == new:
        return False
    if (state.active, state.next) != (old, new):
        raise Conflict(
            f"Another switch was made in the meantime. The model is now {state.active}"
            + (f", switching to {state.next}." if state.next else ".")
            + " See `recollect embeddings status`."
        )
    return True


def _left(state: State) -> float:
    if state.switched_at is None:
        return 0.0
    return max((state.switched_at + GRACE - datetime.now(UTC)).total_seconds(), 0.0)
