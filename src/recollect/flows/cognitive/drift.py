"""Drift: how a golden run compares with what the same queries found before. Only like is compared with like."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from recollect.memory.cognitive.golden import Baseline, GoldenQuery, QueryResult

RANKS = 5

# Drift is a fall by more than this part of the baseline.
TOLERATED_FALL = 0.05
# Fractions of the same value may differ in their last bit; no run of any size differs by so little.
_ROUNDING = 1e-9

NORMAL = "All metrics within normal range"


@dataclass(frozen=True, slots=True)
class SetChanges:
    """Ids of queries that this run cannot compare: new ones, those that expect something else, those that are gone."""

    new: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run beside its baselines: those it was held to, and those that its new and changed queries begin with."""

    results: Sequence[QueryResult]
    held_to: Mapping[int, Baseline]
    begun: Mapping[int, Baseline]
    changes: SetChanges

    @property
    def baseline_precision(self) -> float:
        """Of all queries of the run; one without a past counts as it is now."""
        both = [*self.held_to.values(), *self.begun.values()]
        return precision([baseline.hits for baseline in both]) or 0.0

    @property
    def drift_detected(self) -> bool:
        """Whether the queries that can be compared have fallen."""
        now, before = self._compared()
        return now is not None and before is not None and has_drifted(now, before)

    def details(self) -> str:
        """The run in words."""
        changed = ""
        if self.changes:
            counts = (
                (len(self.changes.new), "new"),
                (len(self.changes.changed), "with changed expected insights"),
                (len(self.changes.removed), "removed"),
            )
            what = ", ".join(f"{count} {kind}" for count, kind in counts if count)
            measured = "no query can be compared, so this run is the new baseline."
            if self.held_to:
                same = "1 unchanged query" if len(self.held_to) == 1 else f"{len(self.held_to)} unchanged queries"
                begun = " For the others, this run is the baseline." if self.begun else ""
                measured = f"drift is measured on the {same}.{begun}"
            changed = f" The golden set has changed ({what}): {measured}"
        now, before = self._compared()
        if now is None or before is None or not self.drift_detected:
            return NORMAL + (f".{changed}" if changed else "")
        days = [baseline.set_on for baseline in self.held_to.values()]
        first, last = min(days), max(days)
        set_on = f"on {first}" if first == last else f"from {first} to {last}"
        return (
            f"Drift: precision at 5 is {now:.3f}, {1 - now / before:.1%} below the baseline of {before:.3f} "
            f"set {set_on}.{changed}"
        )

    def _compared(self) -> tuple[float | None, float | None]:
        now = [result.hits for result in self.results if result.query_id in self.held_to]
        return precision(now), precision([baseline.hits for baseline in self.held_to.values()])


def compare(
    queries: Sequence[GoldenQuery], results: Sequence[QueryResult], known: Mapping[int, Baseline], day: date
) -> Comparison:
    """Hold each result to the baseline of its query, if that expects what it expected then."""
    held_to: dict[int, Baseline] = {}
    begun: dict[int, Baseline] = {}
    for query, result in zip(queries, results, strict=True):
        baseline = known.get(query.id)
        if baseline is not None and set(baseline.expected_ids) == set(query.expected_ids):
            held_to[query.id] = baseline
        else:
            begun[query.id] = Baseline(query.id, query.expected_ids, result.hits, day)
    changes = SetChanges(
        new=tuple(query_id for query_id in begun if query_id not in known),
        changed=tuple(query_id for query_id in begun if query_id in known),
        removed=tuple(query_id for query_id in known if query_id not in held_to and query_id not in begun),
    )
    # A first run has no past, so that nothing of it has changed.
    return Comparison(results, held_to, begun, changes if known else SetChanges())


def precision(hits: Sequence[int]) -> float | None:
    """Of the five places of every query, the part that held something expected."""
    return sum(hits) / (RANKS * len(hits)) if hits else None


def has_drifted(now: float, baseline: float) -> bool:
    """Whether a precision is more than the tolerated part below the baseline."""
    return now < baseline * (1 - TOLERATED_FALL) - _ROUNDING
