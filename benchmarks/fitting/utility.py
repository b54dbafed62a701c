"""The smoothed fraction of gold turns among the first results, its gradient, and the weights that maximise it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.fitting.observations import Booleans, Floats, Observed

TEMPERATURE = 0.05
"""Scores that differ by less than this count as nearly equal."""
CUTS = ((5, 1.5, 0.25), (10, 2.5, 0.5), (25, 6.0, 0.25))
"""Results that are looked at, how soft the cut is, and what it counts."""
PULL = 0.02
"""How strongly the weights are pulled to where they start."""
STEPS = 300
RATE = 0.02

COSINE = 0
"""Its weight stays 1, so that the others have a scale."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Questions as arrays, padded to the same number of results, with a row for every gold turn that was recalled."""

    signals: Floats
    there: Booleans
    question: NDArray[np.intp]
    result: NDArray[np.intp]
    share: Floats
    """What a gold turn counts: sets count alike, in a set the questions, in a question the gold turns."""

    @classmethod
    def of(cls, sets: Iterable[Sequence[Observed]]) -> Self | None:
        """None if there is nothing to fit to."""
        filled = [questions for questions in sets if questions]
        asked = [(each, 1 / (len(filled) * len(questions) * each.gold)) for questions in filled for each in questions]
        gold = [
            (row, int(hit), share) for row, (each, share) in enumerate(asked) for hit in np.flatnonzero(each.is_gold)
        ]
        if not gold:
            return None
        longest = max(len(each.signals) for each, _ in asked)
        signals = np.zeros((len(asked), longest, asked[0][0].signals.shape[1]))
        there = np.zeros((len(asked), longest), dtype=np.bool_)
        for row, (each, _) in enumerate(asked):
            signals[row, : len(each.signals)] = each.signals
            there[row, : len(each.signals)] = True
        question, result, share = zip(*gold, strict=True)
        return cls(signals, there, np.array(question), np.array(result), np.array(share))

    def utility(self, weights: Floats) -> tuple[float, Floats]:
        """The smoothed fraction with these weights, and how it changes with each of them."""
        scores = self.signals @ weights
        ahead = _sigmoid((scores[self.question] - scores[self.question, self.result][:, None]) / TEMPERATURE)
        ahead *= self.there[self.question]
        ahead[np.arange(len(self.result)), self.result] = 0.0
        rank = 1 + ahead.sum(axis=1)
        total, by_rank = 0.0, np.zeros_like(rank)
        for cut, softness, counts in CUTS:
            within = _sigmoid((cut + 0.5 - rank) / softness)
            total += counts * float(self.share @ within)
            by_rank -= counts * self.share * within * (1 - within) / softness
        pressure = by_rank[:, None] * ahead * (1 - ahead) / TEMPERATURE
        by_score = np.zeros_like(scores)
        np.add.at(by_score, self.question, pressure)
        np.add.at(by_score, (self.question, self.result), -pressure.sum(axis=1))
        return total, np.tensordot(by_score, self.signals, axes=2)


def fit(batch: Batch | None, start: Floats, steps: int = STEPS) -> Floats:
    """Climb from the start by Adam, with steps that get smaller; without questions the weights stay."""
    weights = start.copy()
    if batch is None:
        return weights
    mean, spread = np.zeros_like(start), np.zeros_like(start)
    for step in range(1, steps + 1):
        _, slope = batch.utility(weights)
        slope -= 2 * PULL * (weights - start)
        slope[COSINE] = 0.0
        mean = 0.9 * mean + 0.1 * slope
        spread = 0.99 * spread + 0.01 * slope**2
        towards = (mean / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.99**step)) + 1e-8)
        weights += RATE * (1 - (step - 1) / steps) * towards
    return weights


def _sigmoid(value: Floats) -> Floats:
    return 0.5 * (1 + np.tanh(value / 2))
