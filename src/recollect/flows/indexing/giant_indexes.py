"""GiantIndexes: builds and drops the vector indexes of large owners, and keeps their records up to date."""

from collections.abc import Callable

from recollect.errors import Conflict
from recollect.memory.index.embedding_models import EmbeddingModels
from recollect.memory.index.giants import Giant, Giants
from recollect.storage import vector_index
from recollect.storage.database import Database


class GiantIndexes:
    """An index goes before its record: one without a record would stay for good."""

    def __init__(self, database: Database, giants: Giants, models: EmbeddingModels) -> None:
        self._database = database
        self._giants = giants
        self._models = models

    async def build(self, namespace: str, owner: str | None, model: str, old: Giant | None) -> Giant:
        """Index the vectors that an owner has now, in place of an older index."""
        async with self._database.reading(namespace) as db:
            _, highest = await self._giants.extent(db, owner, model, 0)
            # Not the embedder's, which may not know it before it has embedded something.
            dimensions = await self._models.dimensions(db, model)
        if dimensions is None:
            raise Conflict(f"The vectors of {model} were removed before they were indexed")
        name = vector_index.name_for(namespace, model, owner, highest)
        giant = Giant(owner, model, highest, name, dimensions)
        await self._create(namespace, giant)
        if old is not None:
            # Before its record is replaced.
            await vector_index.drop(self._database, old.index_name)
        async with self._database.transaction(namespace) as tx:
            await self._giants.remember(tx, giant)
        return giant

    async def rebuild(self, namespace: str) -> list[Giant]:
        """Build the indexes that are recorded but missing: a backup has the records, not the indexes."""
        async with self._database.reading(namespace) as db:
            known = await self._giants.known(db)
        missing = [giant for giant in known if not await vector_index.exists(self._database, giant.index_name)]
        for giant in missing:
            await self._create(namespace, giant)
        return missing

    async def drop(self, namespace: str, unwanted: Callable[[Giant], bool]) -> int:
        """Drop the indexes that are no longer wanted; returns how many."""
        async with self._database.reading(namespace) as db:
            dropped = [giant for giant in await self._giants.known(db) if unwanted(giant)]
        for giant in dropped:
            await vector_index.drop(self._database, giant.index_name)
            async with self._database.transaction(namespace) as tx:
                await self._giants.forget(tx, giant)
        return len(dropped)

    async def _create(self, namespace: str, giant: Giant) -> None:
        await vector_index.create(
            self._database, giant.index_name, namespace, giant.model, giant.dimensions, giant.owner, giant.watermark
        )
