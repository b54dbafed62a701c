"""What kind of text recall is given: whom it asks, what it wants back, and whether it is a question at all."""

import re
import string
from typing import Final

from recollect.language.passages import sentences

_QUESTION_TAIL: Final = 200  # characters: a message asks if it ends with a question, more or less
_QUESTION_MARKS: Final = ("?", "？", "؟")
_AFTER_QUESTION_MARKS: Final = string.whitespace + "!！\"'”’»)"
_STATED_SHARE: Final = 0.4  # of the words of a prompt stand outside its questions

_ASKS_ASSISTANT: Final = re.compile(
    r"\b(?:did|had|have) you (?:\w+ly )?"
    r"(?:recommend|suggest|advise|say|tell|mention|propose|explain|provide|give|list|describe|write|show|share)"
    r"|\byou(?:['’]ve| have| had)? (?:\w+ly )?"
    r"(?:recommended|suggested|advised|said|told|mentioned|proposed|explained|provided|gave|given|"
    r"listed|described|wrote|showed|shared|created|came up with)\b"
    r"|\byour (?:\w+ )?(?:advice|recommendations?|suggestions?|answers?|response|reply|explanation)\b",
    re.I,
)
_ASKS_SUMMARY: Final = re.compile(
    r"\b(?:summar(?:y|ies|ise|ize|ised|ized)|overview|recap|zusammenfass\w{1,9}|überblick|résumé\w{0,2}|resumen|resumir)\b",
    re.I,
)
# "Dr." and "St." end no sentence.
_ABBREVIATED: Final = re.compile(r"(?:^|\s)[A-Z]\w?\w?\.\s*$")


def asks_assistant(question: str) -> bool:
    """Whether the question is about what the assistant itself has said."""
    return _ASKS_ASSISTANT.search(question) is not None


def asks_summary(question: str) -> bool:
    """Whether the question wants the whole of a talk, and so both sides of it."""
    return _ASKS_SUMMARY.search(question) is not None


def asks(text: str) -> bool:
    """Whether a message asks near its end, so that the next one may answer it."""
    tail = text[-_QUESTION_TAIL:]
    return any(mark in tail for mark in _QUESTION_MARKS)


def ends_with_question(text: str) -> bool:
    """Whether the last thing a message says is a question, however loudly."""
    return text.rstrip(_AFTER_QUESTION_MARKS).endswith(_QUESTION_MARKS)


def is_prompt(text: str) -> bool:
    """Whether a text is what a user says in the middle of work: several sentences, and not only questions.

    "Ready to continue the budget. We agreed on three categories. What is next?"
    """
    whole = [""]
    for sentence in sentences(text):
        whole[-1] += sentence
        if not _ABBREVIATED.search(whole[-1][-8:]):
            whole.append("")
    sizes = [len(sentence.split()) for sentence in whole]
    asked = [any(mark in sentence for mark in _QUESTION_MARKS) for sentence in whole]
    stated = sum(size for size, is_question in zip(sizes, asked, strict=True) if not is_question)
    return sum(map(bool, sizes)) > 1 and stated >= _STATED_SHARE * sum(sizes)
