"""Sameness: small differences of writing fold, and nothing that says something else does."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.language.sameness import gist, same_facts, sayings

# Each row says one thing, in ways that must fold.
ALIKE = [
    [
        "The user prefers dark mode and uses Vim.",
        "User prefers dark mode and uses Vim",
        "user prefers  DARK mode\nand uses vim!",
    ],
    ["Ann doesn't eat meat", "Ann does not eat meat.", "Ann doesn’t eat meat"],
    ["I can't swim", "I cannot swim", "I can not swim"],
    ["She has three cats", "She has 3 cats"],
    ["Remember that I like tea.", "I like tea", "Please note: I really like tea", "I also like tea"],
    ["“Ann” (the cook) lives in Rome", "Ann, the cook, lives in Rome"],
    ["Prefers dark-mode themes", "prefers dark mode themes"],
    ["Ｉ ｌｉｋｅ ｔｅａ", "i like tea"],
    ["我喜欢茶。", "我喜欢茶"],
]

# No two of a row say the same, however near they are in meaning.
APART = [
    ["User has 3 cats.", "User has 4 cats.", "User has 34 cats.", "User has a cat.", "User has cats."],
    ["User likes tea", "User does not like tea", "User never likes tea", "User dislikes tea", "User liked tea"],
    ["Moved to Lisbon in March 2023", "Moved to Lisbon in May 2023", "Moved to Lisbon in March 2024"],
    ["Due 2024-03-01", "Due 2024-03-10", "Due 2024-01-03"],
    ["Ann owes Bob 5", "Bob owes Ann 5", "Ann owes Bob 5.5", "Ann owes Bob 55", "Ann owes Bob -5", "Ann owes Bob $5"],
    ["Carl lives in Berlin", "Karl lives in Berlin", "Carla lives in Berlin", "Carl lives in Bern"],
    ["Flight from Rome to Paris", "Flight from Paris to Rome"],
    ["Ann has few friends", "Ann has a few friends"],
    ["Blood type A+", "Blood type A-", "Blood type A"],
    ["Writes C", "Writes C#", "Writes C++"],
    ["Ann likes tea.", "Ann likes tea?"],
    ["I feel :)", "I feel :("],
    ["10² metres", "102 metres"],
    ["A 6' board", 'A 6" board'],
    ["Nobody came", "No one came", "No. 1 came"],
    ["Appointment at 9 am", "Appointment at 9 pm", "Appointment at 9:30 am"],
]  # fmt: skip

NAMES = st.sampled_from(["Ann", "Anna", "Bob", "Rob", "Carl", "Karl", "Jon", "John", "Peter", "Peters", "Mia", "Mya"])
FRAME = "{name} told the user on day {number} of the trip that she {verb} the hotel near {place}."
SAID = st.fixed_dictionaries(
    {
        "name": NAMES,
        "number": st.one_of(st.integers(-(10**6), 10**6), st.decimals(0, 999, places=2), st.dates()).map(str),
        "verb": st.sampled_from(["likes", "liked", "does not like", "doesn't love", "never likes", "dislikes"]),
        "place": NAMES,
    }
)


@pytest.mark.parametrize("texts", ALIKE, ids=lambda texts: texts[0])
def test_what_differs_only_in_writing_is_the_same(texts: list[str]) -> None:
    assert len({gist(text) for text in texts}) == 1


@pytest.mark.parametrize("texts", APART, ids=lambda texts: texts[0])
def test_what_says_something_else_is_not_the_same(texts: list[str]) -> None:
    for one, other in combinations(texts, 2):
        assert gist(one) != gist(other)
        assert sayings(one) != sayings(other)


@given(SAID, SAID)
def test_texts_that_differ_in_a_number_a_date_a_negation_or_a_name_stay_two(
    one: dict[str, str], other: dict[str, str]
) -> None:
    first, second = FRAME.format(**one), FRAME.format(**other)
    assert (gist(first) == gist(second)) == (one == other)
    assert (sayings(first) == sayings(second)) == (one == other)


@given(st.text(min_size=1))
def test_every_text_has_a_gist(text: str) -> None:
    assert gist(text)


def test_signs_alone_are_told_apart_and_say_nothing() -> None:
    assert len({gist(text) for text in ("...", "---", "?", "👍", "👎")}) == 5
    assert sayings("...") == frozenset()


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("You prefer dark mode.", "The user prefers dark mode"),
        ("assistant: You prefer dark mode and use Vim.", "The user prefers dark mode and uses Vim."),
        ("I am a cook", "The user is a cook"),
        ("- Your dog is called Rex.", "User's dog is called Rex"),
    ],
)
def test_a_sentence_about_you_is_that_one_about_the_user(text: str, other: str) -> None:
    assert sayings(text) == sayings(other)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("You like Peters", "The user likes Peter"),
        ("Ann and Peters are here", "Ann and Peter are here"),
        ("Ann likes tea", "The user likes tea"),
        ("He likes tea", "You like tea"),
    ],
)
def test_one_about_somebody_else_is_not(text: str, other: str) -> None:
    assert sayings(text) != sayings(other)


def test_facts_are_the_same_only_with_the_same_names_numbers_and_negations() -> None:
    assert same_facts("Ann lives in Rome since 2020.", "Since 2020 Ann lives in Rome")
    for other in ("Ann lives in Rome since 2021.", "Ann lives in Bern since 2020", "Bob lives in Rome since 2020",
                  "Ann does not live in Rome since 2020"):  # fmt: skip
        assert not same_facts("Ann lives in Rome since 2020.", other)


@pytest.mark.parametrize(
    ("said", "bare"),
    [('"Yes."', "yes"), ("(done);", "done"), ('a 5" pipe', 'a 5" pipe'), ("'5'", "5'"), ('really?"', "really?")],
)
def test_punctuation_around_words_says_nothing(said: str, bare: str) -> None:
    assert gist(said) == bare
