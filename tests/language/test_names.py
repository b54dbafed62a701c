"""Names: whom a question is about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.language.names import (
    ROLES,
    NamedPeople,
    people_named,
    title_case_candidates,
    without_names,
)
from recollect.language.words import query_terms

SPEAKERS = ["Caroline", "Melanie Smith", "user", "assistant"]


def test_a_speaker_is_named_by_any_word_of_the_name() -> None:
    assert people_named("Where did Smith go?", SPEAKERS) == NamedPeople(frozenset({"Melanie Smith"}), ("Smith",))


def test_the_question_keeps_its_own_words_for_a_name() -> None:
    assert people_named("What is Caroline's dog called?", SPEAKERS).said == ("Caroline's",)
    assert people_named("What is Caroline’s dog called?", SPEAKERS).said == ("Caroline’s",)


def test_the_beginning_of_a_name_is_a_nickname() -> None:
    assert people_named("Did Mel call?", SPEAKERS).speakers == {"Melanie Smith"}
    assert people_named("Did Me call?", SPEAKERS).speakers == frozenset()


def test_a_full_name_goes_before_a_nickname() -> None:
    assert people_named("Did Mel call?", [*SPEAKERS, "Mel"]).speakers == {"Mel"}


def test_a_small_letter_names_no_one() -> None:
    assert people_named("what did mark mark?", ["Mark"]).speakers == frozenset()


@pytest.mark.parametrize("role", sorted(ROLES))
def test_a_role_is_no_name(role: str) -> None:
    assert people_named(f"What did {role.title()} say?", [role, role.title()]).speakers == frozenset()


@pytest.mark.parametrize(
    ("question", "speaker"),
    [
        ("Qu'a dit Émile hier ?", "Émile"),
        ("Что сказал Иван?", "Иван"),
        ("田中さんは何と言いましたか", "田中"),
        ("田中さんは何と言いましたか", "田中太郎"),
        ("민수가 뭐라고 했어요?", "민수"),
        ("ماذا قال أحمد؟", "أحمد"),
    ],
)
def test_names_are_known_in_every_script(question: str, speaker: str) -> None:
    named = people_named(question, [speaker, "Caroline"])
    assert named.speakers == {speaker}
    assert speaker[:2] not in without_names(question, named.said)


def test_candidates_are_the_capitalised_words_without_possessives() -> None:
    assert title_case_candidates("What did Caroline's friend Jo-Ann tell Melanie? Caroline laughed.") == [
        "what",
        "caroline",
        "jo-ann",
        "melanie",
    ]


def test_candidates_hold_every_name_that_could_be_found() -> None:
    assert "田中" in title_case_candidates("田中さんは何と言いましたか")
    assert "أحمد" in title_case_candidates("ماذا قال أحمد؟")


def test_a_very_long_question_has_a_bounded_number_of_candidates() -> None:
    assert len(title_case_candidates("".join(map(chr, range(0x4E00, 0x9FFF))))) <= 500


def test_names_leave_the_question() -> None:
    assert without_names("What does Mel like about Melanie's dog?", ("Mel", "Melanie's")) == "What does like about dog?"


def test_a_question_of_names_alone_stays_whole() -> None:
    assert without_names("Caroline?", ("Caroline",)) == "Caroline?"
    assert without_names("Who is Caroline?", ("Caroline",)) == "Who is Caroline?"


@given(st.text(), st.lists(st.text()))
def test_any_question_and_any_speakers_are_taken(question: str, speakers: list[str]) -> None:
    named = people_named(question, speakers)
    assert named.speakers <= set(speakers)
    assert all(word in question for word in named.said)
    plain = without_names(question, named.said)
    assert plain == question or query_terms(plain, "english")
    assert all(name == name.lower() for name in title_case_candidates(question))
