"""Content: how dense a text is, and how much of it another one says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.language.content import density, likeness, share_said
from tests.language.test_words import ANY_TEXT, SENTENCES


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_of_any_language_has_some_density(language: str) -> None:
    assert 0.2 <= density(SENTENCES[language]) <= 1.0


def test_a_condensed_text_is_dense_and_small_talk_is_not() -> None:
    assert density("User prefers window judges, morning flights; allergic to peanuts; budget 400 euro.") > 0.7
    assert density("Well, so it was that we were there and then they had it with them, too.") < 0.5


def test_stop_words_and_repetitions_say_nothing() -> None:
    assert density("cats sleep") == 1.0
    assert density("the cats and the cats and all of the cats sleep") < 0.25
    assert density("it was what it was") == 0.0


def test_a_long_text_is_as_dense_as_its_parts() -> None:
    words = " ".join(f"word{n}" for n in range(500))
    assert density(words) == 1.0
    assert density(f"{words} {words}") == 1.0
    assert density("one two three four five " * 100) < 0.1


@pytest.mark.parametrize("text", ["", " \n", "?!…", "🎉🍕"])
def test_what_has_no_words_has_no_density(text: str) -> None:
    assert density(text) == 0.0


@given(ANY_TEXT)
def test_the_density_of_any_text_is_a_share_and_always_the_same(text: str) -> None:
    assert 0.0 <= density(text) <= 1.0
    assert density(text) == density(text)


def test_a_text_says_all_of_itself_in_any_form_of_its_words() -> None:
    assert share_said("Cats sleep all day", "My cat sleeps, and all the days are long") == 1.0
    assert share_said("Cats and dogs", "The cat is here") == 0.5
    assert share_said("Cats", "Fish swim") == 0.0
    assert share_said("what is it", "what is it") == 0.0


def test_texts_are_alike_as_far_as_both_say_the_same() -> None:
    assert likeness("Cats sleep all day", "All day the cat sleeps") == 1.0
    assert likeness("cats", "cats sleep") == likeness("cats sleep", "cats") < 1.0
    assert likeness("cats", "dogs") == 0.0


@given(ANY_TEXT, st.text(max_size=100))
def test_what_two_texts_share_is_a_share(text: str, others: str) -> None:
    assert 0.0 <= share_said(text, others) <= 1.0
    assert 0.0 <= likeness(text, others) == likeness(others, text) <= 1.0
