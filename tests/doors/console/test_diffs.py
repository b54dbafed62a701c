"""What changed between two texts: right for the words, bounded for whatever people store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.doors.console.diffs import CONTEXT, MAX_PIECES, MAX_SHOWN, Piece, changes


def shown(old: str, new: str) -> str:
    marks = {"same": "{}", "old": "[-{}-]", "new": "[+{}+]", "left out": "<{}>"}
    return "".join(marks[piece.what].format(piece.text) for piece in changes(old, new))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Anna lives in Rome.", "Anna lives in Milan.", "Anna lives in [-Rome-][+Milan+]."),
        ("Anna lives in Rome", "Anna lives in Rome now", "Anna lives in Rome[+ now+]"),
        ("Anna likes green tea", "Anna loves black tea", "Anna [-likes green-][+loves black+] tea"),
        ("私は東京に住んでいます", "私は大阪に住んでいます", "私は[-東京-][+大阪+]に住んでいます"),
        ("", "new", "[+new+]"),
        ("same", "same", "same"),
    ],
)
def test_the_words_that_changed_are_told_from_those_that_stayed(old: str, new: str, expected: str) -> None:
    assert shown(old, new) == expected


def test_of_a_long_text_only_the_neighbourhood_of_a_change_is_shown() -> None:
    before, after = "before " * 2_000, " after" * 2_000
    pieces = changes(f"{before}Rome{after}", f"{before}Milan{after}")
    assert [piece.what for piece in pieces if piece.what != "same"] == ["left out", "old", "new", "left out"]
    assert sum(len(piece.text) for piece in pieces) < 3 * CONTEXT


@given(st.text("ab \n.", max_size=60), st.text("ab \n.", max_size=60))
def test_short_texts_can_be_put_together_again(old: str, new: str) -> None:
    pieces = changes(old, new)
    if all(piece.what != "left out" for piece in pieces):
        assert "".join(text for what, text in pieces if what != "new") == old
        assert "".join(text for what, text in pieces if what != "old") == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" ".join(f"w{number}" for number in range(20_000)), " ".join(f"w{number}" for number in range(20_000, 0, -1))),
        ("a. b. " * 16_000, "b. a. " * 16_000),
        ("The same. " * 10_000 + "x", "The same. " * 9_000 + "y"),
        ("a" * 100_000, "b" * 100_000),
    ],
    ids=["reversed", "alternating", "repeated", "one word"],
)
def test_a_hundred_kilobytes_of_anything_give_a_short_answer(old: str, new: str) -> None:
    pieces = changes(old, new)
    assert len(pieces) <= MAX_PIECES + 1
    assert all(isinstance(piece, Piece) and len(piece.text) <= MAX_SHOWN + CONTEXT for piece in pieces)
