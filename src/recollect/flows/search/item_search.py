"""ItemSearch: items of one kind that match a text, by keyword and by semantic search, each list best first."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from recollect import checks
from recollect.errors import Invalid
from recollect.flows.indexing.namespace_models import NamespaceModels, SemanticQuery, Waiting
from recollect.flows.search.nomination import Nomination
from recollect.language import words
from recollect.memory.index.passages import Passages
from recollect.memory.index.search import Meaning, Scope, Search
from recollect.storage.database import Database


@dataclass(frozen=True, slots=True)
class Ranks:
    """Items by semantic and by keyword search, and the query that semantic search used, if it ran."""

    by_meaning: list[int]
    by_words: list[int]
    query: SemanticQuery


class ItemSearch:
    """Searches items whose ids are integers; what their ranks are worth is for the caller to say."""

    def __init__(
        self,
        database: Database,
        search: Search,
        nomination: Nomination,
        passages: Passages,
        namespace_models: NamespaceModels,
    ) -> None:
        self._database = database
        self._search = search
        self._nomination = nomination
        self._passages = passages
        self._namespace_models = namespace_models

    async def both(self, namespace: str, text: str, scope: Scope, limit: int, given: Meaning | None = None) -> Ranks:
        """So many items by vector and as many by keyword; the vector may be given."""
        query = self.query(namespace, text, given)
        found = await self._nomination.both(namespace, words.query_terms(text), query, scope, limit)
        by_meaning, by_words = await self._items(namespace, found.by_meaning, found.by_words)
        return Ranks(by_meaning, by_words, await self.with_waiting(namespace, scope, found.query))

    async def by_words(self, namespace: str, text: str, scope: Scope, limit: int) -> list[int]:
        """Items that share words with a text."""
        _, ranked = await self._nomination.by_words(namespace, words.query_terms(text), scope, limit)
        (items,) = await self._items(namespace, ranked)
        return items

    async def query(self, namespace: str, text: str, given: Meaning | None = None) -> SemanticQuery:
        """What to compare with stored vectors, or why there is nothing; a given vector needs no embedding."""
        return await self._namespace_models.question(namespace, text) if given is None else SemanticQuery(given)

    async def with_waiting(self, namespace: str, scope: Scope, query: SemanticQuery) -> SemanticQuery:
        """A query that was asked, with how many items of its kind it could not be compared with."""
        if query.meaning is None or scope.kinds is None:
            return query
        (kind,) = scope.kinds
        async with self._database.searching(namespace) as db:
            count = await self._search.waiting_items(db, kind)
        return replace(query, waiting=Waiting(count, kind)) if count else query

    async def given_vector(self, namespace: str, values: Sequence[float], name: str) -> Meaning:
        """A caller's vector in the namespace's own space: it must be one that its model could have made."""
        checks.query_embedding(values, name)
        embedder = await self._namespace_models.embedder(namespace)
        if embedder is None:
            raise Invalid(
                f"Omit {name} to use keyword search only: {await self._namespace_models.why_missing(namespace)}"
            )
        own = embedder.dimensions or len(await embedder.embed_query(name))
        if own > len(values):
            raise Invalid(
                f"{name} has {len(values)} numbers, and this namespace's model {embedder.model_id} has {own:,} "
                f"dimensions, so a vector of it does not fit. Omit {name}: the text of the query is embedded here."
            )
        if any(values[own:]):
            raise Invalid(
                f"{name} does not match this namespace's model: {embedder.model_id} has {own} dimensions, "
                f"so all numbers after the first {own} must be 0. Embed with that model, or omit {name}."
            )
        # Scaled to length 1, because a halfvec holds no large numbers and cosines do not mind.
        length = math.hypot(*values)
        vector = "[" + ",".join(f"{number / length:.6g}" for number in values[:own]) + "]"
        return Meaning(vector, embedder.model_id)

    async def _items(self, namespace: str, *lists: Sequence[int]) -> list[list[int]]:
        """The items of ranked passages, each at the rank of its best."""
        async with self._database.reading(namespace) as db:
            item_of = await self._passages.items(db, list({passage for ranked in lists for passage in ranked}))
        return [
            list(dict.fromkeys(int(item_of[passage]) for passage in ranked if passage in item_of)) for ranked in lists
        ]
