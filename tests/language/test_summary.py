"""Extractive summaries: within their budget, in order, with the names, numbers and dates of what they stand for."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.language.facts import facts, known_names, mentions
from recollect.language.summary import ALSO, Said, said_in, summarise
from recollect.language.tokens import estimate_tokens

TALK = [
    Said("user", "Hi there! I am planning the party of my sister Anna for 14 March 2025. It should be a nice evening."),
    Said("assistant", "That sounds lovely. How many people do you expect, and is there a place that you like best?"),
    Said("user", "About 25 guests, well, maybe some more. We looked at the Blue Lantern in Leipzig and liked it."),
    Said("assistant", "Then let us see. The room there takes 40 people, and it costs $1,200 for an evening like that."),
    Said("user", "Good, good. That is fine with us, really fine, more than fine. My brother Tom will pay for it."),
    Said(
        "assistant", "Wonderful! Shall I write to them, and ask whether they still have the room for you that evening?"
    ),
]
IN_TALK = {"anna", "14", "march", "2025", "25", "blue", "lantern", "leipzig", "40", "1,200", "tom"}


def facts_of(said: list[Said]) -> set[str]:
    names = known_names(line.text for line in said)
    return set().union(*(facts(line.text, names) for line in said))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("We met Anna Müller in São Paulo.", {"anna", "müller", "são", "paulo"}),
        ("Wow, that is great. Thanks!", set()),
        ("I think I'm late, and I'd say so.", set()),
        ("It was Anna's. Anna left.", {"anna"}),
        ("At 10:30 on 2024-03-15 it cost 3.5 or 1,000.", {"10:30", "2024-03-15", "3.5", "1,000"}),
        ("We saw two of them last week.", {"two", "last week"}),
        ("They fly an A380 as ba117.", {"a380", "ba117"}),
        ("- **Task 1:** Implement login", {"1"}),
        ("我们在2024年见面", {"2024"}),
        ("", set()),
    ],
)
def test_names_numbers_and_dates_are_facts(text: str, found: set[str]) -> None:
    assert facts(text) == found


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        ("We go on 14 March 2025.", ["14 March 2025"]),
        ("Some 25 guests at 7pm, in room 12 of it.", ["25 guests", "7pm", "room 12"]),
        ("It costs $1,200 or 12% more.", ["$1,200", "12%"]),
        ("We like the Blue Lantern and Leipzig.", ["Blue Lantern", "Leipzig"]),
    ],
)
def test_a_mention_is_a_whole_name_or_a_number_with_what_it_counts(text: str, mentioned: list[str]) -> None:
    assert [mention.text for mention in mentions(text, known_names([text]))] == mentioned


def test_every_fact_is_kept_in_less_than_half_of_the_words() -> None:
    budget = sum(estimate_tokens(line.text) for line in TALK) // 2
    summary = summarise(TALK, budget)
    assert facts_of(TALK) == IN_TALK
    assert facts(summary, frozenset(IN_TALK)) >= IN_TALK
    assert estimate_tokens(summary) <= budget


def test_sentences_keep_their_order_and_their_speakers() -> None:
    lines = summarise(TALK, 60).splitlines()
    positions = []
    for line in lines:
        speaker, _, text = line.partition(": ")
        if speaker != ALSO:
            first = text.split(". ")[0].rstrip(".")
            (position,) = [n for n, said in enumerate(TALK) if said.speaker == speaker and first in said.text]
            positions.append(position)
    assert positions == sorted(positions)
    assert len(positions) >= 2


def test_facts_without_room_for_their_sentence_are_listed_last() -> None:
    said = [
        Said("user", f"It is a long and winding road that leads from here to there, past City{n}.") for n in range(9)
    ]
    summary = summarise(said, 70)
    assert summary.splitlines()[-1].startswith(f"{ALSO}: ")
    assert facts_of(said) == {f"city{n}" for n in range(9)} <= facts(summary)


def test_a_summary_of_a_summary_keeps_what_was_only_listed() -> None:
    said = [
        Said("user", f"It is a long and winding road that leads from here to there, past City{n}.") for n in range(9)
    ]
    again = [*said_in(summarise(said, 70)), Said("assistant", "Then we should begin with Berlin, I would say.")]
    summary = summarise(again, 80)
    assert {*(f"city{n}" for n in range(9)), "berlin"} <= {word.strip(".;,").lower() for word in summary.split()}


def test_a_sentence_longer_than_the_budget_is_taken_in_part() -> None:
    clauses = ", ".join(f"then came the guest with the name Guest{n}" for n in range(60))
    summary = summarise([Said("user", clauses)], 60)
    assert summary.startswith("user: then came the guest")
    assert estimate_tokens(summary) <= 60


def test_with_room_for_no_sentence_the_first_words_are_left() -> None:
    assert summarise([Said("user", "whatever it may be that we said to each other there")], 4) == "whatever it may be"


TEXTS = st.text(min_size=1, max_size=300).filter(str.strip)


SPOKEN = st.builds(Said, st.sampled_from(["user", "assistant", None]), TEXTS)


@given(st.lists(SPOKEN, min_size=1, max_size=10), st.integers(1, 200))
@example(
    [Said("user", text) for text in ("0", "1:\x1b", "0/1:::{", "0/0\x1b0::{0{0", "0:\x1b0\x08{0:0:{0\x1b0{{0")], 49
)
def test_any_talk_has_a_summary_within_its_budget(said: list[Said], budget: int) -> None:
    summary = summarise(said, budget)
    assert summary.strip()
    assert estimate_tokens(summary) <= budget or len(summary.split()) == 1
    assert [line for line in said_in(summary) if line.text.strip()]


def test_samples_of_a_very_long_text_stand_for_all_of_it() -> None:
    text = "Anna went to Lisbon with 25 chairs. " * 30_000
    whole = summarise([Said("user", text)], 50)
    assert "Lisbon" in whole
    assert estimate_tokens(whole) <= 50
    short = text[:40_000]
    assert estimate_tokens(text) == pytest.approx(estimate_tokens(short) * len(text) / len(short), rel=0.02)
