"""What an import did: how many records of each kind, and what was rejected where."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from recollect.errors import Conflict, Invalid, LimitReached
from recollect.quotas import QuotaReached

# More refusals than this are counted, not kept.
MAX_TOLD = 1000

# Of what was left out for one reason, these are named.
MAX_EXAMPLES = 3

Progress = Callable[[int], None]
"""Hears how many bytes of the file were done since it was last told."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is wrong, and where: "line 12" or "record 3"."""

    place: str
    reason: str


@dataclass(slots=True)
class Report:
    """Grows while an import goes on."""

    namespace: str
    added: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    refusals: list[Refusal] = field(default_factory=list)
    changed: Counter[str] = field(default_factory=Counter)
    """What was there, but in an earlier version that it now replaces."""
    left_out: Counter[str] = field(default_factory=Counter)
    """By reason, what has no place here: images, for example."""
    examples: dict[str, list[str]] = field(default_factory=dict)
    """By reason, where some of it is."""

    def leave_out(self, place: str, reason: str, count: int = 1) -> None:
        """Count what was left out on purpose, and keep where the first of it is."""
        self.left_out[reason] += count
        places = self.examples.setdefault(reason, [])
        if len(places) < MAX_EXAMPLES and place not in places:
            places.append(place)

    def refuse(self, place: str, reason: object) -> None:
        """Count what could not be taken, and keep why."""
        self.refused += 1
        if len(self.refusals) < MAX_TOLD:
            self.refusals.append(Refusal(place, str(reason)))

    def document(self, most: int = MAX_TOLD) -> dict[str, Any]:
        """All of it as JSON; of each list, so many."""
        return {
            "added": dict(self.added),
            "changed": dict(self.changed),
            "known": dict(self.known),
            "refused": self.refused,
            "refusals": [{"place": refusal.place, "reason": refusal.reason} for refusal in self.refusals[:most]],
            "left_out": [
                {"reason": reason, "count": count, "examples": self.examples[reason]}
                for reason, count in self.left_out.most_common(most)
            ],
        }


async def each_alone_if_not_together(
    records: Sequence[T],
    store: Callable[[Sequence[T]], Awaitable[None]],
    refuse: Callable[[T, Exception], None],
) -> None:
    """Store records in one transaction; if one of them cannot be, each in its own, and refuse those that cannot."""
    try:
        await store(records)
    except QuotaReached:
        # The rest would be refused, too, one by one.
        raise
    except (Invalid, Conflict, LimitReached) as problem:
        if len(records) == 1:
            refuse(records[0], problem)
            return
        for record in records:
            await each_alone_if_not_together([record], store, refuse)
