"""BM25: weights, and terms as numbers that every process agrees on."""

import math
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.language.bm25 import (
    AVERAGE_LENGTH,
    DIMENSIONS,
    K1,
    B,
    dimension,
    idf,
    key,
    saturated_weights,
    sparse_text,
)

TERMS = st.lists(st.text(min_size=1, max_size=8), max_size=60)


@given(TERMS)
def test_weights_are_those_of_the_textbook(terms: list[str]) -> None:
    weights = saturated_weights(terms)
    for term, count in Counter(terms).items():
        norm = 1 - B + B * len(terms) / AVERAGE_LENGTH
        assert weights[term] == pytest.approx(count * (K1 + 1) / (count + K1 * norm))
    assert set(weights) == set(terms)


def test_a_weight_never_reaches_its_bound() -> None:
    assert saturated_weights(["a"] * 1000)["a"] < K1 + 1


def test_a_rarer_term_tells_more() -> None:
    assert idf(1, 1000) > idf(10, 1000) > idf(1000, 1000) > 0


def test_a_term_never_seen_counts_as_seen_once() -> None:
    assert idf(0, 1000) == idf(1, 1000) == pytest.approx(math.log(1 + 999.5 / 1.5))
    assert idf(0, 0) > 0


def test_counts_that_lag_behind_the_frequencies_do_no_harm() -> None:
    assert 0 < idf(50, 10) < idf(10, 10)


def test_hashes_are_the_same_in_every_process_and_version() -> None:
    assert dimension("dog") == 705238542
    assert key("default", "ann", "dog") == 7136921723658203315


@given(st.text())
def test_a_dimension_is_one_that_pgvector_takes(term: str) -> None:
    assert 1 <= dimension(term) <= DIMENSIONS


@given(st.text(), st.none() | st.text(), st.text())
def test_a_key_is_a_bigint_and_always_the_same(namespace: str, owner: str | None, term: str) -> None:
    assert key(namespace, owner, term) == key(namespace, owner, term)
    assert -(2**63) <= key(namespace, owner, term) < 2**63


SCOPES = st.tuples(st.text(max_size=4), st.none() | st.text(max_size=4), st.text(max_size=4))


@given(SCOPES, SCOPES)
def test_different_scopes_have_different_keys(
    one: tuple[str, str | None, str], other: tuple[str, str | None, str]
) -> None:
    assert (key(*one) == key(*other)) == (one == other)


def test_the_empty_owner_is_not_the_whole_namespace() -> None:
    assert len({key("ns", "", "dog"), key("ns", None, "dog"), key("", "ns", "dog"), key("ns", "ann", "dog")}) == 4
    assert key("ab", "c", "dog") != key("a", "bc", "dog")


SPARSE = re.compile(r"\{((?:\d+:[\d.e+-]+(?:,|(?=\})))*)\}/" + str(DIMENSIONS))


@given(st.dictionaries(st.text(max_size=5), st.floats(0.01, 2.2), max_size=50))
def test_sparse_text_lists_each_dimension_once_in_order(weights: dict[str, float]) -> None:
    match = SPARSE.fullmatch(sparse_text(weights))
    assert match
    elements = [element.split(":") for element in match[1].split(",") if element]
    indices = [int(index) for index, _ in elements]
    assert indices == sorted(set(indices))
    assert sum(float(value) for _, value in elements) == pytest.approx(sum(weights.values()))


def test_terms_that_share_a_dimension_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.language.bm25.dimension", lambda term: 7)
    assert sparse_text({"a": 1.5, "b": 0.25}) == "{7:1.75}/1000000000"


def test_no_terms_make_an_empty_vector() -> None:
    assert sparse_text(saturated_weights([])) == "{}/1000000000"
