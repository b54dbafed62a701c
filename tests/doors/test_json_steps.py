"""JSON read in steps is what the standard decoder reads, or refuses where it does; and it never has too many values."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.doors import json_steps
from recollect.errors import Invalid

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["x" * 3000, "\\u", "😀"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
RELAXED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every body were large, and every text longer than what is decoded at once."""
    monkeypatch.setattr(json_steps, "SMALL_BYTES", 0)
    monkeypatch.setattr(json_steps, "_PIECE", 13)
    monkeypatch.setattr(json_steps, "_TOKENS", 3)


@RELAXED
@given(value=VALUES, ascii_only=st.booleans(), indent=st.sampled_from([None, 2]))
async def test_a_value_is_the_one_of_the_standard_decoder(value: Any, ascii_only: bool, indent: int | None) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode(errors="surrogatepass")
    assert repr(await json_steps.read(body)) == repr(json.loads(body))


@RELAXED
@given(value=VALUES, place=st.floats(0, 1), put=st.sampled_from(list('"\\,:[]{}x1.-e\n')), taken=st.integers(0, 2))
async def test_what_is_damaged_is_refused_where_the_standard_decoder_refuses_it(
    value: Any, place: float, put: str, taken: int
) -> None:
    text = json.dumps(value)
    at = int(place * len(text))
    body = (text[:at] + put + text[at + taken :]).encode()
    try:
        expected = repr(json.loads(body))
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 - its text need not be the same
            await json_steps.read(body)
    else:
        assert repr(await json_steps.read(body)) == expected


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "Expecting value: line 1 column 1"),
        (b'{"a": 1,}', "Expecting property name enclosed in double quotes: line 1 column 9"),
        (b'{"a" 1}', "Expecting ':' delimiter: line 1 column 6"),
        (b"[1 2]", "Expecting ',' delimiter: line 1 column 4"),
        (b"[1] 2", "Extra data: line 1 column 5"),
        (b'["abcdefghijklmnopqrstuvwxyz\\x"]', r"Invalid \\escape: line 1 column 29"),
        (b'["abc', "Unterminated string"),
    ],
)
async def test_a_fault_is_told_with_its_place(body: bytes, sentence: str) -> None:
    with pytest.raises(json.JSONDecodeError, match=sentence):
        await json_steps.read(body)


async def test_a_body_of_too_many_values_is_refused_before_it_is_read_to_its_end() -> None:
    assert await json_steps.read(b"[[],[]]", max_values=3) == [[], []]
    with pytest.raises(Invalid, match="more than 3 values: send it in several requests"):
        await json_steps.read(b"[[],[],[], no JSON any more", max_values=3)


async def test_what_is_nested_too_deeply_is_refused_as_by_the_standard_decoder() -> None:
    with pytest.raises(RecursionError):
        await json_steps.read(b"[" * 100_000)


async def test_halves_of_a_character_are_joined_wherever_a_text_is_cut() -> None:
    for before in range(15):
        assert await json_steps.read(json.dumps(["x" * before + "😀" * 5]).encode()) == ["x" * before + "😀" * 5]
