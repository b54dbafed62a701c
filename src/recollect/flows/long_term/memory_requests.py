"""What callers ask of long-term memory: a chat to remember, which memories to find, what to change in one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from recollect import checks
from recollect.errors import Invalid
from recollect.memory.memories import CATEGORIES, Filter, StoredMemory


@dataclass(frozen=True, slots=True)
class ChatLine:
    """One message of a chat that is to be remembered; the name takes the place of the role."""

    role: str
    content: str
    name: str | None = None


def as_text(lines: Sequence[ChatLine]) -> str:
    """A chat as one text; the words of the user alone stand for themselves."""
    if len(lines) == 1 and lines[0].role == "user" and lines[0].name is None:
        return lines[0].content
    return "\n".join(f"{line.name or line.role}: {line.content}" for line in lines)


@dataclass(frozen=True, slots=True)
class Change:
    """What to change of a memory; None leaves it. Metadata is merged (RFC 7396): a key with null goes."""

    text: str | None = None
    category: str | None = None
    metadata: Mapping[str, Any] | None = None

    def of(self, memory: StoredMemory) -> StoredMemory:
        """The memory as it is to be."""
        category = self.category or memory.category
        metadata = dict(self.metadata or {})
        # Answers show the category in the metadata, so it may come back from there.
        if metadata.pop("category", category) != category:
            raise Invalid("metadata.category is read-only: change the field category")
        merged = _merged(memory.metadata, metadata)
        checks.metadata(merged)
        return replace(memory, text=self.text or memory.text, category=category, metadata=merged)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which memories of a scope; None leaves a filter out. Metadata is what theirs must contain."""

    categories: Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None
    since: datetime | None = None
    until: datetime | None = None

    def checked(self) -> Filter:
        """The same, or a sentence about what cannot be asked for."""
        if self.categories is not None and not self.categories:
            raise Invalid("categories is empty and would match nothing: omit it to match all")
        for category in self.categories or ():
            checks.one_of(category, CATEGORIES, "categories")
        if "category" in (self.metadata or {}):
            raise Invalid("metadata.category is read-only: filter by categories")
        since, until = self.since, self.until
        if since is not None and until is not None:
            since, until = checks.time_range(since, until, ("since", "until"))
        return Filter(
            tuple(self.categories) if self.categories else None,
            checks.metadata_filter(self.metadata, "metadata"),
            None if since is None else checks.utc(since, "since"),
            None if until is None else checks.utc(until, "until"),
        )


def _merged(old: Any, patch: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON merge patch (RFC 7396)."""
    merged = dict(old) if isinstance(old, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value) if isinstance(value, Mapping) else value
    return merged
