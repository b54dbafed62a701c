"""How many tokens the local model will see in a text: an estimate without its vocabulary."""

import re
from math import ceil
from typing import Final

from recollect.language.letters import normalized

_LONGEST: Final = 64
_LATIN_WORD: Final = re.compile(rf"[A-Za-z0-9]{{1,{_LONGEST}}}")
_ACCENTS: Final = re.compile("[\u0300-\u036f]+")
_CHARACTERS: Final = 100  # a token has no more, even where most of them are white space


def _english_cost(length: int) -> float:
    """Tokens of a Latin word by its length, measured: most are one, identifiers and encoded data fall to pieces."""
    if length <= 2:
        return 1.0
    if length <= 7:
        return 1.1
    if length <= 13:
        return 1.1 + 0.12 * (length - 7)
    return length * (0.27 if length < 32 else 0.55)


def _foreign_cost(length: int) -> float:
    """The same for Latin words of other languages: the vocabulary is English and has only pieces of them."""
    return max(1.0, 0.38 * length)


_ENGLISH_COSTS: Final = [_english_cost(length) for length in range(_LONGEST + 1)]
_FOREIGN_COSTS: Final = [_foreign_cost(length) for length in range(_LONGEST + 1)]


def estimate_tokens(text: str, *, english: bool = True) -> int:
    """The number of WordPiece tokens, about; `english` says whether Latin words are likely to be English."""
    # The model takes accents off and takes Korean syllables apart; so does this.
    plain = text if text.isascii() else _ACCENTS.sub("", normalized("NFD", text))
    words = list(map(len, _LATIN_WORD.findall(plain)))
    others = sum(map(len, plain.split())) - sum(words)  # punctuation and letters of other scripts: a token each
    costs = _ENGLISH_COSTS if english else _FOREIGN_COSTS
    return max(round(sum(map(costs.__getitem__, words))) + others, ceil(len(text) / _CHARACTERS))
