"""Maintenance: builds and renews the vector indexes of giants, in the background, one at a time."""

import asyncio
import logging

from recollect.errors import RecollectError
from recollect.inference.embedder import Embedder
from recollect.memory.giants import MAX_GIANTS, RENEW_SHARE, Giant, Giants
from recollect.storage import vector_index
from recollect.storage.database import Database

PERIOD_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Maintenance:
    """Looks at namespaces that were written to, and indexes the owners who have grown large."""

    def __init__(self, database: Database, giants: Giants, embedder: Embedder | None) -> None:
        self._database = database
        self._giants = giants
        self._embedder = embedder
        self._task: asyncio.Task[None] | None = None
        self._touched: set[str] = set()

    def start(self) -> None:
        """Begin to work in the background."""
        self._task = asyncio.create_task(self._run(), name="recollect-maintenance")

    async def close(self) -> None:
        """Stop; an index that is half built is removed by whoever looks next."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def touch(self, namespace: str) -> None:
        """A namespace has new vectors."""
        self._touched.add(namespace)

    async def tend(self, namespace: str) -> list[Giant]:
        """Build or renew what a namespace needs now; returns the indexes that were made."""
        if self._embedder is None:
            return []
        model = self._embedder.model_id
        async with self._database.reading(namespace) as db:
            sizes = await self._giants.large_owners(db, model)
            known = {giant.owner: giant for giant in await self._giants.known(db)}
        made = []
        for owner in sorted(sizes, key=lambda owner: -sizes[owner]):
            old = known.get(owner)
            if await (self._has_room() if old is None else self._has_outgrown(namespace, old, sizes[owner])):
                made.append(await self._build(namespace, owner, model, old))
        return made

    async def _has_room(self) -> bool:
        await vector_index.drop_unfinished(self._database)
        return await vector_index.count(self._database) < MAX_GIANTS

    async def _has_outgrown(self, namespace: str, giant: Giant, size: int) -> bool:
        async with self._database.reading(namespace) as db:
            above, _ = await self._giants.extent(db, giant.owner, giant.model, giant.watermark)
        return above > RENEW_SHARE * size

    async def _build(self, namespace: str, owner: str | None, model: str, old: Giant | None) -> Giant:
        assert self._embedder is not None
        async with self._database.reading(namespace) as db:
            _, highest = await self._giants.extent(db, owner, model, 0)
        name = vector_index.name_for(namespace, model, owner, highest)
        await vector_index.create(self._database, name, namespace, model, self._embedder.dimensions, owner, highest)
        giant = Giant(owner, model, highest, name)
        async with self._database.transaction(namespace) as tx:
            await self._giants.remember(tx, giant)
        if old is not None:
            await vector_index.drop(self._database, old.index_name)
        return giant

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            touched, self._touched = self._touched, set()
            for namespace in sorted(touched):
                try:
                    await self.tend(namespace)
                except RecollectError as problem:
                    self._touched.add(namespace)
                    _log.warning("Building a vector index is put off: %s", problem)
