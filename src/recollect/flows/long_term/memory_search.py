"""MemorySearch: recall of long-term memories, with the whole memory in place of the passage."""

from collections.abc import Sequence
from uuid import UUID

from recollect import checks
from recollect.flows.kinds.long_term import MEMORY
from recollect.flows.long_term.memory_requests import Chosen, check_scope
from recollect.flows.long_term.memory_results import FoundMemory
from recollect.flows.results import Results
from recollect.flows.search.recall import MAX_TOP_K, Recall
from recollect.flows.search.recollection import NOMINEES
from recollect.flows.search.relevance import Floor
from recollect.memory.index.search import Scope
from recollect.memory.memories import Memories, MemoryScope, StoredMemory
from recollect.storage.database import Database

# Nominees of each leg per result: the best of both legs together are not the best of either.
NOMINATED_EACH = 2


class MemorySearch:
    """Finds memories of users, agents and sessions."""

    def __init__(self, database: Database, memories: Memories, recall: Recall) -> None:
        self._database = database
        self._memories = memories
        self._recall = recall

    async def search(
        self,
        namespace: str,
        query: str,
        scope: MemoryScope,
        chosen: Chosen | None = None,
        limit: int = 100,
        *,
        everybody: bool = False,
        min_relevance: Floor | None = None,
        half_life_days: float | None = None,
        namespaces: Sequence[str] | None = None,
    ) -> Results[FoundMemory]:
        """Memories that answer a question, best match first, each with its whole text.

        With `everybody`, the scope may be empty, which is the whole namespace. With `namespaces`, these are asked
        together in place of the caller's own.
        """
        checks.between(limit, 1, MAX_TOP_K, "limit")
        scope = check_scope(scope, needed=not everybody)
        only = (chosen or Chosen()).checked()
        searched = Scope(
            scope.user_id,
            scope.agent_id,
            scope.session_id,
            (MEMORY,),
            only.categories,
            only.since,
            only.until,
            only.metadata,
            as_of=only.as_of,
            valid_at=only.valid_at,
            where=only.where,
        )
        # Not folded: memories that recall takes for duplicates were stored as two on purpose.
        found = await self._recall.recall(
            namespace,
            query,
            searched,
            top_k=limit,
            fold=False,
            nominees=max(NOMINEES, NOMINATED_EACH * limit),
            min_relevance=min_relevance,
            half_life_days=half_life_days,
            namespaces=namespaces,
        )
        stored: dict[tuple[str | None, str], StoredMemory] = {}
        for place in dict.fromkeys(each.namespace for each in found.memories):
            ids = [UUID(each.id) for each in found.memories if each.namespace == place]
            async with self._database.reading(place or namespace) as db:
                there = await self._memories.find(db, ids, only.as_of)
            stored |= {(place, str(memory_id)): memory for memory_id, memory in there.items()}
        hits = ((stored.get((each.namespace, each.id)), each) for each in found.memories)
        in_place = (
            FoundMemory(memory, each.similarity, each.namespace)
            for memory, each in hits
            if memory is not None and in_force(memory)
        )
        return Results(in_place, found.degraded)


def in_force(memory: StoredMemory) -> bool:
    """Whether no newer memory has superseded it."""
    return memory.superseded_by is None
