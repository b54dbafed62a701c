"""Content: the information density of a text, and how much of it another text also says."""

import re
from math import sqrt
from typing import Final

from recollect.language.letters import MARKS, SPACELESS
from recollect.language.words import document_terms, query_terms

# Words within which a repetition is one. Every long text comes back to its words, and is not the emptier for it.
_WINDOW: Final = 100

# Where no spaces stand between words each character counts as one, as each begins a pair that is a term.
_WORD: Final = re.compile(rf"[{SPACELESS}]|(?:(?![{SPACELESS}])[\w{MARKS}'’])+")


def density(text: str) -> float:
    """Information density from 0 to 1: the share of words that are neither stop words nor said shortly before."""
    words = list(_WORD.finditer(text))
    if not words:
        return 0.0
    windows = (words[start : start + _WINDOW] for start in range(0, len(words), _WINDOW))
    telling = sum(len(query_terms(text[window[0].start() : window[-1].end()])) for window in windows)
    return min(telling / len(words), 1.0)


def share_said(text: str, others: str) -> float:
    """The share from 0 to 1 of a text's distinct terms that other texts hold in some form."""
    asked = query_terms(text)
    if not asked:
        return 0.0
    held = set(document_terms(others))
    return sum(not held.isdisjoint(term.variants) for term in asked) / len(asked)


def likeness(one: str, other: str) -> float:
    """How much two texts say the same, from 0 to 1: their shared terms in the place of a cosine."""
    return sqrt(share_said(one, other) * share_said(other, one))
