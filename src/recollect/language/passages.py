"""Passages: a text cut on sentence bounds into pieces that the local model can read whole."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from recollect.language.detection import detect
from recollect.language.letters import DEFAULT_LANGUAGE, SCRIPT_LANGUAGES
from recollect.language.tokens import MOST_CHARACTERS, estimate_tokens

PASSAGE_TOKENS: Final = 200
OVERLAP_TOKENS: Final = 30  # of whole sentences that the next passage repeats
WHOLE_TOKENS: Final = 250  # a text up to here stays whole; the model reads 256, two of them its own marks

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[\"')\]]*\s+|(?<=[。！？])[\"')\]」』）】”’]*\s*|\n+")
# Of a sentence longer than a passage: whole words, or where nothing says where to cut (Chinese, an encoded file) a run
# of characters. So short that even in Korean, with three tokens to a syllable, it fits into a passage.
_PIECE: Final = re.compile(r".{1,60}(?!\S)|.{1,60}", re.S)
# In which an end of a sentence is looked for at once: the search holds the interpreter. None within: it is cut there.
_LOOK_CHARACTERS: Final = 20_000
_SHORT_CHARACTERS: Final = 1_000  # a longer text is hardly ever a single passage
_SAMPLE_CHARACTERS: Final = 1_000  # from which the language is recognised
_MEASURED_AS_ENGLISH: Final = SCRIPT_LANGUAGES | {
    DEFAULT_LANGUAGE
}  # beside other scripts, Latin words are mostly English


class _Unit(NamedTuple):
    """What is never cut: a sentence, or a piece of one too long for a passage."""

    text: str
    tokens: int
    start: int
    end: int
    """Where it lies in the whole text, of which it may leave out white space."""


class _Placed(NamedTuple):
    """A passage, and where it lies in the whole text, with white space around it."""

    passage: str
    start: int
    end: int


def cut(text: str) -> list[str]:
    """The passages of a text in order; together they hold everything but white space."""
    return [passage for passage in cutting(text) if passage is not None]


def cutting(text: str) -> Iterator[str | None]:
    """The same one after another, with None where a stretch of text was gone through without a passage.

    So however long the text and whatever it is made of, no one waits long for the next one.
    """
    return (None if placed is None else placed.passage for placed in _placed(text))


def bounds(text: str, number: int) -> tuple[int, int] | None:
    """Where a passage of a text lies in it, by its number from 0, with white space around it; None if it has fewer."""
    passages = (placed for placed in _placed(text) if placed is not None)
    placed = next(islice(passages, number, None), None)
    return None if placed is None else (placed.start, placed.end)


def _placed(text: str) -> Iterator[_Placed | None]:
    if not text or text.isspace():
        return
    # The cheap answer for most messages, without a look at language or sentences: a token has at least one character.
    is_tiny = len(text) < PASSAGE_TOKENS and text.isascii()
    if is_tiny or (len(text) <= _SHORT_CHARACTERS and estimate_tokens(text, english=False) <= WHOLE_TOKENS):
        yield _Placed(text, 0, len(text))
        return
    english = detect(text[:_SAMPLE_CHARACTERS]) in _MEASURED_AS_ENGLISH
    units: Iterable[_Unit | None] = _units(text, english)
    if len(text) <= WHOLE_TOKENS * MOST_CHARACTERS:
        units = list(units)
        if sum(unit.tokens for unit in units if unit) <= WHOLE_TOKENS:
            yield _Placed(text, 0, len(text))
            return
    for group in _grouped(units):
        passage = "" if group is None else "".join(unit.text for unit in group).strip()
        yield _Placed(passage, group[0].start, group[-1].end) if group and passage else None


def sentences(text: str) -> Iterator[str]:
    """A text cut after each sentence and each line; together they are the text. What seems endless is cut, too."""
    return (sentence for sentence in _stretches(text) if sentence is not None)


def _stretches(text: str) -> Iterator[str | None]:
    """Its sentences, with None each time that so much of the text was gone through."""
    start = 0
    for look in range(0, len(text), _LOOK_CHARACTERS):
        stop = look + _LOOK_CHARACTERS
        for end in _SENTENCE_END.finditer(text, look, stop):
            if end.end() > start:
                yield text[start : end.end()]
                start = end.end()
        if start <= look and stop < len(text):
            stop = text.rfind(" ", start, stop) + 1 or stop
            yield text[start:stop]
            start = stop
        yield None
    yield text[start:]


def _units(text: str, english: bool) -> Iterator[_Unit | None]:
    start = end = 0
    for sentence in _stretches(text):
        if sentence is None:
            yield None
            continue
        start, end = end, end + len(sentence)
        if sentence.isspace():
            yield _Unit(sentence[:MOST_CHARACTERS], 1, start, end)
            continue
        if len(sentence) <= PASSAGE_TOKENS * MOST_CHARACTERS:
            tokens = estimate_tokens(sentence, english=english)
            if tokens <= PASSAGE_TOKENS:
                yield _Unit(sentence, tokens, start, end)
                continue
        found = ((match.group(), *match.span()) for match in _PIECE.finditer(sentence))
        pieces = (_Unit(piece, estimate_tokens(piece, english=english), *span) for piece, *span in found)
        for group in _grouped(pieces, overlap=0):
            if group:
                joined, tokens = "".join(unit.text for unit in group), sum(unit.tokens for unit in group)
                yield _Unit(joined, tokens, start + group[0].start, start + group[-1].end)


def _grouped(units: Iterable[_Unit | None], overlap: int = OVERLAP_TOKENS) -> Iterator[list[_Unit] | None]:
    """Neighbours in groups as large as a passage, each beginning with the end of the one before; None stays None."""
    group: list[_Unit] = []
    tokens = 0
    for unit in units:
        if unit is None:
            yield None
            continue
        if group and tokens + unit.tokens > PASSAGE_TOKENS:
            yield group
            first, tokens = len(group), 0
            while first and tokens + group[first - 1].tokens <= overlap:
                first -= 1
                tokens += group[first].tokens
            group = group[first:]
        group.append(unit)
        tokens += unit.tokens
    if group:
        yield group
