"""Long-term memories as the library, MCP and the command line show them, and the requests that these doors share."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import not_
from typing import Annotated, Any, Literal, Self, get_args
from uuid import UUID

from pydantic import BaseModel, Field

from recollect import checks
from recollect.errors import Invalid
from recollect.flows.long_term.memory_requests import Change
from recollect.flows.long_term.memory_results import Added, Deleted, What, Written
from recollect.flows.long_term.pinned import Pinned
from recollect.memory.memories import HistoryEntry, StoredMemory

DEFAULT_LIMIT = 100
DEFAULT_CATEGORY = "fact"

Clearable = Literal["key", "valid_from", "valid_until", "expires_at"]
CLEARABLE: tuple[Clearable, ...] = get_args(Clearable)


# JSON has a field only where it says something.
IF_SET = Field(exclude_if=not_)


class MemoryRecord(BaseModel):
    """A long-term memory: what it says, whose it is, and when it is true."""

    id: UUID
    text: str
    category: str
    user_id: Annotated[str | None, IF_SET] = None
    agent_id: Annotated[str | None, IF_SET] = None
    session_id: Annotated[str | None, IF_SET] = None
    metadata: Annotated[dict[str, Any], IF_SET] = {}
    created_at: datetime
    updated_at: Annotated[datetime | None, IF_SET] = None
    since: datetime
    """When it was stored, or last changed, superseded or restored."""
    valid_from: Annotated[datetime | None, IF_SET] = None
    valid_until: Annotated[datetime | None, IF_SET] = None
    key: Annotated[str | None, IF_SET] = None
    expires_at: Annotated[datetime | None, IF_SET] = None
    pinned: Annotated[bool, IF_SET] = False
    sources: Annotated[list[str], IF_SET] = []
    superseded_by: Annotated[UUID | None, IF_SET] = None
    degraded: Annotated[str | None, IF_SET] = None
    """After a write: why only keyword search finds it for now."""

    @classmethod
    def of(cls, memory: StoredMemory) -> Self:
        """A stored memory."""
        return cls(**fields_of(memory))

    @classmethod
    def written(cls, written: Written) -> Self:
        """A memory after a change."""
        return cls(**fields_of(written.memory), degraded=written.degraded)


class PinnedRecords(BaseModel):
    """The pinned memories of a scope, newest first, and how many more did not fit into the token budget."""

    memories: list[MemoryRecord]
    omitted: int

    @classmethod
    def of(cls, pinned: Pinned) -> Self:
        """What is pinned."""
        return cls(memories=list(map(MemoryRecord.of, pinned.memories)), omitted=pinned.omitted)


class AddedMemory(MemoryRecord):
    """The memory that now says it: a new one, or one that was there (existing, merged, echo)."""

    outcome: What
    superseded: Annotated[list[UUID], IF_SET] = []
    """Ids of the memories that it replaced."""

    @classmethod
    def of_added(cls, added: Added) -> Self:
        """What became of a text."""
        return cls(
            **fields_of(added.memory),
            outcome=added.what,
            superseded=list(added.superseded),
            degraded=added.degraded,
        )


class DeletedMemory(BaseModel):
    """A deleted memory, and those that it had superseded: still out of force, or restored."""

    id: UUID
    superseded: list[UUID]
    restored: list[UUID]

    @classmethod
    def of(cls, deleted: Deleted) -> Self:
        """What was deleted."""
        return cls(id=deleted.id, superseded=list(deleted.superseded), restored=list(deleted.restored))


class MemoryEvent(BaseModel):
    """One thing that happened to a memory. Its texts are gone once the memory is deleted or has expired."""

    event: str
    at: datetime
    old_text: Annotated[str | None, IF_SET] = None
    new_text: Annotated[str | None, IF_SET] = None
    detail: Annotated[dict[str, Any] | None, IF_SET] = None
    """Why and by what: the successor, and the language model if one decided."""

    @classmethod
    def of(cls, entry: HistoryEntry) -> Self:
        """An entry of a history."""
        return cls(
            event=entry.event,
            at=entry.at,
            old_text=entry.old_memory,
            new_text=entry.new_memory,
            detail=entry.detail,
        )


def fields_of(memory: StoredMemory) -> dict[str, Any]:
    """What a record shows of a memory."""
    return {name: getattr(memory, name) for name in MemoryRecord.model_fields if name != "degraded"}


def change_of(
    text: str | None,
    category: str | None,
    metadata: Mapping[str, Any] | None,
    details: Mapping[str, Any],
    clear: Sequence[str],
) -> Change:
    """What to change in a memory: None leaves a field as it is, and `clear` names those to remove."""
    if text is not None:
        checks.text(text, "text")
    given = {name: value for name, value in details.items() if value is not None}
    for name in values_of(clear, "clear"):
        checks.one_of(name, CLEARABLE, "clear")
        if name in given:
            raise Invalid(f"{name} cannot be set and cleared at once: choose one")
    if text is None and category is None and metadata is None and not given and not clear:
        raise Invalid("Nothing to change: pass a text, category, metadata, key, pinned, a time, or fields to clear")
    return Change(text, category, metadata, given | dict.fromkeys(clear))


def values_of(given: Sequence[str | UUID], name: str) -> list[str]:
    """A list of ids or names, not one of them by mistake."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise Invalid(f"{name} must be a list, not {type(given).__name__}")
    return [id_of(each, name) for each in given]


def id_of(given: str | UUID, name: str) -> str:
    """An id as the engine takes it."""
    if not isinstance(given, str | UUID):
        raise Invalid(f"{name} must be a UUID or a string, not {type(given).__name__}")
    return str(given)
