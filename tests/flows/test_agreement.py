"""Cohen's kappa equals the reference, is defined where the reference is not, and has the names of Landis and Koch."""

import math
import random
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score  # type: ignore[import-untyped]

from recollect.errors import Invalid
from recollect.flows.cognitive.agreement import band, kappa, relevant

CASES = 2000


def reference(first: list[int], second: list[int]) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where it divides by zero
        return float(cohen_kappa_score(first, second))


def verdicts(chance: random.Random) -> tuple[list[int], list[int]]:
    """Two judges of one to forty things in one to five classes, who agree as often as chance will have it."""
    things, classes, agreeing = chance.randint(1, 40), chance.randint(1, 5), chance.random()
    first = [chance.randrange(classes) for _ in range(things)]
    return first, [verdict if chance.random() < agreeing else chance.randrange(classes) for verdict in first]


def test_kappa_is_the_references_on_two_thousand_random_cases_and_one_where_that_is_undefined() -> None:
    chance = random.Random(20_260)
    undefined = 0
    for _ in range(CASES):
        first, second = verdicts(chance)
        expected = reference(first, second)
        if math.isnan(expected):
            undefined += 1
            assert len({*first, *second}) == 1
            assert kappa(first, second) == 1.0
        else:
            assert kappa(first, second) == pytest.approx(expected, abs=1e-12)
    assert 0 < undefined < CASES / 2


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_kappa_is_always_a_number_between_minus_one_and_one_and_takes_no_side(pairs: list[tuple[bool, bool]]) -> None:
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    assert -1.0 <= kappa(first, second) <= 1.0
    assert kappa(first, second) == kappa(second, first)
    assert kappa(first, first) == 1.0
    assert band(kappa(first, second))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([True, True, True], [True, True, True], 1.0),
        ([False], [False], 1.0),
        ([True], [False], 0.0),
        ([True, True, True], [False, False, False], 0.0),
        ([True, True, True], [True, False, True], 0.0),
        ([True, False], [False, True], -1.0),
        ([True, False], [True, False], 1.0),
    ],
)
def test_the_degenerate_cases_are_defined(first: list[bool], second: list[bool], expected: float) -> None:
    assert kappa(first, second) == expected


@pytest.mark.parametrize(("first", "second"), [([], []), ([True], []), ([True], [True, False])])
def test_judges_of_nothing_or_of_different_things_are_refused(first: list[bool], second: list[bool]) -> None:
    with pytest.raises(Invalid, match="judges must score the same documents"):
        kappa(first, second)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (-1.0, "poor"),
        (-0.001, "poor"),
        (0.0, "slight"),
        (0.2, "slight"),
        (0.21, "fair"),
        (0.4, "fair"),
        (0.41, "moderate"),
        (0.6, "moderate"),
        (0.61, "substantial"),
        (0.75, "substantial"),
        (0.8, "substantial"),
        (0.81, "almost perfect"),
        (1.0, "almost perfect"),
    ],
)
def test_an_agreement_has_the_name_of_landis_and_koch(value: float, name: str) -> None:
    assert band(value) == name


def test_a_document_is_relevant_above_one_half() -> None:
    assert relevant([0.0, 0.5, 0.51, 1.0]) == [False, False, True, True]
