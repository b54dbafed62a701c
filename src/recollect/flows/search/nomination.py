"""Nomination: the two legs of every search. Each brings so many items, however many passages one item has."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from recollect.flows.indexing.namespace_models import SemanticQuery
from recollect.language.words import QueryTerm
from recollect.memory.index.giants import Giant, Giants
from recollect.memory.index.search import Lexical, Meaning, Scope, Search
from recollect.storage.database import MAX_NEAR, NEAR, Database

# For each item wanted from a large owner, so many passages are looked at first.
PASSAGES_EACH = 20


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

        An exact scan for most. An owner with an index has too many passages to sort them all by item: the nearest
        passages are looked at first, and all of them only if a few long items crowd out the others.
        """
        async with self._database.searching(namespace) as db:
            giant = await self._giants.find(db, scope.owner, question.model) if scope.is_whole() else None
            if giant is None:
                return await self._search.by_meaning(db, scope, question, items)
        return await self.of_giant(namespace, giant, scope, question, items)

    async def of_giant(self, namespace: str, giant: Giant, scope: Scope, question: Meaning, items: int) -> list[int]:
        """The same for an owner that has an index."""
        nearest, is_all = await self._among_nearest(namespace, giant, scope, question, items)
        if is_all or len(nearest) >= items:
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

    async def _among_nearest(
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
