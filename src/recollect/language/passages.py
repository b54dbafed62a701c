"""Passages: a text cut on sentence bounds into pieces that the local model can read whole."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from recollect.language.detection import detect
from recollect.language.letters import DEFAULT_LANGUAGE, SCRIPT_LANGUAGES
from recollect.language.tokens import estimate_tokens

PASSAGE_TOKENS: Final = 200
OVERLAP_TOKENS: Final = 30  # of whole sentences that the next passage repeats
WHOLE_TOKENS: Final = 250  # a text up to here stays whole; the model reads 256, two of them its own marks

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[\"')\]]*\s+|(?<=[。！？])[\"')\]」』）】”’]*\s*|\n+")
# Of a sentence longer than a passage: whole words, or where nothing says where to cut (Chinese, an encoded file) a run
# of characters. So short that even in Korean, with three tokens to a syllable, it fits into a passage.
_PIECE: Final = re.compile(r".{1,60}(?!\S)|.{1,60}", re.S)
_SHORT_CHARACTERS: Final = 1_000  # a longer text is hardly ever a single passage
_SAMPLE_CHARACTERS: Final = 1_000  # from which the language is recognised
_MEASURED_AS_ENGLISH: Final = SCRIPT_LANGUAGES | {
    DEFAULT_LANGUAGE
}  # beside other scripts, Latin words are mostly English


class _Unit(NamedTuple):
    """What is never cut: a sentence, or a piece of one too long for a passage."""

    text: str
    tokens: int


def cut(text: str) -> list[str]:
    """The passages of a text in order; together they hold everything but white space."""
    if not text or text.isspace():
        return []
    if _surely_whole(text):
        return [text]
    english = detect(text[:_SAMPLE_CHARACTERS]) in _MEASURED_AS_ENGLISH
    units = [unit for sentence in sentences(text) for unit in _units(sentence, english)]
    if sum(unit.tokens for unit in units) <= WHOLE_TOKENS:
        return [text]
    passages = ("".join(unit.text for unit in group).strip() for group in _grouped(units))
    return [passage for passage in passages if passage]


def _surely_whole(text: str) -> bool:
    """The cheap answer for most messages, without a look at language or sentences."""
    if len(text) < PASSAGE_TOKENS and text.isascii():  # a token has at least one character
        return True
    return len(text) <= _SHORT_CHARACTERS and estimate_tokens(text, english=False) <= WHOLE_TOKENS


def sentences(text: str) -> Iterator[str]:
    """A text cut after each sentence and each line; together they are the text."""
    start = 0
    for end in _SENTENCE_END.finditer(text):
        yield text[start : end.end()]
        start = end.end()
    yield text[start:]


def _units(sentence: str, english: bool) -> Iterator[_Unit]:
    tokens = estimate_tokens(sentence, english=english)
    if tokens <= PASSAGE_TOKENS:
        yield _Unit(sentence, tokens)
        return
    pieces = (_Unit(piece, estimate_tokens(piece, english=english)) for piece in _PIECE.findall(sentence))
    for group in _grouped(pieces, overlap=0):
        yield _Unit("".join(unit.text for unit in group), sum(unit.tokens for unit in group))


def _grouped(units: Iterable[_Unit], overlap: int = OVERLAP_TOKENS) -> Iterator[list[_Unit]]:
    """Neighbours in groups as large as a passage, each beginning with the end of the one before."""
    group: list[_Unit] = []
    tokens = 0
    for unit in units:
        if group and tokens + unit.tokens > PASSAGE_TOKENS:
            yield group
            group = _tail(group, overlap)
            tokens = sum(kept.tokens for kept in group)
        group.append(unit)
        tokens += unit.tokens
    if group:
        yield group


def _tail(group: list[_Unit], overlap: int) -> list[_Unit]:
    first, tokens = len(group), 0
    while first and tokens + group[first - 1].tokens <= overlap:
        first -= 1
        tokens += group[first].tokens
    return group[first:]
