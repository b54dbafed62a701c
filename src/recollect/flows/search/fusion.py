"""Fusion: two ranked lists of items become one by their reciprocal ranks, as the cognitive contract has it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from recollect import checks
from recollect.errors import Invalid

# The contract's constant: it keeps the first of one list from outweighing what stands well in both.
K = 60

_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Weights:
    """What each list counts; together 1."""

    semantic: float = 0.7
    keyword: float = 0.3

    def check(self) -> None:
        """Refuse weights that are not shares of one whole."""
        semantic = checks.number_between(self.semantic, 0.0, 1.0, "weights.semantic")
        keyword = checks.number_between(self.keyword, 0.0, 1.0, "weights.keyword")
        if abs(semantic + keyword - 1.0) > _TOLERANCE:
            raise Invalid(f"weights must sum to 1.0: semantic {semantic:g} and keyword {keyword:g} do not")


def fuse(by_meaning: Sequence[int], by_words: Sequence[int], weights: Weights) -> list[tuple[int, float]]:
    """Items with their score, the best first and equals by id; an item that leads both lists has 1."""
    scores: defaultdict[int, float] = defaultdict(float)
    for ranked, weight in ((by_meaning, weights.semantic), (by_words, weights.keyword)):
        for rank, item in enumerate(ranked, 1):
            scores[item] += weight * (K + 1) / (K + rank)
    fused = [(item, min(score, 1.0)) for item, score in scores.items() if score > 0]
    return sorted(fused, key=lambda entry: (-entry[1], entry[0]))
