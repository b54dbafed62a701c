"""Results: what a search found, best first, and whether only keyword search ran."""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


class Results(list[T]):
    """A list of what was found; `degraded` is None, or says why semantic search did not run."""

    def __init__(self, found: Iterable[T] = (), degraded: str | None = None) -> None:
        super().__init__(found)
        self.degraded = degraded
