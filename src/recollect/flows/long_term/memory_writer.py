"""MemoryWriter: writes memories inside a transaction, together with their passages and past versions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect import checks, origin, trust
from recollect.errors import Conflict, Forbidden
from recollect.flows.indexing.passage_writer import PassageWriter, Prepared
from recollect.flows.kinds.long_term import MEMORY, PAST_MEMORY
from recollect.flows.long_term.memory_ids import require_since
from recollect.flows.long_term.memory_requests import MAX_SOURCES, check_validity
from recollect.memory.changes import Change
from recollect.memory.index.held import Held
from recollect.memory.index.passages import Passages, Source
from recollect.memory.memories import Draft, Memories, StoredMemory
from recollect.storage.database import Transaction
from recollect.trust import Trust

_SHORTENED = (
    "A key without role admin cannot make a stored memory expire sooner, because that deletes it: leave out "
    "expires_at and expires_in, pass a later time, or use a key with role admin"
)


@dataclass(frozen=True, slots=True)
class Replaced:
    """A memory to supersede, and why; `seen` is what a language model was shown of it.

    With `if_since`, it must not have changed since then.
    """

    id: UUID
    reason: Mapping[str, Any]
    seen: StoredMemory | None = None
    if_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Additions:
    """What a caller says of a memory besides its text, to be merged into one that exists."""

    metadata: Mapping[str, Any]
    details: Mapping[str, Any]
    replaced: Sequence[Replaced]
    sources: Sequence[str] = ()
    trust: str | None = None
    """The lowest class of these sources."""

    def is_part_of(self, memory: StoredMemory) -> bool:
        """Whether a memory already has all of it."""
        absent = object()
        return (
            all(memory.metadata.get(name, absent) == value for name, value in self.metadata.items())
            and all(getattr(memory, name) == value for name, value in self.details.items())
            and all(each.id == memory.id for each in self.replaced)
            and (set(self.sources) <= set(memory.sources) or len(memory.sources) >= MAX_SOURCES)
        )

    def merged_into(self, memory: StoredMemory) -> StoredMemory:
        """The memory with these additions."""
        metadata = {**memory.metadata, **self.metadata}
        checks.metadata(metadata)
        sources = tuple(dict.fromkeys([*memory.sources, *self.sources]))[: max(MAX_SOURCES, len(memory.sources))]
        merged = replace(memory, metadata=metadata, sources=sources, trust=self._trust_of(memory), **self.details)
        if metadata != memory.metadata:
            merged = replace(merged, trust=trust.of_callers_change(merged.trust))
        check_validity(merged.valid_from, merged.valid_until)
        return merged

    def _trust_of(self, memory: StoredMemory) -> str | None:
        """A memory that is also made from something less trusted is trusted less."""
        if not self.sources or self.trust is None:
            return memory.trust
        return stored_trust([trust.of_item(MEMORY, None, each) for each in (memory.trust, self.trust)])


class MemoryWriter:
    """Keeps past versions findable for questions about the past, and present ones for all others."""

    def __init__(self, memories: Memories, passages: Passages, held: Held, passage_writer: PassageWriter) -> None:
        self._memories = memories
        self._held = held
        self._passages = passages
        self._passage_writer = passage_writer

    async def add(
        self, tx: Transaction, draft: Draft, prepared: Prepared, replaced: Sequence[Replaced]
    ) -> tuple[StoredMemory | None, list[UUID]]:
        """Store a memory and supersede what it replaces; None if one in force says the same.

        Locks what it replaces first: a concurrent change to that may make the new one a duplicate.
        """
        old = await self._replaceable(tx, replaced)
        if draft.key is not None and (holder := await self._memories.in_slot(tx, draft.scope, draft.key)):
            old.setdefault(holder.id, (holder, {"because": "key"}))
        moment = await self._memories.moment(tx, [memory for memory, _ in old.values()])
        memory = await self._memories.add(tx, draft, moment)
        if memory is None:
            return None, []
        for other, reason in old.values():
            await self.supersede(tx, other, memory, moment, reason)
        await self._memories.take_slot(tx, memory)
        await self._passage_writer.add(tx, _source(memory, prepared), prepared)
        return memory, list(old)

    async def _replaceable(
        self, tx: Transaction, replaced: Sequence[Replaced]
    ) -> dict[UUID, tuple[StoredMemory, Mapping[str, Any]]]:
        """Lock what is to be replaced; what a model was asked about counts only if it has not changed since."""
        locked = await self._memories.lock(tx, [each.id for each in replaced])
        found = {}
        for each in replaced:
            memory = locked.get(each.id)
            if memory is not None:
                require_since(memory, each.if_since)
            if memory is not None and memory.superseded_by is None and each.seen in (None, memory):
                found[each.id] = memory, each.reason
            elif each.seen is None:
                raise Conflict(f"Memory {each.id} is not in force any more: look at its history, and try again")
        return found

    async def change(
        self,
        tx: Transaction,
        memory: StoredMemory,
        new: StoredMemory,
        prepared: Prepared,
        said: str | None = None,
        replaced: Sequence[Replaced] = (),
    ) -> tuple[StoredMemory, list[UUID]]:
        """Change a locked memory to `new`, and supersede what it replaces and the memory that has its key."""
        is_sooner = memory.expires_at is None or (new.expires_at is not None and new.expires_at < memory.expires_at)
        if new.expires_at is not None and is_sooner and not origin.may("admin"):
            raise Forbidden(_SHORTENED)
        old = await self._replaceable(tx, replaced)
        if new.key is not None and (holder := await self._memories.in_slot(tx, memory.scope, new.key)):
            old.setdefault(holder.id, (holder, {"because": "key"}))
        old.pop(memory.id, None)
        moment = await self._memories.moment(tx, [memory, *(other for other, _ in old.values())])
        for other, reason in old.values():
            await self.supersede(tx, other, memory, moment, reason)
        changed = await self._memories.change(tx, memory, new, moment, said)
        await self._retire(tx, memory.id, moment)
        if changed.expires_at != memory.expires_at:
            versions = await self._memories.expire_versions(tx, changed)
            await self._passages.expire(tx, PAST_MEMORY, versions, changed.expires_at)
        await self._passage_writer.add(tx, _source(changed, prepared), prepared)
        return changed, list(old)

    async def supersede(
        self, tx: Transaction, old: StoredMemory, new: StoredMemory, moment: datetime, reason: Mapping[str, Any]
    ) -> None:
        """Supersede a locked memory."""
        await self._memories.supersede(tx, old, new, moment, reason)
        await self._retire(tx, old.id, moment)

    async def reinstate(
        self, tx: Transaction, memory: StoredMemory, prepared: Prepared
    ) -> tuple[StoredMemory, list[UUID]]:
        """Restore a locked memory, and supersede the memory that has its key by now."""
        holder = None if memory.key is None else await self._memories.in_slot(tx, memory.scope, memory.key)
        moment = await self._memories.moment(tx, [memory] if holder is None else [memory, holder])
        if holder is not None:
            await self.supersede(tx, holder, memory, moment, {"because": "undo"})
        restored = await self._memories.reinstate(tx, memory, moment)
        await self._passage_writer.add(tx, _source(restored, prepared), prepared)
        return restored, [] if holder is None else [holder.id]

    async def remove(self, tx: Transaction, ids: Sequence[UUID], event: str) -> list[UUID]:
        """Delete locked memories with their past versions and passages; returns those that existed."""
        versions = await self._memories.versions(tx, ids)
        passages = await self._passages.of_items(tx, PAST_MEMORY, versions)
        removed = await self._memories.remove(tx, ids, event)
        passages += await self._passages.of_items(tx, MEMORY, list(map(str, removed)))
        await self._passages.remove(tx, passages)
        await self._held.remove(tx, MEMORY, list(map(str, removed)))
        await self._held.remove(tx, PAST_MEMORY, versions)
        return removed

    async def _retire(self, tx: Transaction, memory_id: UUID, moment: datetime) -> None:
        past = await self._memories.last_version(tx, memory_id)
        await self._passages.retire(tx, MEMORY, str(memory_id), PAST_MEMORY, past, moment)
        await self._held.retire(tx, MEMORY, str(memory_id), PAST_MEMORY, past)


def stored_trust(classes: Sequence[Trust]) -> str | None:
    """The lowest of some classes as a memory keeps it: None is what memories are unless somebody says otherwise."""
    of_class = trust.lowest(classes)
    return None if of_class == trust.of_item(MEMORY) else of_class


def superseding(memory: StoredMemory, superseded: Sequence[UUID]) -> list[Change]:
    """The changes of memories that another one superseded."""
    return [Change("update", MEMORY, str(old), {"superseded_by": str(memory.id)}) for old in superseded]


def _source(memory: StoredMemory, prepared: Prepared) -> Source:
    return Source(
        MEMORY,
        str(memory.id),
        prepared.excerpts,
        memory.created_at,
        owner=memory.user_id or "",
        agent_id=memory.agent_id,
        session_id=memory.session_id,
        position=memory.position,
        category=memory.category,
        metadata=json.dumps(memory.metadata),
        since=memory.since,
        valid_from=memory.valid_from,
        valid_until=memory.valid_until,
        expires_at=memory.expires_at,
        key=memory.key,
        trust=memory.trust,
    )
