"""Accents and other marks on letters: a megabyte of them on one letter would take minutes to sort."""

import unicodedata
from typing import Literal

# Unicode's own limit for text that programs exchange.
MOST_ON_A_LETTER = 30

# They stand alone until they are normalized, and are marks from then on.
_HALF_WIDTH = "\uff9e\uff9f"


def normalized(form: Literal["NFD", "NFKC"], text: str) -> str:
    """Unicode's normal form, without the marks that are piled up beyond what a letter can have."""
    if text.isascii():
        return text
    kept: list[str] = []
    pile = 0
    for character in text:
        pile = pile + 1 if unicodedata.combining(character) or character in _HALF_WIDTH else 0
        if pile <= MOST_ON_A_LETTER:
            kept.append(character)
    return unicodedata.normalize(form, "".join(kept))
