"""Masking: a text without its secrets, and how many of each kind there were."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import partial

from recollect.language.masking.kinds import FORMS, KINDS, Kind

# Every number that is looked for has two digits in a row.
_NUMBER = re.compile(r"[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Masked:
    """A text that may be stored, and how many secrets of each kind it had."""

    text: str
    found: Counter[str]


def masked(text: str) -> Masked:
    """The text with the name of its kind in the place of every secret, as in [masked: card number]."""
    found: Counter[str] = Counter()
    has_number = _NUMBER.search(text) is not None
    for kind in KINDS:
        if not (any(sign in text for sign in kind.signs) if kind.signs else has_number):
            continue
        text = FORMS[kind.name].sub(partial(_written_over, kind, found), text)
    return Masked(text, found)


def _written_over(kind: Kind, found: Counter[str], match: re.Match[str]) -> str:
    group = "secret" if "secret" in match.re.groupindex else 0
    if kind.proof is not None and not kind.proof(match[group]):
        return match[0]
    found[kind.name] += 1
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    return f"{match[0][:start]}[masked: {kind.name}]{match[0][end:]}"
