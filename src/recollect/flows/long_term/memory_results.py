"""What long-term memory answers: what became of a memory, and pages of them."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from recollect.memory.memories import Place, StoredMemory

What = Literal["created", "existing", "merged", "echo"]


@dataclass(frozen=True, slots=True)
class Added:
    """The memory that now says it, and how that came about."""

    memory: StoredMemory
    what: What
    superseded: tuple[UUID, ...] = ()
    degraded: str | None = None
    """Why no language model condensed it, or why it could not be embedded, so that words alone find it for now."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """A memory that is gone, and those that it had superseded: still out of force, or back in it."""

    id: UUID
    superseded: tuple[UUID, ...]
    restored: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """A memory as it is now; `degraded` says why its text could not be embedded, so that words alone find it."""

    memory: StoredMemory
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A memory that answers a question, and how near it is to it, from 0 to 1."""

    memory: StoredMemory
    score: float
    namespace: str | None = None
    """Where it was found, if the question named namespaces."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some memories, newest first, and where the next page begins; None behind the last."""

    memories: list[StoredMemory]
    next: Place | None
