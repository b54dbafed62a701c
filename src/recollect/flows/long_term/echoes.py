"""Echoes: finds the memory that a text only repeats, because it was recalled into the prompt."""

from collections.abc import Awaitable, Callable, Sequence

from recollect import checks, tasks
from recollect.flows.long_term.memory_ids import as_uuid, is_uuid
from recollect.language.sameness import sayings
from recollect.memory.memories import Memories, MemoryScope, StoredMemory
from recollect.storage.database import Database

MAX_RECALLED = 1000

Nearest = Callable[[str, str, MemoryScope], Awaitable[list[StoredMemory]]]
"""The memories of a scope that are most similar to a text, in a namespace."""


class Echoes:
    """Compares a new text with what was recalled, so that an agent does not store its own memories again."""

    def __init__(self, database: Database, memories: Memories, nearest: Nearest) -> None:
        self._database = database
        self._memories = memories
        self._nearest = nearest

    async def of(self, namespace: str, text: str, scope: MemoryScope, recalled: Sequence[str]) -> StoredMemory | None:
        """The memory that a text repeats, if it says nothing but what was recalled: texts, or ids of memories."""
        if not recalled:
            return None
        checks.between(len(recalled), 1, MAX_RECALLED, "the number of recalled texts")
        ids = {entry: as_uuid(entry) for entry in recalled if is_uuid(entry)}
        async with self._database.reading(namespace) as db:
            named = await self._memories.find(db, list(ids.values()))
        own = [memory for memory in named.values() if memory.superseded_by is None and _may_see(scope, memory)]
        texts = [*(entry for entry in recalled if entry not in ids), *(memory.text for memory in own)]
        said = await tasks.in_thread(sayings, text)
        known = await tasks.in_thread(lambda: frozenset[str]().union(*map(sayings, texts)))
        if not said or not said <= known:
            return None
        widest = MemoryScope(user_id=scope.user_id) if scope.user_id is not None else scope
        near = [memory for memory in await self._nearest(namespace, text, widest) if _may_see(scope, memory)]
        # What was recalled need not be a memory. Then this is the first time that it becomes one.
        return next((memory for memory in [*own, *near] if not said.isdisjoint(sayings(memory.text))), None)


def _may_see(scope: MemoryScope, memory: StoredMemory) -> bool:
    """Whether a memory is of the same user, or of no user and of no other agent or session."""
    if scope.user_id is not None and memory.user_id is not None:
        return memory.user_id == scope.user_id
    return (
        memory.user_id is None
        and memory.agent_id in (None, scope.agent_id)
        and memory.session_id in (None, scope.session_id)
    )
