"""Checks of input hold for any input."""

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import checks
from recollect.checks import EMBEDDING_DIMENSIONS
from recollect.errors import Invalid


@given(st.text())
def test_text_is_returned_as_it_is_or_refused(value: str) -> None:
    try:
        assert checks.text(value, "content") == value
    except Invalid:
        unstorable = "\x00" in value or any("\ud800" <= c <= "\udfff" for c in value)
        assert unstorable or not value.strip()


@given(st.dictionaries(st.text(), st.floats() | st.text() | st.none() | st.lists(st.integers()), max_size=5))
def test_metadata_is_encoded_as_the_same_json_or_refused(value: dict[str, Any]) -> None:
    try:
        encoded = checks.metadata(value)
    except Invalid:
        return
    assert encoded is not None
    assert json.loads(encoded) == value


@given(st.text(max_size=200))
def test_a_namespace_that_passes_can_stand_in_a_quoted_string(value: str) -> None:
    try:
        checks.namespace(value)
    except Invalid:
        return
    assert not set(value) & set("'\"\\ \n\x00;$")


@given(st.datetimes(timezones=st.none() | st.timezones()))
def test_a_moment_is_kept_and_ends_up_in_utc(value: datetime) -> None:
    try:
        moment = checks.utc(value, "start_date")
    except Invalid:
        assert value.year in (1, 9999)
        return
    assert moment.utcoffset() is not None
    assert moment.utcoffset().total_seconds() == 0  # type: ignore[union-attr]


@pytest.mark.parametrize("moment", [datetime.min, datetime.max, datetime.min.replace(tzinfo=UTC)])
def test_a_moment_that_postgresql_takes_for_infinity_is_not_stored(moment: datetime) -> None:
    with pytest.raises(Invalid, match="at is outside the range of years that can be stored"):
        checks.storable_utc(moment, "at")
    assert checks.utc(moment, "since").tzinfo is UTC  # as the end of a range, it means always


def test_what_is_empty_is_told_by_what_it_is() -> None:
    with pytest.raises(Invalid, match="exclude_session is empty: pass the id of the session"):
        checks.identifier(" ", "exclude_session")


@pytest.mark.parametrize("text", ["\\u0000", 'a "\\\\u0000" b'])
def test_a_backslash_u_that_is_only_text_is_no_nul(text: str) -> None:
    assert json.loads(checks.metadata({"k": text}) or "") == {"k": text}


def test_metadata_has_a_limit_that_is_named() -> None:
    with pytest.raises(Invalid, match="limit of 1024 kB"):
        checks.metadata({"k": "x" * (1024 * 1024)})


def test_vectors_of_numpy_are_taken_as_they_are() -> None:
    values = [n / EMBEDDING_DIMENSIONS for n in range(EMBEDDING_DIMENSIONS)]
    expected = checks.embedding(values, "embedding")
    assert checks.embedding(np.array(values), "embedding") == expected  # type: ignore[arg-type]
    assert checks.embedding(list(np.array(values)), "embedding") == expected
    small = np.array(values, dtype=np.float32)
    assert checks.embedding(list(small), "embedding") == checks.embedding(small.tolist(), "embedding")
    with pytest.raises(Invalid, match="number 0 is list"):
        checks.embedding(np.ones((EMBEDDING_DIMENSIONS, 2)), "embedding")  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="all zeros"):
        checks.query_embedding(np.zeros(EMBEDDING_DIMENSIONS), "query_embedding")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [[], "", 0, False, "x"])
def test_a_filter_that_is_no_object_is_refused_even_when_it_is_empty(wrong: Any) -> None:
    assert checks.metadata_filter({}, "metadata_filters") is None
    with pytest.raises(Invalid, match="must be a JSON object"):
        checks.metadata_filter(wrong, "metadata_filters")


@pytest.mark.parametrize("metadata", [{1: "a"}, {"a": {1: "b"}}, {"a": [{"b": {None: 1}}]}])
def test_keys_that_json_would_turn_into_text_are_refused(metadata: Any) -> None:
    with pytest.raises(Invalid, match="must be a JSON object with string keys"):
        checks.metadata(metadata)


def test_metadata_of_very_many_values_is_refused_before_it_is_encoded() -> None:
    assert checks.metadata({"n": [1] * (checks.MAX_METADATA_VALUES - 1)}) is not None
    with pytest.raises(Invalid, match="more than 100,000 values"):
        checks.metadata({"n": [[]] * checks.MAX_METADATA_VALUES})
    with pytest.raises(Invalid, match="larger than the limit of 1024 kB"):
        checks.metadata_text("[" + " " * 3_000_000 + "]")
