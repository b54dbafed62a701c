"""Retrieval scores: the fraction of a question's gold turns among the first k that recall returned."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

CUTS = (5, 10, 25)


@dataclass(frozen=True, slots=True)
class Score:
    """What one question got: a fraction for each of the cuts."""

    category: str | None
    fractions: tuple[float, ...]


def score(category: str | None, ranked: Sequence[str], gold: Iterable[str]) -> Score:
    """Compare turns, best first, with those that hold the answer; a turn that is named twice counts once."""
    wanted, distinct = set(gold), list(dict.fromkeys(ranked))
    return Score(category, tuple(len(wanted.intersection(distinct[:cut])) / len(wanted) for cut in CUTS))


def table(scores: Sequence[Score]) -> list[str]:
    """The mean of all questions, then of each category, as aligned lines."""
    categories = sorted({one.category for one in scores if one.category is not None})
    rows = [
        ("", "questions", *(f"frac@{cut}" for cut in CUTS)),
        _row("all", scores),
        *(_row(category, [one for one in scores if one.category == category]) for category in categories),
    ]
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [
        "  ".join([row[0].ljust(first), *(cell.rjust(width) for cell, width in zip(row[1:], others, strict=True))])
        for row in rows
    ]


def _row(name: str, scores: Sequence[Score]) -> tuple[str, ...]:
    means = (fmean(fractions) for fractions in zip(*(one.fractions for one in scores), strict=True))
    return (name, f"{len(scores):,}", *(f"{mean:.3f}" for mean in means))
