"""Facts: the names, numbers and dates of a text, which a shorter one should keep."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from recollect.language.stop_words import STOP_WORDS

# Numbers and dates that English writes in small letters.
_IN_WORDS: Final = (
    "(?:last|past|next) (?:week(?:end)?|month|year|night|summer|fall|autumn|winter|spring)|yesterday|today|tonight|"
    "tomorrow|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|thousand|"
    "million|dozen|half|twice"
)
# One of them; a number with what is written into it (3.5, 1,000, 10:30, 2024-03-15) or behind a name (A380); or a word
# of any script.
_WORD: Final = re.compile(
    rf"\b(?:{_IN_WORDS})\b|\d+(?:[.,:/-]\d+)*|[a-z]+\d[a-z\d]*|[^\W\d_]+(?:['’-][^\W\d_]+)*", re.I
)
_DIGIT: Final = re.compile(r"\d")
_SPOKEN: Final = re.compile(_IN_WORDS, re.I)
_POSSESSIVE: Final = re.compile(r"['’]s$")
_BETWEEN: Final = re.compile(r"[ ,]{1,2}|-|\.? ")  # what may stand between the words of one name or date
_MARKUP: Final = " \t*_#\"'“”‘’(`[{<>-•"
_SENTENCE_BEGINS_AFTER: Final = ".!?:;|\n…。！？"
_UNIT: Final = re.compile(r"%|[^\W\d_]{1,3}\b| [^\W\d_]{1,12}\b")
_NOUN: Final = re.compile(r"\b([^\W\d_]{2,12}) $")
_NOUN_CHARACTERS: Final = 14
_NO_UNITS: Final = STOP_WORDS["english"]
_NO_NAMES: Final = _NO_UNITS | {"i'm", "i’m", "i'd", "i’d", "i'll", "i’ll", "i've", "i’ve", "ok"}


@dataclass(frozen=True, slots=True)
class Mention:
    """Facts that are written next to each other: a whole name, a date, a number with its unit."""

    text: str
    facts: frozenset[str]

    @classmethod
    def whole(cls, text: str) -> Self:
        """A text that is known to be one mention: whatever has a capital in it is a name."""
        words = _WORD.findall(text)
        names = frozenset(_key(word) for word in words if not word.islower())
        return cls(text, frozenset(_key(word) for word in words if _is_fact(word, names)))


def known_names(texts: Iterable[str]) -> frozenset[str]:
    """Words that have a capital letter where a sentence does not begin: elsewhere, too, they are names."""
    names: set[str] = set()
    for text in texts:
        for match in _WORD.finditer(text):
            word, at = match.group(), match.start()
            if not word[0].isupper() or len(word) == 1 or (key := _key(word)) in _NO_NAMES:
                continue
            while at and text[at - 1] in _MARKUP:
                at -= 1
            if at and text[at - 1] not in _SENTENCE_BEGINS_AFTER:
                names.add(key)
    return frozenset(names)


def mentions(text: str, names: frozenset[str]) -> list[Mention]:
    """Where a text names something, in order."""
    found: list[Mention] = []
    run: list[re.Match[str]] = []
    for match in _WORD.finditer(text):
        if _is_fact(match.group(), names):
            if run and not _BETWEEN.fullmatch(text, run[-1].end(), match.start()):
                found.append(_mention(text, run))
                run = []
            run.append(match)
    if run:
        found.append(_mention(text, run))
    return found


def facts(text: str, names: frozenset[str] | None = None) -> set[str]:
    """What a text names, each in one spelling; without other texts to learn names from, it teaches itself."""
    names = known_names([text]) if names is None else names
    return {_key(word) for word in _WORD.findall(text) if _is_fact(word, names)}


def _is_fact(word: str, names: frozenset[str]) -> bool:
    if _DIGIT.search(word) or _SPOKEN.fullmatch(word):
        return True
    return not word.islower() and _key(word) in names


def _key(word: str) -> str:
    return _POSSESSIVE.sub("", word).casefold()


def _mention(text: str, run: list[re.Match[str]]) -> Mention:
    words = frozenset(_key(match.group()) for match in run)
    start, end = run[0].start(), run[-1].end()
    if start and text[start - 1] in "$€£¥":
        start -= 1
    elif run[-1].group()[0].isdigit() or _SPOKEN.fullmatch(run[-1].group()):
        # A number alone says little: "25 guests", "7pm", "12%", "room 12".
        after = _UNIT.match(text, end)
        if after is not None and after.group().strip().lower() not in _NO_UNITS:
            end = after.end()
        else:
            before = _NOUN.search(text, max(start - _NOUN_CHARACTERS, 0), start)
            if before is not None and before.group(1).lower() not in _NO_UNITS:
                start = before.start(1)
    return Mention(text[start:end], words)
