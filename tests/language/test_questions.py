"""Questions: whom they ask, what they want back, and what is no question but a prompt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.language.questions import asks, asks_assistant, asks_summary, ends_with_question, is_prompt


@pytest.mark.parametrize(
    "question",
    [
        "Which book did you recommend?",
        "What have you actually suggested for dinner?",
        "You told me a recipe once",
        "You’ve mentioned a café",
        "What was your first advice?",
    ],
)
def test_a_question_about_the_assistants_words_is_one(question: str) -> None:
    assert asks_assistant(question)


@pytest.mark.parametrize(
    "question", ["Which book would you suggest?", "Can you list my books?", "What did Mel recommend?"]
)
def test_a_request_is_not_a_question_about_the_assistants_words(question: str) -> None:
    assert not asks_assistant(question)


@pytest.mark.parametrize("text", ["Really?", "本当？", "حقا؟", "Would you come? " + "I would be so glad. " * 5])
def test_a_message_that_ends_with_a_question_asks(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize("text", ["Where is it?", "WHERE IS IT?!!", "Where is it ？！\n", "(Where is it?)", "“Where?”"])
def test_a_question_is_one_however_loudly_it_ends(text: str) -> None:
    assert ends_with_question(text)


@pytest.mark.parametrize("text", ["", "Yes.", "Why? " + "Because. " * 50])
def test_other_messages_do_not_ask(text: str) -> None:
    assert not asks(text)


@pytest.mark.parametrize(
    "question",
    ["Can you summarize my week?", "Give me an overview of the project", "Bitte eine Zusammenfassung", "Un résumé ?"],
)
def test_a_wish_for_the_whole_is_one_for_a_summary(question: str) -> None:
    assert asks_summary(question)


@pytest.mark.parametrize("question", ["What did I order last summer?", "Who resumed the talks in Rome?"])
def test_words_that_look_like_it_are_no_wish_for_a_summary(question: str) -> None:
    assert not asks_summary(question)


@pytest.mark.parametrize(
    "text",
    [
        "I am back. Ready to continue the budget. What is next?",
        "Hello. I booked the flight, so the hotel can wait.",
        "Good plan.\nLet us start with the garden.",
        "We agreed on the design. Now build the API.",
    ],
)
def test_what_a_user_says_in_the_middle_of_work_is_a_prompt(text: str) -> None:
    assert is_prompt(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "spare key blue flowerpot",
        "Where is the spare key?",
        "I moved the spare key.",
        "Would Anna like books by Dr. Seuss or by Mr. Milne?",
        "In what order did I plan the trip? Name only three steps.",
        "How many cards are in the gallery of version 5.3.0?",
    ],
)
def test_a_question_or_a_single_sentence_is_no_prompt(text: str) -> None:
    assert not is_prompt(text)


def test_a_message_ends_with_a_question_if_nothing_follows_it() -> None:
    assert ends_with_question("I am home. And you? ")
    assert not ends_with_question("And you? I am home.")


@given(st.text())
def test_any_text_is_one_or_the_other(text: str) -> None:
    assert is_prompt(text) in (True, False)
    assert not ends_with_question(text) or asks(text)
