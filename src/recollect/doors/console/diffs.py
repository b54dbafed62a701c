"""What changed between two texts, word by word, in bounded time and space."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from operator import eq
from typing import Literal, NamedTuple

from recollect.language.letters import SPACELESS

# Scripts without spaces have a word in each character.
_WORDS = re.compile(rf"[{SPACELESS}]|\s+|(?:(?![{SPACELESS}])\w)+|.", re.S)
_SENTENCES = re.compile(r"[^.!?\n]*[.!?\n]+|[^.!?\n]+")

# Equal pairs that are looked at for one comparison of two texts; with more, nothing is compared.
MAX_PAIRS = 50_000
# Characters that are shown before and behind a change, of a change itself, and how many pieces of all.
CONTEXT = 80
MAX_SHOWN = 600
MAX_PIECES = 60


class Piece(NamedTuple):
    """A part of both texts, of the old one, or of the new one; or how many characters are left out here."""

    what: Literal["same", "old", "new", "left out"]
    text: str


def changes(old: str, new: str) -> list[Piece]:
    """The changes with what stands around them."""
    olds, news = _WORDS.findall(old), _WORDS.findall(new)
    start = alike(olds, news)
    end = min(alike(olds[::-1], news[::-1]), len(olds) - start, len(news) - start)
    olds_end, news_end = len(olds) - end, len(news) - end
    middle = compared("".join(olds[start:olds_end]), "".join(news[start:news_end]))
    pieces = joined([Piece("same", "".join(olds[:start])), *middle, Piece("same", "".join(olds[olds_end:]))])
    last = len(pieces) - 1
    shown = [part for place, piece in enumerate(pieces) for part in cut(piece, place > 0, place < last)]
    behind = sum(len(part.text) for part in shown[MAX_PIECES:])
    return [*shown[:MAX_PIECES], *([Piece("left out", f"{behind:,}")] if behind else [])]


def alike(olds: Sequence[str], news: Sequence[str]) -> int:
    """How many words two texts have in common from the beginning."""
    return sum(takewhile(bool, map(eq, olds, news)))


def compared(
    old: str, new: str, by: Sequence[re.Pattern[str]] = (_WORDS, _SENTENCES), most: int = MAX_PAIRS
) -> Iterator[Piece]:
    """The differences of two texts by the smallest parts that have no more equal pairs."""
    for parts in by:
        olds, news = parts.findall(old), parts.findall(new)
        counted, others = Counter(olds), Counter(news)
        if sum(counted[part] * others[part] for part in counted if not part.isspace()) <= most:
            break
    else:
        yield from (Piece("old", old), Piece("new", new))
        return
    steps = SequenceMatcher(str.isspace, olds, news, autojunk=False).get_opcodes()
    for what, from_old, to_old, from_new, to_new in steps:
        before, after = "".join(olds[from_old:to_old]), "".join(news[from_new:to_new])
        if what == "equal":
            yield Piece("same", before)
        elif what == "replace" and parts is _SENTENCES:
            yield from compared(before, after, (_WORDS,), most // len(steps))
        else:
            yield from (Piece("old", before), Piece("new", after))


def joined(pieces: Sequence[Piece]) -> list[Piece]:
    """The same in fewer pieces: white space between two changes is a part of them, and none is empty."""
    found: list[Piece] = []
    old = new = ""
    for place, (what, text) in enumerate(pieces):
        if what == "same" and not (text.isspace() and (old or new) and place < len(pieces) - 1):
            found += Piece("old", old), Piece("new", new), Piece("same", text)
            old = new = ""
        else:
            old += text if what != "new" else ""
            new += text if what != "old" else ""
    return [piece for piece in [*found, Piece("old", old), Piece("new", new)] if piece.text]


def cut(piece: Piece, is_behind: bool, is_before: bool) -> Iterator[Piece]:
    """The ends of a piece that stand beside a change; of a long change, its beginning."""
    what, text = piece
    first, last = (CONTEXT * is_behind, CONTEXT * is_before) if what == "same" else (MAX_SHOWN, 0)
    left_out = len(text) - first - last
    if left_out <= CONTEXT:
        yield piece
        return
    yield Piece(what, text[:first])
    yield Piece("left out", f"{left_out:,}")
    yield Piece(what, text[len(text) - last :])
