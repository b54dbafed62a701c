"""Origin: by which door a write comes, and who makes it; set once by the door, read by whatever records the write."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# As long as the id of a user may be; the label of a key may be longer.
MAX_AUTHOR_CHARACTERS = 255


@dataclass(frozen=True, slots=True)
class Origin:
    """A door, and the label of the key or the user of the gateway, if there is one."""

    door: str
    author: str | None = None


# What no other door has begun comes from a program that uses the library.
_LIBRARY = Origin("library")

_current: ContextVar[Origin] = ContextVar("recollect_origin", default=_LIBRARY)


@contextmanager
def acting(door: str, author: str | None = None) -> Iterator[None]:
    """All that is written within the block comes from here, in tasks that it starts, too."""
    before = _current.set(Origin(door, None if author is None else author[:MAX_AUTHOR_CHARACTERS]))
    try:
        yield
    finally:
        _current.reset(before)


def current() -> Origin:
    """Where the present call comes from."""
    return _current.get()
