"""Receipts: what was forgotten, counted by the tables it was in."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Receipt:
    """How many rows of each kind went, or would go.

    `insights_left` were made from what went and from what others said, `twins_left` say the same as what went: both
    stay, and can be forgotten by their ids.
    """

    what: str
    rows: dict[str, int]
    insights_left: tuple[int, ...] = ()
    twins_left: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """All rows together."""
        return sum(self.rows.values())


class Tally:
    """A receipt while it is being written."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._rows: Counter[str] = Counter()
        self._insights_left: set[int] = set()
        self._progress = progress

    def add(self, kind: str, count: int) -> None:
        """So many rows of a kind."""
        self._rows[kind] += count

    def made_from(self, insights: dict[int, bool]) -> list[int]:
        """Those of some insights that nothing is left of; the others are noted."""
        self._insights_left.update(insight_id for insight_id, from_others in insights.items() if from_others)
        gone = [insight_id for insight_id, from_others in insights.items() if not from_others]
        self._insights_left.difference_update(gone)
        return gone

    @property
    def total(self) -> int:
        """How many rows there are by now."""
        return self._rows.total()

    def tell(self) -> None:
        """Say how many rows there are by now; to be called after a commit."""
        if self._progress is not None:
            self._progress(self.total)

    def receipt(self, what: str) -> Receipt:
        """The receipt, in the order of the alphabet."""
        rows = {kind: count for kind, count in sorted(self._rows.items()) if count}
        return Receipt(what, rows, tuple(sorted(self._insights_left)))
