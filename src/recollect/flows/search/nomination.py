"""Nomination: the two legs of every search. Each brings so many items, however many passages one item has."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from recollect.flows.indexing.namespace_models import SemanticQuery
from recollect.language.words import QueryTerm
from recollect.memory.index.giants import Giant, Giants
from recollect.memory.index.search import Lexical, Meaning, Scope, Search
from recollect.storage.database import MAX_NEAR, NEAR, Database


@dataclass(frozen=True, slots=True)
class Nominated:
    """The best passage of each item that a leg found, the best first, and what each leg asked."""

    words: Lexical
    query: SemanticQuery
    by_words: list[int]
    by_meaning: list[int]

    def passages(self) -> list[int]:
        """Those of both legs, each once."""
        return list(dict.fromkeys([*self.by_words, *self.by_meaning]))


class Nomination:
    """Finds items by keyword and by vector; what they are worth is for the caller to say."""

    def __init__(self, database: Database, search: Search, giants: Giants) -> None:
        self._database = database
        self._search = search
        self._giants = giants

    async def both(
        self, namespace: str, terms: Sequence[QueryTerm], query: Awaitable[SemanticQuery], scope: Scope, limit: int
    ) -> Nominated:
        """Items by keyword, and meanwhile items by vector as soon as the query is embedded."""
        (lexical, by_words), (asked, by_meaning) = await asyncio.gather(
            self.by_words(namespace, terms, scope, limit), self._by_query(namespace, query, scope, limit)
        )
        return Nominated(lexical, asked, by_words, by_meaning)

    async def by_words(
        self, namespace: str, terms: Sequence[QueryTerm], scope: Scope, limit: int
    ) -> tuple[Lexical, list[int]]:
        """The weighed words, and one passage each of the items that share them, the best first."""
        async with self._database.searching(namespace) as db:
            # Passages without an owner have only the keys of the namespace.
            lexical = await self._search.lexical(db, scope.owner or None, [term.variants for term in terms])
            return lexical, await self._search.by_words(db, scope, lexical, limit)

    async def by_meaning(self, namespace: str, scope: Scope, question: Meaning, items: int) -> list[int]:
        """One passage each of the nearest items, the nearest first.

        An exact scan for most, an index for the largest owners.
        """
        async with self._database.searching(namespace) as db:
            giant = await self._giants.find(db, scope.owner, question.model) if scope.is_whole() else None
            if giant is None:
                return await self._search.by_meaning(db, scope, question, items)
        return await self.of_giant(namespace, giant, scope, question, items)

    async def of_giant(self, namespace: str, giant: Giant, scope: Scope, question: Meaning, items: int) -> list[int]:
        """The same for an owner that has an index; by a scan if a few long items crowd out the others in it."""
        # The index knows no kinds.
        nearest = await self._in_index(namespace, giant, question, items) if scope.kinds is None else []
        if len(nearest) >= items:
            return nearest
        async with self._database.searching(namespace) as db:
            return await self._search.by_meaning(db, scope, question, items)

    async def _by_query(
        self, namespace: str, query: Awaitable[SemanticQuery], scope: Scope, limit: int
    ) -> tuple[SemanticQuery, list[int]]:
        asked = await query
        if asked.meaning is None:
            return asked, []
        return asked, await self.by_meaning(namespace, scope, asked.meaning, limit)

    async def _in_index(self, namespace: str, giant: Giant, question: Meaning, items: int) -> list[int]:
        nearest: list[int] = []
        for passages in (NEAR, MAX_NEAR):
            if len(nearest) < items <= passages:
                async with self._database.searching(namespace, passages) as db:
                    nearest = await self._giants.nearest(db, giant, question.vector, items, passages)
        return nearest
