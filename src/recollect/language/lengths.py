"""How long a question is: short, medium or long, by its words."""

import re
from typing import Final, Literal

from recollect.language.letters import SPACELESS

Length = Literal["short", "medium", "long"]
LENGTHS: Final[tuple[Length, ...]] = ("short", "medium", "long")

SHORT_WORDS: Final = 5
MEDIUM_WORDS: Final = 15

# Where no spaces stand between words, two characters are taken for one, as in the index.
_WORD: Final = re.compile(rf"[{SPACELESS}]{{1,2}}|[^\s{SPACELESS}]+")


def word_count(text: str) -> int:
    """Words as a reader counts them: a dash alone is none."""
    return sum(any(map(str.isalnum, word)) for word in _WORD.findall(text))


def length_of(question: str) -> Length:
    """Which of the three lengths a question has."""
    words = word_count(question)
    if words <= SHORT_WORDS:
        return "short"
    return "medium" if words <= MEDIUM_WORDS else "long"
