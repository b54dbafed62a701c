"""Masking: a text without its secrets, and how many of each kind there were."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from recollect.language.masking.kinds import FORMS, KINDS, MAX_CHARACTERS, Kind

# A long text is searched a part at a time, between which others may run.
PART_CHARACTERS = 20_000

# Of the digits of other scripts: Arabic, Persian, Devanagari, Bengali and Thai.
_ZEROS = (0x660, 0x6F0, 0x966, 0x9E6, 0xE50)

# Signs that readers take for others, each for one, so that what is found in the copy is found in the text.
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d", "-"),
        **dict.fromkeys(
            "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "
        ),
        **{chr(sign + 0xFEE0): chr(sign) for sign in range(ord("!"), ord("~") + 1)},
        **{chr(zero + digit): str(digit) for zero in _ZEROS for digit in range(10)},
    }
)

# Every number that is looked for has two digits in a row.
_NUMBER = re.compile(r"[0-9]{2}")


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A text that may be stored, and how many secrets of each kind it had."""

    text: str
    found: Counter[str]


def masked(text: str) -> MaskedText:
    """The text with the name of its kind in the place of every secret, as in [masked: card number]."""
    *_, done = masking(text)
    assert done is not None
    return done


def masking(text: str) -> Iterator[MaskedText | None]:
    """The same in short steps, of which the last one yields it."""
    found: Counter[str] = Counter()
    plain = _plain(text)
    has_number = _NUMBER.search(plain) is not None
    for kind in KINDS:
        if not (any(sign in plain for sign in kind.signs) if kind.signs else has_number):
            continue
        pieces: list[str] = []
        end = 0
        for place in _places(kind, plain):
            if place is not None:
                start, behind = place
                pieces += text[end:start], f"[masked: {kind.name}]"
                end = behind
                found[kind.name] += 1
            yield None
        if pieces:
            text = "".join([*pieces, text[end:]])
            plain = _plain(text)
    yield MaskedText(text, found)


def _plain(text: str) -> str:
    return text if text.isascii() else text.translate(_PLAIN)


def _places(kind: Kind, text: str) -> Iterator[tuple[int, int] | None]:
    """Where a text has secrets of a kind; None after each look-alike and each part of the text."""
    form = FORMS[kind]
    group = "secret" if "secret" in form.groupindex else 0
    at = 0
    for end in range(PART_CHARACTERS, len(text) + PART_CHARACTERS, PART_CHARACTERS):
        while (match := form.search(text, at, end + MAX_CHARACTERS)) is not None and match.start() < end:
            if kind.proof is None or kind.proof(match[group]):
                yield match.span(group)
                at = match.end()
            else:
                # A real one may begin within the look-alike.
                at = match.start() + 1
                yield None
        at = max(at, end)
        yield None
