"""How many tokens the local model will see in a text: an estimate without its vocabulary."""

import re
from math import ceil
from typing import Final

from recollect.language.letters import normalized

_LONGEST: Final = 64
_LATIN_WORD: Final = re.compile(rf"[A-Za-z0-9]{{1,{_LONGEST}}}")
_ACCENTS: Final = re.compile("[\u0300-\u036f]+")
MOST_CHARACTERS: Final = 100  # a token has no more, even where most of them are white space
# Of a longer text, samples at even distances stand for all of it: counting words holds the interpreter.
_COUNTED_CHARACTERS: Final = 50_000
_SAMPLE_CHARACTERS: Final = 1_000

# Tokens of a Latin word by its length, measured: most are one, identifiers and encoded data fall to pieces.
_ENGLISH_COSTS: Final = [
    *(3 * [1.0]),
    *(5 * [1.1]),
    *(1.1 + 0.12 * (length - 7) for length in range(8, 14)),
    *(0.27 * length for length in range(14, 32)),
    *(0.55 * length for length in range(32, _LONGEST + 1)),
]
# The same for Latin words of other languages: the vocabulary is English and has only pieces of them.
_FOREIGN_COSTS: Final = [max(1.0, 0.38 * length) for length in range(_LONGEST + 1)]


def estimate_tokens_of_all(beginning: str, total_bytes: int) -> int:
    """The tokens of a text of which the beginning is at hand: the rest is taken to be like it."""
    return ceil(estimate_tokens(beginning) * total_bytes / max(len(beginning.encode()), 1))


def estimate_tokens(text: str, *, english: bool = True) -> int:
    """The number of WordPiece tokens, about; `english` says whether Latin words are likely to be English."""
    if len(text) > _COUNTED_CHARACTERS:
        distance = len(text) * _SAMPLE_CHARACTERS / _COUNTED_CHARACTERS
        starts = (int(number * distance) for number in range(_COUNTED_CHARACTERS // _SAMPLE_CHARACTERS))
        sample = "".join(text[start : start + _SAMPLE_CHARACTERS] for start in starts)
        return ceil(estimate_tokens(sample, english=english) * len(text) / len(sample))
    # The model takes accents off and takes Korean syllables apart; so does this.
    plain = text if text.isascii() else _ACCENTS.sub("", normalized("NFD", text))
    words = list(map(len, _LATIN_WORD.findall(plain)))
    others = sum(map(len, plain.split())) - sum(words)  # punctuation and letters of other scripts: a token each
    costs = _ENGLISH_COSTS if english else _FOREIGN_COSTS
    return max(round(sum(map(costs.__getitem__, words))) + others, ceil(len(text) / MOST_CHARACTERS))
