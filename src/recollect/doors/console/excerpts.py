"""Texts cut so that a page stays small, whatever is stored: what counts is how much of a page a text takes."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from recollect.doors.console.rendering import shortened, stored


class Excerpt(NamedTuple):
    """The beginning of a text as a page shows it, and how many characters of the text that is."""

    shown: Markup
    characters: int


def fitting(text: str, most: int) -> Excerpt:
    """As much of the beginning of a text as takes so many bytes of a page at most."""
    while (size := len((shown := stored(text)).encode())) > most:
        text = text[: min(len(text) * most // size, len(text) - 1)]
    return Excerpt(shown, len(text))


def brief(text: object, most: int = 120) -> Markup:
    """The beginning of a text on one line, which takes no more of a page than plain text of that length may."""
    return fitting(shortened(text, most), 4 * most).shown


def fitted(texts: Sequence[str], budget: int) -> list[Excerpt]:
    """The beginnings of texts that together take so many bytes at most: what short ones leave is for long ones."""
    most = share([len(stored(text).encode()) for text in texts], budget)
    return [fitting(text, most) for text in texts]


def share(sizes: Sequence[int], budget: int) -> int:
    """How large the largest of some may be, so that all fit into a budget."""
    left = budget
    for number, size in enumerate(sorted(sizes)):
        fair = left // (len(sizes) - number)
        if size > fair:
            return fair
        left -= size
    return budget
