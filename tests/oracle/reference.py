"""Reference: long-term memories in time as plain lists in memory, so simple that one sees that it is right.

Each memory has a timeline of what it was from which moment on. What was in force at a moment is read from there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.memory.memories import MemoryScope


@dataclass(frozen=True, slots=True)
class Content:
    """What a memory says."""

    text: str
    category: str
    metadata: Mapping[str, Any]
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    key: str | None = None
    expires_at: datetime | None = None

    def is_valid(self) -> bool:
        return self.valid_from is None or self.valid_until is None or self.valid_from < self.valid_until

    def is_true_at(self, moment: datetime) -> bool:
        begun = self.valid_from is None or self.valid_from <= moment
        return begun and (self.valid_until is None or moment < self.valid_until)


@dataclass(slots=True)
class Entry:
    """What a memory is from a moment on. The engine chooses the moment, so it is filled in afterwards."""

    event: str
    content: Content
    superseded_by: UUID | None = None
    moment: datetime | None = None


@dataclass(slots=True)
class Known:
    """One memory: whose it is, and its timeline."""

    id: UUID
    scope: MemoryScope
    timeline: list[Entry] = field(default_factory=list)
    told_at: datetime | None = None
    """When it was said, if that was before it was stored."""

    @property
    def now(self) -> Entry:
        return self.timeline[-1]

    @property
    def in_force(self) -> bool:
        return self.now.superseded_by is None

    @property
    def said_at(self) -> datetime:
        said_at = self.told_at or self.timeline[0].moment
        assert said_at is not None
        return said_at

    def at(self, moment: datetime | None) -> Entry | None:
        """What it was at a moment; None asks for now."""
        if moment is None:
            return self.now
        past = [entry for entry in self.timeline if entry.moment is not None and entry.moment <= moment]
        return past[-1] if past else None


class Refused(Exception):
    """The request is one that must be refused; nothing has changed."""


class Reference:
    """All memories that there are. What is deleted, forgotten or expired is not among them, as if it never was."""

    def __init__(self) -> None:
        self.memories: dict[UUID, Known] = {}
        self.deleted: dict[UUID, Known] = {}
        """Memories of which only the history is left."""

    def visible(
        self,
        scope: MemoryScope,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
        category: str | None = None,
        key: str | None = None,
    ) -> list[tuple[UUID, Content]]:
        """What a list or a search must show, newest first."""
        found = []
        for memory in self.memories.values():
            entry = memory.at(as_of)
            if (
                entry is not None
                and entry.superseded_by is None
                and _within(memory.scope, scope)
                and (valid_at is None or entry.content.is_true_at(valid_at))
                and category in (None, entry.content.category)
                and key in (None, entry.content.key)
            ):
                found.append((memory, entry.content))
        found.sort(key=lambda each: (each[0].said_at, each[0].id), reverse=True)
        return [(memory.id, content) for memory, content in found]

    def same(self, scope: MemoryScope, content: Content, but: UUID | None = None) -> Known | None:
        """The memory in force that says the same."""
        for memory in self.memories.values():
            now = memory.now.content
            if (
                memory.in_force
                and memory.id != but
                and memory.scope == scope
                and (now.text, now.category) == (content.text, content.category)
            ):
                return memory
        return None

    def plan_add(
        self, scope: MemoryScope, content: Content, given: Mapping[str, Any], supersedes: Iterable[UUID]
    ) -> tuple[str, set[UUID]]:
        """What an add must answer, and which memories it takes out of force."""
        named = set(supersedes)
        for memory_id in named:
            old = self.memories.get(memory_id)
            if old is None or old.scope != scope or not old.in_force:
                raise Refused
        same = self.same(scope, content)
        whole = content if same is None else merged(same.now.content, content, given)
        if not whole.is_valid():
            raise Refused
        if same is not None and whole == same.now.content and named <= {same.id}:
            return "existing", set()
        replaced = named | self._holders(scope, whole.key)
        return ("created", replaced) if same is None else ("merged", replaced - {same.id})

    def create(self, new: Known, replaced: Iterable[UUID]) -> None:
        """A new memory, and what gave way to it."""
        self._supersede(replaced, new.id)
        self.memories[new.id] = new

    def change(self, memory_id: UUID, content: Content, replaced: Iterable[UUID] = ()) -> set[UUID]:
        """What a memory is from now on; what has its key gives way. Returns all that is touched."""
        memory = self.memories.get(memory_id)
        if memory is None or not memory.in_force or not content.is_valid():
            raise Refused
        giving_way = (set(replaced) | self._holders(memory.scope, content.key)) - {memory_id}
        twin = self.same(memory.scope, content, but=memory_id)
        if twin is not None and twin.id not in giving_way:
            raise Refused
        self._supersede(giving_way, memory_id)
        memory.timeline.append(Entry("update", content))
        return {memory_id, *giving_way}

    def undo(self, memory_id: UUID) -> set[UUID]:
        """A superseded memory is in force again. Returns all that is touched."""
        memory = self.memories.get(memory_id)
        if memory is None or memory.in_force:
            raise Refused
        content = memory.now.content
        giving_way = self._holders(memory.scope, content.key)
        twin = self.same(memory.scope, content)
        if twin is not None and twin.id not in giving_way:
            raise Refused
        self._supersede(giving_way, memory_id)
        memory.timeline.append(Entry("undo", content))
        return {memory_id, *giving_way}

    def delete(self, memory_id: UUID, *, restore: bool) -> set[UUID]:
        """A memory is gone at every time; with `restore`, what it had superseded is in force again."""
        if memory_id not in self.memories:
            raise Refused
        before = {each.id: list(each.timeline) for each in self.memories.values()}
        removed = self.memories.pop(memory_id)
        touched: set[UUID] = set()
        try:
            for each in sorted(self.superseded_by(memory_id)) if restore else ():
                touched |= self.undo(each)
        except Refused:
            self.memories[memory_id] = removed
            for each_id, timeline in before.items():
                self.memories[each_id].timeline = timeline
            raise
        removed.timeline.append(Entry("delete", removed.now.content))
        self.deleted[memory_id] = removed
        return touched

    def superseded_by(self, memory_id: UUID) -> list[UUID]:
        return [each.id for each in self.memories.values() if each.now.superseded_by == memory_id]

    def forget(self, memory_id: UUID) -> None:
        """Nothing is left, not even a history."""
        self.memories.pop(memory_id, None)
        self.deleted.pop(memory_id, None)

    def expire(self, moment: datetime) -> set[UUID]:
        """What is over at a moment is gone at every time."""
        over = {
            each.id
            for each in self.memories.values()
            if each.now.content.expires_at is not None and each.now.content.expires_at <= moment
        }
        for memory_id in over:
            del self.memories[memory_id]
        return over

    def _holders(self, scope: MemoryScope, key: str | None) -> set[UUID]:
        if key is None:
            return set()
        return {
            each.id
            for each in self.memories.values()
            if each.in_force and each.scope == scope and each.now.content.key == key
        }

    def _supersede(self, ids: Iterable[UUID], successor: UUID) -> None:
        for memory_id in ids:
            memory = self.memories[memory_id]
            memory.timeline.append(Entry("supersede", memory.now.content, successor))


def merged(old: Content, new: Content, given: Mapping[str, Any]) -> Content:
    """A memory that exists, with what was said of it besides."""
    return replace(old, metadata={**old.metadata, **new.metadata}, **given)


def _within(owner: MemoryScope, asked: MemoryScope) -> bool:
    return (
        asked.user_id in (None, owner.user_id)
        and asked.agent_id in (None, owner.agent_id)
        and asked.session_id in (None, owner.session_id)
    )
