"""The methods of MemoryManager for long-term memories."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect import checks
from recollect.doors import memories
from recollect.doors.library import spans
from recollect.doors.library.opened import Opened
from recollect.doors.memories import (
    AddedMemory,
    DeletedMemory,
    MemoryEvent,
    MemoryRecord,
    PinnedRecords,
    id_of,
    values_of,
)
from recollect.flows.long_term.memory_requests import Chosen, Options
from recollect.flows.long_term.pinned import PINNED_TOKENS
from recollect.memory.memories import MemoryScope, Place


class LongTermMethods(Opened):
    """Memories of users, agents and sessions: what was known and what is true at any time."""

    async def add_memory(
        self,
        text: str,
        category: str = memories.DEFAULT_CATEGORY,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: UUID | str | None = None,
        metadata: dict[str, Any] | None = None,
        at: datetime | None = None,
        key: str | None = None,
        valid_from: datetime | None = None,
        valid_until: datetime | None = None,
        expires_at: datetime | None = None,
        expires_in: float | None = None,
        pinned: bool | None = None,
        supersedes: Sequence[UUID | str] = (),
        sources: Sequence[str] = (),
    ) -> AddedMemory:
        """Store a long-term memory of a user, an agent or a session; a duplicate in the same scope is stored once.

        In one scope only the newest memory of a `key` is in force; `supersedes` names others that it replaces.
        `valid_from` and `valid_until` say when it is true in the world, `at` when it was said (now by default). At
        `expires_at`, or `expires_in` seconds from now, it is erased.
        """
        async with self._call("add_memory") as span:
            spans.annotate(span, {"metadata_keys": spans.keys(metadata)})
            checks.text(text, "text")
            scope = _scope(user_id, agent_id, session_id)
            replaced, made_from = values_of(supersedes, "supersedes"), values_of(sources, "sources")
            options = Options(valid_from, valid_until, key, expires_at, pinned, replaced, made_from, expires_in)
            engine = await self._engine()
            added = await engine.memories.add(
                self._scope(engine), text, category, scope, metadata, at=at, options=options
            )
            return AddedMemory.of_added(added)

    async def update_memory(
        self,
        memory_id: UUID | str,
        *,
        text: str | None = None,
        category: str | None = None,
        metadata: dict[str, Any] | None = None,
        key: str | None = None,
        valid_from: datetime | None = None,
        valid_until: datetime | None = None,
        expires_at: datetime | None = None,
        expires_in: float | None = None,
        pinned: bool | None = None,
        clear: Sequence[str] = (),
    ) -> MemoryRecord:
        """Change a memory. None leaves a field as it is; `clear` names fields to remove, such as "key".

        Metadata is merged: keys with None are removed. What the memory was before is kept for `as_of`.
        """
        async with self._call("update_memory") as span:
            spans.annotate(span, {"metadata_keys": spans.keys(metadata)})
            details = {
                "key": key,
                "valid_from": valid_from,
                "valid_until": valid_until,
                "expires_at": expires_at,
                "expires_in": expires_in,
                "pinned": pinned,
            }
            change = memories.change_of(text, category, metadata, details, clear)
            wanted = id_of(memory_id, "memory_id")
            engine = await self._engine()
            return MemoryRecord.written(await engine.memories.update(self._scope(engine), wanted, change))

    async def undo_memory(self, memory_id: UUID | str) -> MemoryRecord:
        """Restore a memory that a newer one superseded. If both have the same key, the newer one is superseded."""
        async with self._call("undo_memory"):
            wanted = id_of(memory_id, "memory_id")
            engine = await self._engine()
            return MemoryRecord.written(await engine.memories.undo(self._scope(engine), wanted))

    async def delete_memory(self, memory_id: UUID | str, *, restore: bool = False) -> DeletedMemory:
        """Permanently delete a memory with its past versions; its history stays, without texts.

        `restore` brings back the memories that it had superseded.
        """
        async with self._call("delete_memory"):
            wanted = id_of(memory_id, "memory_id")
            engine = await self._engine()
            return DeletedMemory.of(await engine.memories.delete(self._scope(engine), wanted, restore=restore))

    async def list_memories(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: UUID | str | None = None,
        key: str | None = None,
        pinned: bool | None = None,
        categories: Sequence[str] | None = None,
        metadata_filters: dict[str, Any] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
        limit: int = memories.DEFAULT_LIMIT,
        after: UUID | None = None,
    ) -> list[MemoryRecord]:
        """Memories in force, newest first; with `as_of`, those that were in force then, as they were.

        `valid_at` leaves out what is not true in the world then. `after` is the id of the last memory of the previous
        page.
        """
        async with self._call("list_memories") as span:
            spans.annotate(span, {"limit": limit, "filter_count": len(spans.keys(metadata_filters))})
            checks.optional_uuid(after, "after")
            wanted = None if categories is None else values_of(categories, "categories")
            chosen = Chosen(wanted, metadata_filters, since, until, key, pinned, as_of, valid_at)
            scope = _scope(user_id, agent_id, session_id)
            engine = await self._engine()
            behind = None
            if after is not None:
                last = await engine.memories.get(self._scope(engine), str(after))
                behind = Place(last.created_at, last.id)
            page = await engine.memories.newest(self._scope(engine), scope, limit, behind, chosen)
            spans.annotate(span, {"result_count": len(page.memories)})
            return list(map(MemoryRecord.of, page.memories))

    async def pinned_memories(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: UUID | str | None = None,
        token_budget: int = PINNED_TOKENS,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
    ) -> PinnedRecords:
        """What belongs in every prompt of a scope: its pinned memories, newest first, within a budget of tokens.

        Those that are not true in the world at `valid_at` (`as_of`, or else now, by default) are left out.
        """
        async with self._call("pinned_memories") as span:
            scope = _scope(user_id, agent_id, session_id)
            engine = await self._engine()
            pinned = await engine.pinned.of(self._scope(engine), scope, token_budget, as_of=as_of, valid_at=valid_at)
            spans.annotate(span, {"result_count": len(pinned.memories)})
            return PinnedRecords.of(pinned)

    async def get_memory(self, memory_id: UUID | str, *, as_of: datetime | None = None) -> MemoryRecord:
        """One memory, also a superseded one; with `as_of`, as it was then. Raises NotFound where there is none."""
        async with self._call("get_memory"):
            wanted = id_of(memory_id, "memory_id")
            engine = await self._engine()
            return MemoryRecord.of(await engine.memories.get(self._scope(engine), wanted, as_of))

    async def memory_history(self, memory_id: UUID | str) -> list[MemoryEvent]:
        """What happened to a memory, also to one that was deleted, oldest first."""
        async with self._call("memory_history") as span:
            wanted = id_of(memory_id, "memory_id")
            engine = await self._engine()
            entries = await engine.memories.history(self._scope(engine), wanted)
            spans.annotate(span, {"result_count": len(entries)})
            return list(map(MemoryEvent.of, entries))


def _scope(user_id: str | None, agent_id: str | None, session_id: UUID | str | None) -> MemoryScope:
    return MemoryScope(user_id, agent_id, None if session_id is None else id_of(session_id, "session_id"))
