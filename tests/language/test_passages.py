"""Passages: texts cut on sentence bounds, nothing lost."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.language.passages import OVERLAP_TOKENS, PASSAGE_TOKENS, WHOLE_TOKENS, cut, cutting
from recollect.language.tokens import estimate_tokens

SENTENCE = "We went to the lake with the children and stayed until the sun went down behind the hills. "
MODEL_TOKENS = 256


def squeezed(text: str) -> str:
    return "".join(text.split())


def covers(text: str, passages: list[str]) -> bool:
    """Whether the passages, in order and with overlaps, hold all of the text but its white space."""
    whole, covered = squeezed(text), 0
    for passage in map(squeezed, passages):
        starts = range(max(0, covered - len(passage)), covered + 1)
        fitting = [start for start in starts if whole.startswith(passage, start)]
        if not fitting:
            return False
        covered = max(covered, fitting[-1] + len(passage))
    return covered == len(whole)


def test_a_short_text_stays_as_it_is() -> None:
    assert cut(" Hello there!\nHow are you? ") == [" Hello there!\nHow are you? "]


@pytest.mark.parametrize("text", ["", " ", "\n\n\t", " " * 10_000])
def test_a_text_of_white_space_has_no_passages(text: str) -> None:
    assert cut(text) == []


def test_a_text_just_over_the_size_of_a_passage_stays_whole() -> None:
    text = SENTENCE * 11
    assert PASSAGE_TOKENS < estimate_tokens(text) <= WHOLE_TOKENS
    assert cut(text) == [text]


def test_a_long_text_is_cut_between_sentences_with_one_repeated() -> None:
    text = "".join(f"Number {number}: {SENTENCE}" for number in range(100))
    passages = cut(text)
    assert len(passages) > 10
    assert all(passage.startswith("Number") and passage.endswith("hills.") for passage in passages)
    assert all(before.split("Number")[-1].strip() in after for before, after in pairwise(passages))
    assert all(estimate_tokens(passage) <= PASSAGE_TOKENS for passage in passages)


def test_chinese_is_cut_behind_its_full_stops() -> None:
    passages = cut("昨天晚上我们在花园里烧烤，天气不太稳定。" * 100)
    assert len(passages) > 5
    assert all(passage.endswith("。") for passage in passages)


@pytest.mark.parametrize(
    "text",
    [
        "word " * 5_000,
        "昨天晚上我们在花园里烧烤" * 500,
        "여동생이감자" * 500,
        "QmFzZTY0IGlzIG5vdCBh" * 500,
        "x" * 50_000,
        "é" * 10_000,
        "🎉" * 5_000,
        "." * 5_000,
    ],
    ids=["words", "chinese", "korean", "base64", "one letter", "accents", "emoji", "dots"],
)
def test_a_text_without_sentences_is_cut_all_the_same(text: str) -> None:
    passages = cut(text)
    assert len(passages) > 1
    assert covers(text, passages)
    assert all(estimate_tokens(passage) <= WHOLE_TOKENS for passage in passages)


def test_words_are_not_torn_apart_where_there_are_spaces() -> None:
    assert set(" ".join(cut("elephant walks " * 2_000)).split()) == {"elephant", "walks"}


ALPHABET = st.sampled_from(
    ["word ", "Ende. ", "\n", " ", "。", "猫", "여", "é", "e\u0301", "!", '"', "x" * 70, "\ud800", "\x00"]
)


@given(st.lists(st.tuples(ALPHABET, st.integers(1, 120)), max_size=20))
def test_everything_but_white_space_is_in_some_passage(parts: list[tuple[str, int]]) -> None:
    text = "".join(part * times for part, times in parts)
    passages = cut(text)
    assert covers(text, passages)
    assert all(squeezed(passage) for passage in passages)


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=1_500))
def test_any_text_can_be_cut(text: str) -> None:
    assert covers(text, cut(text))


@pytest.mark.parametrize(
    "unit", [SENTENCE, "a ", "x", "昨天晚上我们在花园里烧烤，天气不太稳定。", "여", '."', "\n", "é "]
)
def test_the_time_to_cut_grows_with_the_text_and_no_faster(unit: str) -> None:
    text = unit * (400_000 // len(unit))
    start = time.process_time()
    cut(text)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("text", "tokens", "english"),
    [
        # Counted with the model's own tokenizer.
        ("Can you tell me where the children went after school yesterday?", 12, True),
        ("Gestern Abend haben wir im Garten meiner Großeltern gegrillt.", 25, False),
        ("昨天晚上我们在花园里烧烤，天气不太稳定。", 20, True),
        ("Вчера вечером мы ужинали в саду.", 26, True),
        ("def estimate(text: str) -> int:", 12, True),
    ],
)
def test_the_estimate_is_near_the_true_count(text: str, tokens: int, english: bool) -> None:
    assert estimate_tokens(text, english=english) == pytest.approx(tokens, rel=0.25)


def test_a_passage_leaves_room_for_an_estimate_that_is_too_low() -> None:
    assert OVERLAP_TOKENS < PASSAGE_TOKENS < WHOLE_TOKENS < MODEL_TOKENS


@pytest.mark.parametrize("text", ["x" + "\n" * 100_000 + "y", " " * 100_000 + "y", "y" * 100_000, "x y " * 30_000])
def test_an_endless_text_is_cut_in_many_short_steps(text: str) -> None:
    steps = list(cutting(text))
    assert [step for step in steps if step is not None] == cut(text)
    assert "".join("".join(cut(text)).split()) == "".join(text.split())
    assert len(steps) >= 5
