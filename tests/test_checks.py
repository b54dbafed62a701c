"""Checks of input hold for any input."""

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import checks
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


@pytest.mark.parametrize("text", ["\\u0000", 'a "\\\\u0000" b'])
def test_a_backslash_u_that_is_only_text_is_no_nul(text: str) -> None:
    assert json.loads(checks.metadata({"k": text}) or "") == {"k": text}


def test_metadata_has_a_limit_that_is_named() -> None:
    with pytest.raises(Invalid, match="limit of 1024 kB"):
        checks.metadata({"k": "x" * (1024 * 1024)})
