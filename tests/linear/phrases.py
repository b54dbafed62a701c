"""Texts of the words that the rules of screening look for: the beginning of each rule, again and again."""

import re
from collections.abc import Iterable, Iterator
from itertools import product
from re import _constants, _parser
from typing import Any

from recollect.language.defence import orders

MAX_GROUPS = 4
MAX_WORDS = 200

ORDINARY = (
    "Yesterday we walked along the river with Anna and her dog, and the ferry was late again. She wants to send all of "
    "the photos to her brother, who never answers; I must remember to call him before the weekend.\n"
)


def ordinary(length: int) -> str:
    """What people say."""
    return (ORDINARY * (length // len(ORDINARY) + 1))[:length]


def texts(length: int) -> Iterator[str]:
    """Each about so long: of every rule the shortest words, and words that several of its groups take."""
    for groups in _rules():
        chosen = [
            sorted({min(group, key=len), *(word for word in group if sum(word in each for each in groups) > 1)})[:3]
            for group in groups
        ]
        for size in range(1, len(chosen) + 1):
            for words in product(*chosen[:size]):
                phrase = " ".join(words) + " "
                yield phrase * (length // len(phrase))


def _rules() -> Iterator[list[list[str]]]:
    for sign, _ in (*orders.FORGED, *orders.FOREIGN):
        forms = [sign] if isinstance(sign, re.Pattern) else [sign.first, *(form for _, form in sign.others)]
        yield [group for form in forms for group in _groups(form)][:MAX_GROUPS]


def _groups(form: re.Pattern[str]) -> list[list[str]]:
    """What each group of a form, or letters between groups, may be."""
    letters: list[Any] = []
    items: list[list[Any]] = []
    for operation, argument in _parser.parse(form.pattern, form.flags):
        if operation is _constants.LITERAL:
            letters.append((operation, argument))
            continue
        items += [letters] * bool(letters)
        letters = []
        if operation in (_constants.SUBPATTERN, _constants.BRANCH):
            items.append([(operation, argument)])
    items += [letters] * bool(letters)
    found = ([word.strip() for word in _words(each) if word.strip()] for each in items)
    return [words for words in found if words]


def _words(items: Iterable[Any]) -> list[str]:
    """The words that a part of a form takes, with nothing where it may take nothing."""
    words = [""]
    for operation, argument in items:
        more = [""]
        if operation is _constants.LITERAL:
            more = [chr(argument)]
        elif operation is _constants.IN:
            more = [_first(argument[0])]
        elif operation in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            more = [word * argument[0] for word in _words(argument[2])]
        elif operation is _constants.SUBPATTERN:
            more = _words(argument[3])
        elif operation is _constants.BRANCH:
            more = [word for branch in argument[1] for word in _words(branch)]
        words = [word + end for word in words for end in more][:MAX_WORDS]
    return words


def _first(member: Any) -> str:
    kind, value = member
    if kind is _constants.LITERAL:
        return chr(value)
    return chr(value[0]) if kind is _constants.RANGE else "a"
