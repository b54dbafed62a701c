"""Pages: a part of a list, and where the next one begins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")
Place = TypeVar("Place")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item, Place]):
    """Some items, and the place behind which there are more; None if these are the last."""

    items: list[Item]
    behind: Place | None

    @classmethod
    def of(cls, found: Sequence[Item], limit: int, place: Callable[[Item], Place]) -> "Page[Item, Place]":
        """Of one item more than the page may have, if there are so many."""
        items = list(found[:limit])
        return cls(items, place(items[-1]) if len(found) > limit else None)
