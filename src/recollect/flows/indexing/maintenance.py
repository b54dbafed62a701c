"""Maintenance: builds and renews the vector indexes of giants, in the background, one at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from recollect import tasks
from recollect.errors import RecollectError
from recollect.flows.indexing.namespace_models import NamespaceModels
from recollect.inference.embedding.embedder import Embedder
from recollect.memory.index.giants import MAX_GIANTS, RENEW_SHARE, Giant, Giants
from recollect.storage import vector_index
from recollect.storage.database import Database

PERIOD_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Maintenance:
    """Looks at namespaces that were written to: indexes owners who have grown large, sweeps up after a switch."""

    def __init__(self, database: Database, giants: Giants, namespace_models: NamespaceModels) -> None:
        self._database = database
        self._giants = giants
        self._namespace_models = namespace_models
        self._task = tasks.BackgroundTask("recollect-maintenance")
        self._touched: set[str] = set()

    def start(self, sweep: Callable[[str], Awaitable[bool]]) -> None:
        """Begin to work in the background; `sweep` removes what a switch of models left, or says that it must wait."""
        self._task.start(self._run(sweep))

    async def close(self) -> None:
        """Stop; an index that is half built is removed by whoever looks next."""
        await self._task.stop()

    def mark_dirty(self, namespace: str) -> None:
        """A namespace has new vectors."""
        self._touched.add(namespace)

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
            if await (self._has_room() if old is None else self._has_outgrown(namespace, old, sizes[owner])):
                made.append(await self._build(namespace, owner, embedder, old))
        return made

    async def rebuild(self, namespace: str) -> list[Giant]:
        """Build the indexes that a namespace should have and has not: a backup holds none. Returns those built."""
        async with self._database.reading(namespace) as db:
            known = await self._giants.known(db)
        missing = [giant for giant in known if not await vector_index.exists(self._database, giant.index_name)]
        for giant in missing:
            await vector_index.create(
                self._database,
                giant.index_name,
                namespace,
                giant.model,
                giant.dimensions,
                giant.owner,
                giant.watermark,
            )
        return missing

    async def _has_room(self) -> bool:
        await vector_index.drop_unfinished(self._database)
        return await vector_index.count(self._database) < MAX_GIANTS

    async def _has_outgrown(self, namespace: str, giant: Giant, size: int) -> bool:
        async with self._database.reading(namespace) as db:
            above, _ = await self._giants.extent(db, giant.owner, giant.model, giant.watermark)
        return above > RENEW_SHARE * size

    async def _build(self, namespace: str, owner: str | None, embedder: Embedder, old: Giant | None) -> Giant:
        model, dimensions = embedder.model_id, embedder.dimensions
        async with self._database.reading(namespace) as db:
            _, highest = await self._giants.extent(db, owner, model, 0)
        name = vector_index.name_for(namespace, model, owner, highest)
        await vector_index.create(self._database, name, namespace, model, dimensions, owner, highest)
        giant = Giant(owner, model, highest, name, dimensions)
        if old is not None:
            # Before its note is replaced: an index that nobody has a note of would stay for good.
            await vector_index.drop(self._database, old.index_name)
        async with self._database.transaction(namespace) as tx:
            await self._giants.remember(tx, giant)
        return giant

    async def _run(self, sweep: Callable[[str], Awaitable[bool]]) -> None:
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            touched, self._touched = self._touched, set()
            for namespace in sorted(touched):
                try:
                    await self.build_indexes(namespace)
                    if not await sweep(namespace):
                        self._touched.add(namespace)
                except RecollectError as problem:
                    self._touched.add(namespace)
                    _log.warning("Maintenance failed, will be tried again: %s", problem, extra={"namespace": namespace})
