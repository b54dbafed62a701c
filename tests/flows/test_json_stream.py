"""JSON that is read a value at a time says what the whole says, however it is cut into pieces."""

import io
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.flows.transfer.foreign import json_stream
from recollect.flows.transfer.foreign.json_stream import values
from recollect.flows.transfer.foreign.sources import Broken

# json cannot tell its own writing of infinity from JSON, and surrogates have no UTF-8.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(SCALARS, _nested, max_leaves=4)
ITEMS = st.lists(VALUES, max_size=4)
PIECES = st.integers(1, 40)


class Dribble:
    """A file that gives a few bytes at a time."""

    def __init__(self, content: bytes, at_once: int) -> None:
        self._file = io.BytesIO(content)
        self._at_once = at_once

    def read(self, size: int) -> bytes:
        return self._file.read(min(size, self._at_once))


def written(value: Any, ascii_only: bool, indent: int | None) -> bytes:
    return json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()


def read_until_broken(file: Any, inside: list[tuple[str, ...]]) -> tuple[list[Any], Broken | None]:
    found = []
    try:
        for _, value in values(file, inside):
            found.append(value)  # what comes before the error counts
    except Broken as problem:
        return found, problem
    return found, None


@given(ITEMS, PIECES, st.booleans(), st.sampled_from([None, 2]))
def test_the_items_of_an_array_come_one_by_one(
    items: list[Any], at_once: int, ascii_only: bool, indent: int | None
) -> None:
    content = written(items, ascii_only, indent)
    found = list(values(Dribble(content, at_once), [()]))
    assert found == [((number,), item) for number, item in enumerate(items)]


@given(st.dictionaries(TEXTS, ITEMS, max_size=3), PIECES, st.booleans())
def test_what_is_deeper_down_comes_with_its_path(document: dict[str, Any], at_once: int, ascii_only: bool) -> None:
    inside = [(), *((name,) for name in document)]
    found = list(values(Dribble(written(document, ascii_only, None), at_once), inside))
    assert found == [((name, number), item) for name, items in document.items() for number, item in enumerate(items)]


@given(VALUES, PIECES)
def test_what_is_not_opened_comes_whole(value: Any, at_once: int) -> None:
    assert list(values(Dribble(written(value, True, None), at_once), [])) == [((), value)]


@given(ITEMS.filter(bool), PIECES, st.data())
def test_of_a_file_that_was_cut_off_the_whole_items_come_and_then_an_error(
    items: list[Any], at_once: int, data: st.DataObject
) -> None:
    content = written(items, False, None)
    cut = data.draw(st.integers(0, len(content) - 1))
    found, problem = read_until_broken(Dribble(content[:cut], at_once), [()])
    assert problem is not None
    # A number may have lost its last digits: only what stands behind it tells, and that is missing.
    assert found[:-1] == items[: len(found)][:-1]


@given(ITEMS.filter(bool), ITEMS, PIECES)
def test_of_a_damaged_file_the_items_before_the_damage_come(before: list[Any], after: list[Any], at_once: int) -> None:
    content = written(before, False, None)[:-1] + b", oops, " + written(after, False, None)[1:]
    found, problem = read_until_broken(Dribble(content, at_once), [()])
    assert found == before
    assert problem is not None


@pytest.mark.parametrize(
    ("content", "place", "reason"),
    [
        (b"", "line 1, column 1", "cut off"),
        (b"[1,\n 2,\n  oops]", "line 3, column 3", "Expecting value"),
        (b"[1 2]", "line 1, column 4", ", is missing"),
        (b"[1]\n]", "line 2, column 1", "something follows"),
        (b'["abc', "line 1, column 2", "cut off"),
        (b'["a\xff"]', "line 1, column 4", "not UTF-8"),
        (b'{"a": 1, 2: 3}', "line 1, column 11", "the name of a field is not text"),
        (b"[" + b"9" * 5_000 + b"]", "line 1, column 2", "digits"),
        (b"[" + b"[" * 100_000, "line 1, column 2", "nested too deeply"),
        (b'["' + b"x" * 2_000 + b'"]', "line 1, column 2", "longer than 1,000 characters"),
    ],
)
def test_an_error_names_the_place(content: bytes, place: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", 100)
    most = 1_000 if "longer" in reason else json_stream.MAX_VALUE_CHARACTERS
    with pytest.raises(Broken) as problem:
        list(values(io.BytesIO(content), [()], most))
    assert f"at {place}: " in str(problem.value)
    assert reason in str(problem.value)


def test_memory_is_that_of_one_value_however_long_the_file_is() -> None:
    def peak(count: int) -> int:
        file = io.BytesIO(b"[" + b",".join([json.dumps({"text": "x" * 5_000}).encode()] * count) + b"]")
        tracemalloc.start()
        try:
            assert sum(1 for _ in values(file, [()])) == count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(2_000) < 1.5 * peak(100)
