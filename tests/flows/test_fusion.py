"""Fusion by reciprocal ranks: the contract's formula, its scale and its order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import Invalid
from recollect.flows.search.fusion import Weights, fuse

RANKED = st.lists(st.integers(1, 50), unique=True, max_size=20)


def test_the_score_is_the_weighted_sum_of_reciprocal_ranks_over_its_maximum() -> None:
    scores = dict(fuse([7, 8], [9, 8, 7], Weights(0.7, 0.3)))
    best = 1 / 61
    assert scores[7] == pytest.approx((0.7 / 61 + 0.3 / 63) / best)
    assert scores[8] == pytest.approx((0.7 / 62 + 0.3 / 62) / best)
    assert scores[9] == pytest.approx(0.3 / 61 / best)


def test_the_first_of_both_lists_has_one() -> None:
    assert fuse([3, 4], [3, 5], Weights())[0] == (3, 1.0)


def test_equals_stand_in_the_order_of_their_ids() -> None:
    assert [item for item, _ in fuse([9, 2], [2, 9], Weights(0.5, 0.5))] == [2, 9]


def test_a_list_without_weight_brings_nothing() -> None:
    assert fuse([1], [2], Weights(1.0, 0.0)) == [(1, 1.0)]
    assert fuse([1], [2], Weights(0.0, 1.0)) == [(2, 1.0)]
    assert fuse([], [], Weights()) == []


@given(RANKED, RANKED, st.floats(0.01, 0.99))
def test_any_two_lists_give_each_item_once_in_falling_order(one: list[int], other: list[int], semantic: float) -> None:
    fused = fuse(one, other, Weights(semantic, 1 - semantic))
    assert {item for item, _ in fused} == {*one, *other}
    assert [score for _, score in fused] == sorted((score for _, score in fused), reverse=True)
    assert all(0 < score <= 1 for _, score in fused)


@pytest.mark.parametrize(
    ("weights", "named"),
    [
        (Weights(0.7, 0.4), "weights must sum to 1.0"),
        (Weights(0.0, 0.0), "weights must sum to 1.0"),
        (Weights(0.5, 0.49999), "weights must sum to 1.0"),
        (Weights(1.5, -0.5), "weights.semantic"),
        (Weights(0.5, float("nan")), "weights.keyword"),
        (Weights(True, 0.0), "weights.semantic"),
        (Weights("1", 0.0), "weights.semantic"),  # type: ignore[arg-type]
    ],
)
def test_weights_that_are_no_shares_of_one_are_refused(weights: Weights, named: str) -> None:
    with pytest.raises(Invalid, match=named):
        weights.check()


def test_weights_may_miss_one_by_a_rounding_error() -> None:
    Weights(0.1 + 0.2, 0.7).check()
    Weights(1 / 3, 2 / 3).check()
