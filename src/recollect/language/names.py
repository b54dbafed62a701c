"""Whom a question names."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from recollect.language.letters import SPACELESS
from recollect.language.words import document_terms

ROLES: Final = frozenset({"user", "assistant", "system", "tool"})  # speakers that are no one's name

_NICKNAME_LETTERS: Final = 3  # "Mel" names Melanie
_NICKNAME_CHARACTERS: Final = 2  # the same where a character is a syllable: 田中 names 田中太郎
_UNCASED_LETTERS: Final = (2, 3, 4)  # of a name in scripts that run it together with the words around it
_MOST_MENTIONS: Final = 500  # a question that is longer is a document

# A word that begins with a letter other than a small Latin one; whether it is a capital is asked afterwards.
_WORD: Final = re.compile(r"\b(?=[^\W\d_a-z])\w[\w-]*(?:['’]s)?")
_POSSESSIVE: Final = re.compile(r"['’]s$")
_RUN_TOGETHER: Final = re.compile(f"[{SPACELESS}\uac00-\ud7a3]+")  # Korean glues its particles to names


@dataclass(frozen=True, slots=True)
class NamedPeople:
    """The speakers that a question names, and the words it uses for them."""

    speakers: frozenset[str]
    said: tuple[str, ...]


def title_case_candidates(question: str) -> list[str]:
    """The words of a question that may be names, in lower case and without a possessive, each once.

    Scripts without capitals: every word; where words run together, every piece of two to four characters.
    """
    return list(dict.fromkeys(name for _, name in islice(_mentions(question), _MOST_MENTIONS)))


def people_named(question: str, speakers: Iterable[str]) -> NamedPeople:
    """The speakers whose name, or a word of it, stands in the question; else those whose name begins with a word."""
    people = {speaker: speaker.lower().split() for speaker in speakers if speaker.lower() not in ROLES}
    named: set[str] = set()
    said: dict[str, None] = {}
    for mention, name in islice(_mentions(question), _MOST_MENTIONS):
        meant = {speaker for speaker, parts in people.items() if name in parts}
        shortest = _NICKNAME_CHARACTERS if _RUN_TOGETHER.match(name) else _NICKNAME_LETTERS
        if not meant and len(name) >= shortest:  # a nickname
            meant = {speaker for speaker, parts in people.items() if any(part.startswith(name) for part in parts)}
        if meant:
            named |= meant
            said[mention] = None
    return NamedPeople(frozenset(named), tuple(said))


def without_names(question: str, said: Collection[str]) -> str:
    """The question without those words; the whole question if they were all it asked for."""
    plain = question
    for word in sorted(said, key=len, reverse=True):
        bounded = re.escape(word) if _RUN_TOGETHER.match(word) else rf"(?<!\w){re.escape(word)}(?!\w)"
        plain = re.sub(bounded, " ", plain)
    plain = " ".join(plain.split())
    return plain if document_terms(plain) else question


def _mentions(question: str) -> Iterator[tuple[str, str]]:
    """Words that may be names, as written and as compared."""
    for match in _WORD.finditer(question):
        word = match.group()
        if word[0].isupper():
            yield word, _POSSESSIVE.sub("", word).lower()
        elif not word[0].islower():
            runs = _RUN_TOGETHER.findall(word)
            sized = ((run, size) for run in runs for size in _UNCASED_LETTERS)
            pieces = (run[at : at + size] for run, size in sized for at in range(len(run) - size + 1))
            yield from ((piece, piece.lower()) for piece in chain([word], pieces))
