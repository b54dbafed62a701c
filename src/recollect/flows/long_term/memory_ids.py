"""Ids of long-term memories as callers write them, and what to say of one that there is not."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from recollect.errors import Conflict, NotFound
from recollect.flows.kinds.long_term import MEMORY
from recollect.memory.memories import StoredMemory

_SHOWN_ID_CHARACTERS = 64


def is_uuid(value: str) -> bool:
    """Whether it could be the id of a memory, alone or as recall and `why` show it: `memory:ID`."""
    try:
        UUID(bare(value))
    except ValueError:
        return False
    return True


def as_uuid(memory_id: str) -> UUID:
    """The id; what could not be one is not known."""
    if not is_uuid(memory_id):
        raise unknown(memory_id)
    return UUID(bare(memory_id))


def bare(memory_id: str) -> str:
    """The id without the kind before it."""
    return memory_id.removeprefix(f"{MEMORY}:")


def existing(found: Mapping[UUID, StoredMemory], memory_id: UUID) -> StoredMemory:
    """The memory among those found that has an id."""
    if memory_id not in found:
        raise unknown(str(memory_id))
    return found[memory_id]


def require_since(memory: StoredMemory, since: datetime | None) -> None:
    """Refuse a memory that is not as the caller saw it: `since` is when that was last changed; None is any."""
    if since is not None and memory.since != since:
        raise Conflict(f"Memory {memory.id} has changed since you looked at it: look again, then decide")


def unknown(memory_id: str) -> NotFound:
    """What to raise for an id that no memory has."""
    return NotFound(f"Unknown memory {memory_id[:_SHOWN_ID_CHARACTERS]}")
