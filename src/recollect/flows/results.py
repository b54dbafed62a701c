"""Results: what a search found, the best first, and whether words alone decided."""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


class Results(list[T]):
    """A list of what was found; `degraded` is None, or says why it could not be asked by meaning."""

    def __init__(self, found: Iterable[T] = (), degraded: str | None = None) -> None:
        super().__init__(found)
        self.degraded = degraded
