"""Nomination: the nearest items by meaning, so many of them however many passages one has, by the quickest way."""

from recollect.memory.index.giants import Giant, Giants
from recollect.memory.index.search import Meaning, Scope, Search
from recollect.storage.database import MAX_NEAR, NEAR, Database

# For each item that is wanted of a large owner, so many passages are looked at first.
PASSAGES_EACH = 20


class Nomination:
    """An exact scan for most. Whoever has an index of passages has too many to sort them all by item:
    the nearest are looked at first, and all of them only if a few long items crowd out the others.
    """

    def __init__(self, database: Database, search: Search, giants: Giants) -> None:
        self._database = database
        self._search = search
        self._giants = giants

    async def by_meaning(self, namespace: str, scope: Scope, question: Meaning, items: int) -> list[int]:
        """One passage each of the nearest items, the nearest first."""
        async with self._database.searching(namespace) as db:
            giant = await self._giants.find(db, scope.owner, question.model) if scope.is_whole() else None
            if giant is None:
                return await self._search.by_meaning(db, scope, question, items)
        nearest, is_all = await self._of_giant(namespace, giant, scope, question, items)
        if is_all or len(nearest) >= items:
            return nearest
        async with self._database.searching(namespace) as db:
            return await self._search.by_meaning(db, scope, question, items)

    async def _of_giant(
        self, namespace: str, giant: Giant, scope: Scope, question: Meaning, items: int
    ) -> tuple[list[int], bool]:
        """The items of the nearest passages, and whether no passage was left out."""
        # The index knows no kinds.
        if scope.kinds is not None:
            async with self._database.searching(namespace) as db:
                return await self._search.by_meaning_among(db, scope, question, items, PASSAGES_EACH * items)
        nearest: list[int] = []
        for passages in (NEAR, MAX_NEAR):
            if len(nearest) < items <= passages:
                async with self._database.searching(namespace, passages) as db:
                    nearest = await self._giants.nearest(db, giant, question.vector, items, passages)
        return nearest, False
