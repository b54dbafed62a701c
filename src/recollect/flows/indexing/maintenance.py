"""Maintenance: in the background, builds and renews the indexes of giants and removes what has expired."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from recollect import tasks
from recollect.errors import RecollectError
from recollect.flows.indexing.giant_indexes import GiantIndexes
from recollect.flows.indexing.namespace_models import NamespaceModels
from recollect.inference.embedding.embedder import Embedder
from recollect.memory.index.giants import MAX_GIANTS, RENEW_SHARE, Giant, Giants
from recollect.memory.index.passages import Passages
from recollect.memory.keyed_records import KeyedRecords
from recollect.storage import vector_index
from recollect.storage.database import Database

PERIOD_SECONDS = 60.0

# A pass of expiry takes so many batches of each namespace; if that was not all, the next pass follows at once.
BATCHES_EACH = 20
# Passages that are over and tell of their namespaces in one look.
LOOKED_AT = 1_000

_log = logging.getLogger(__name__)


class Maintenance:
    """Looks at namespaces that were written to: indexes owners who have grown large, sweeps up after a switch.

    It removes expired memories in every namespace, whoever wrote them.
    """

    def __init__(
        self,
        database: Database,
        passages: Passages,
        keyed_records: KeyedRecords,
        giants: Giants,
        indexes: GiantIndexes,
        namespace_models: NamespaceModels,
    ) -> None:
        self._database = database
        self._passages = passages
        self._records = keyed_records
        self._giants = giants
        self._indexes = indexes
        self._namespace_models = namespace_models
        self._task = tasks.BackgroundTask("recollect-maintenance")
        self._touched: set[str] = set()

    def start(self, sweep: Callable[[str], Awaitable[bool]], expire: Callable[[str], Awaitable[int]]) -> None:
        """Begin to work in the background.

        `sweep` removes what a switch of models left, or says that it must wait; `expire` removes some of what has
        expired and returns how many.
        """
        self._task.start(self._run(sweep, expire))

    async def close(self) -> None:
        """Stop; the next run removes an index that is half built."""
        await self._task.stop()

    def mark_dirty(self, namespace: str) -> None:
        """A namespace has new vectors."""
        self._touched.add(namespace)

    async def remove_expired(self, expire: Callable[[str], Awaitable[int]]) -> bool:
        """Remove what has expired anywhere, a batch of each namespace in turn; False if there may be more.

        A namespace that fails, or where somebody else was faster, waits for the next pass.
        """
        waiting: list[str] = []
        for _ in range(BATCHES_EACH):
            namespaces = await self._with_expired(waiting)
            if not namespaces:
                return True
            for namespace in namespaces:
                try:
                    if not await expire(namespace):
                        waiting.append(namespace)
                except RecollectError as problem:
                    waiting.append(namespace)
                    _log.warning("Expired memories are removed later: %s", problem, extra={"namespace": namespace})
        return False

    async def _with_expired(self, besides: list[str]) -> list[str]:
        """Namespaces where something is over; a record that is not searched has no passage that says so."""
        found = await self._passages.namespaces_with_expired(self._database, besides, LOOKED_AT)
        return sorted({*found, *await self._records.namespaces_with_expired(self._database, besides, LOOKED_AT)})

    async def build_indexes(self, namespace: str, embedder: Embedder | None = None) -> list[Giant]:
        """Build or renew what a namespace needs now, for its own model or another; returns the indexes made."""
        embedder = embedder or await self._namespace_models.embedder(namespace)
        if embedder is None:
            return []
        async with self._database.reading(namespace) as db:
            sizes = await self._giants.large_owners(db, embedder.model_id)
            known = {giant.owner: giant for giant in await self._giants.known(db) if giant.model == embedder.model_id}
        made = []
        for owner in sorted(sizes, key=lambda owner: -sizes[owner]):
            old = known.get(owner)
            if old is None:
                await vector_index.drop_unfinished(self._database)
                is_needed = await vector_index.count(self._database) < MAX_GIANTS
            else:
                async with self._database.reading(namespace) as db:
                    above, _ = await self._giants.extent(db, owner, old.model, old.watermark)
                is_needed = above > RENEW_SHARE * sizes[owner]
            if is_needed:
                made.append(await self._indexes.build(namespace, owner, embedder.model_id, old))
        return made

    async def _run(self, sweep: Callable[[str], Awaitable[bool]], expire: Callable[[str], Awaitable[int]]) -> None:
        finished = True
        while True:
            if finished:
                await asyncio.sleep(PERIOD_SECONDS)
            touched, self._touched = self._touched, set()
            for namespace in sorted(touched):
                try:
                    if not await sweep(namespace):
                        self._touched.add(namespace)
                    await self.build_indexes(namespace)
                except RecollectError as problem:
                    self._touched.add(namespace)
                    _log.warning("Maintenance failed and will be retried: %s", problem, extra={"namespace": namespace})
            finished = True
            try:
                finished = await self.remove_expired(expire)
            except RecollectError as problem:
                _log.warning("Expired memories are removed later: %s", problem)
