"""The arithmetic behind `python -m benchmarks ranking` and `relevance`, on made-up results."""

import numpy as np
import pytest
from benchmarks.fitting.observations import Floats, Observed
from benchmarks.fitting.ranking import fractions
from benchmarks.fitting.relevance import calibration_error, lost_by_floor, recalibrated, reliability
from benchmarks.fitting.utility import COSINE, Batch, fit

SIGNALS = 4


def made_up(seed: int, results: int, gold: list[int], *, missed: int = 0) -> Observed:
    random = np.random.default_rng(seed)
    is_gold = np.isin(np.arange(results), gold)
    return Observed(
        "talk", False, len(gold) + missed, is_gold, random.random((results, SIGNALS)), np.full(results, 0.5), True
    )


def batch() -> Batch:
    one = [made_up(1, 30, [4, 20]), made_up(2, 12, [11], missed=1), made_up(3, 0, [], missed=1)]
    found = Batch.of([one, [], [made_up(4, 40, [0, 1, 39])]])
    assert found is not None
    return found


def chances(results: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng(5)
    claimed = random.random(results)
    return claimed, (random.random(results) < claimed).astype(float)


def test_the_gradient_of_the_smoothed_fraction_agrees_with_finite_differences() -> None:
    questions, weights, step = batch(), np.array([1.0, 0.3, -0.2, 0.6]), 1e-6
    _, slope = questions.utility(weights)
    moved = [
        (questions.utility(weights + step * towards)[0] - questions.utility(weights - step * towards)[0]) / (2 * step)
        for towards in np.eye(SIGNALS)
    ]
    assert np.abs(slope).max() > 0.01
    assert slope == pytest.approx(moved, rel=1e-4, abs=1e-8)


def test_a_gold_turn_that_nothing_outranks_counts_nearly_whole_and_one_that_was_not_recalled_nothing() -> None:
    signals = np.zeros((40, SIGNALS))
    signals[0, COSINE] = 10.0
    found = Batch.of([[Observed("talk", False, 2, np.arange(40) == 0, signals, np.zeros(40), True)]])
    assert found is not None
    assert found.utility(np.ones(SIGNALS))[0] == pytest.approx(0.5, abs=0.02)


def test_a_fit_raises_the_signal_that_marks_gold_and_leaves_the_cosine_alone() -> None:
    random = np.random.default_rng(6)
    asked = []
    for _ in range(20):
        signals = random.random((50, SIGNALS))
        is_gold = np.arange(50) == 7
        signals[7, 2] += 1.0
        asked.append(Observed("talk", False, 1, is_gold, signals, np.zeros(50), True))
    start = np.array([1.0, 0.5, 0.0, 0.0])
    fitted = fit(Batch.of([asked]), start)
    assert fitted[COSINE] == 1.0
    assert fitted[2] > 0.3
    assert fractions(asked, {False: fitted})[0] > fractions(asked, {False: start})[0]


def test_without_gold_there_is_nothing_to_fit_to_and_the_weights_stay() -> None:
    start = np.array([1.0, 0.5])
    assert Batch.of([[made_up(7, 10, [], missed=1)]]) is None
    assert fit(None, start).tolist() == start.tolist()


def test_relevance_that_is_the_true_chance_has_hardly_a_calibration_error() -> None:
    claimed, gold = chances(20_000)
    assert calibration_error(reliability(claimed, gold)) < 0.02
    assert recalibrated(claimed, gold) == pytest.approx((1.0, 0.0), abs=0.1)


def test_relevance_that_claims_certainty_has_a_large_calibration_error() -> None:
    _, gold = chances(20_000)
    assert calibration_error(reliability(np.ones(20_000), gold)) == pytest.approx(1 - gold.mean())


def test_the_floor_loses_the_gold_of_questions_said_to_have_no_answer() -> None:
    asked = [
        Observed("talk", False, 2, np.array([True, False]), np.zeros((2, SIGNALS)), np.full(2, 0.5), is_answered)
        for is_answered in (True, False, True, True)
    ]
    assert lost_by_floor(asked) == 0.25
