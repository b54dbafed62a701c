"""Reads a large JSON body in short steps, and refuses one of so many values that it would fill the memory.

The standard decoder holds the interpreter until it has read everything: a quarter of a second for two million numbers,
seconds for five million empty lists, during which a server answers no one.
"""

import json
import re
from collections.abc import Generator
from enum import Enum
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from recollect.errors import Invalid
from recollect.steps import in_steps

# Up to here the standard decoder takes a few milliseconds, whatever the body holds.
SMALL_BYTES = 128 * 1024

# Each is an object for the garbage collector: with half a million of them one collection stops the loop for 0.15 s.
MAX_VALUES = 200_000
MAX_DEPTH = 900  # about where the standard decoder stops, too

# Characters of a text that are decoded at once, and tokens that are read between two looks at the clock.
_PIECE = 256 * 1024
_TOKENS = 500
_ESCAPE = 6

_TOKEN = re.compile(
    r"[ \t\n\r]*+(?:(?P<sign>[\[\]{},:])"
    r'|"(?P<text>[^"\\\x00-\x1f]{0,1000}+)"'
    r"|(?P<number>-?(?:0|[1-9][0-9]*+)(?P<float>(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+))"
    r"|(?P<word>true|false|null|NaN|-?Infinity)"
    r'|(?P<quote>")|)'
)
_WORDS = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
_INSIDE_TEXT = re.compile(r'(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+')


class _Next(Enum):
    """What may come next."""

    VALUE = "Expecting value"
    FIRST_VALUE = "Expecting value "
    KEY = "Expecting property name enclosed in double quotes"
    FIRST_KEY = "Expecting property name enclosed in double quotes "
    COLON = "Expecting ':' delimiter"
    COMMA = "Expecting ',' delimiter"
    END = "Extra data"


async def read(body: bytes, max_values: int = MAX_VALUES) -> Any:
    """The value that a body holds; ValueError and RecursionError as the standard decoder has them."""
    if len(body) <= SMALL_BYTES:
        return json.loads(body)
    reader = _Reader(body.decode(json.detect_encoding(body), "surrogatepass"), max_values)
    await in_steps(reader.steps())
    return reader.value


class _Reader:
    """Goes through a text from its start to its end, with the containers that are open on a stack."""

    def __init__(self, text: str, max_values: int) -> None:
        self._text = text.removeprefix("\ufeff")
        self._left = max_values
        self._max_values = max_values
        self._open: list[list[Any] | dict[str, Any]] = []
        self._keys: list[str] = []
        self._next = _Next.VALUE
        self.value: Any = None

    def steps(self) -> Generator[None]:
        """Each item is a few hundred tokens, or a piece of a long text."""
        at, tokens, end = 0, 0, len(self._text)
        while True:
            tokens += 1
            if tokens % _TOKENS == 0:
                yield
            token = _TOKEN.match(self._text, at)
            assert token is not None  # it matches nothing at all, too
            kind = token.lastgroup
            if kind is None:
                if self._next is _Next.END and token.end() == end:
                    return
                raise self._fault(token.end())
            at = token.end()
            if kind == "sign":
                self._read_sign(token["sign"], at - 1)
            elif kind == "text":
                self._put(token["text"], at - len(token["text"]) - 2)
            elif kind == "quote":
                text, end_of_text = yield from self._long_text(at)
                self._put(text, at - 1)
                at = end_of_text
            elif kind == "word":
                self._put(_WORDS[token["word"]], token.start(kind))
            else:
                number = float(token["number"]) if token["float"] else int(token["number"])
                self._put(number, token.start(kind))

    def _read_sign(self, sign: str, at: int) -> None:
        if sign in "[{":
            container: list[Any] | dict[str, Any] = [] if sign == "[" else {}
            self._put(container, at, is_text=False)
            self._open.append(container)
            self._next = _Next.FIRST_VALUE if sign == "[" else _Next.FIRST_KEY
            if len(self._open) > MAX_DEPTH:
                raise RecursionError("The JSON is nested too deeply")
        elif sign == ":" and self._next is _Next.COLON:
            self._next = _Next.VALUE
        elif sign == "," and self._next is _Next.COMMA:
            self._next = _Next.VALUE if isinstance(self._open[-1], list) else _Next.KEY
        elif (
            self._open
            and sign == ("]" if isinstance(self._open[-1], list) else "}")
            and self._next in (_Next.COMMA, _Next.FIRST_VALUE, _Next.FIRST_KEY)
        ):
            self._open.pop()
            self._next = _Next.COMMA if self._open else _Next.END
        else:
            raise self._fault(at)

    def _put(self, value: Any, at: int, *, is_text: bool = True) -> None:
        """Into the container that is open last, or as its next key."""
        if self._next in (_Next.KEY, _Next.FIRST_KEY) and is_text and isinstance(value, str):
            self._keys.append(value)
            self._next = _Next.COLON
            return
        if self._next not in (_Next.VALUE, _Next.FIRST_VALUE):
            raise self._fault(at)
        self._left -= 1
        if self._left < 0:
            raise Invalid(f"The body has more than {self._max_values:,} values: send it in several requests")
        if not self._open:
            self.value = value
        elif isinstance(container := self._open[-1], list):
            container.append(value)
        else:
            container[self._keys.pop()] = value
        self._next = _Next.COMMA if self._open else _Next.END

    def _long_text(self, at: int) -> Generator[None, None, tuple[str, int]]:
        """A text that is long, or has escapes in it, from behind its quotation mark; and where it ends."""
        pieces: list[str] = []
        while True:
            end = _INSIDE_TEXT.match(self._text, at, at + _PIECE).end()  # type: ignore[union-attr]
            closes = self._text.startswith('"', end)
            if not closes and (end == at or end == len(self._text)):
                self._decoded(at, end + _ESCAPE)  # which fails if an escape is wrong
                raise json.JSONDecodeError("Unterminated string starting at", self._text, at)
            pieces.append(self._decoded(at, end))
            if closes:
                break
            at = end
            yield
        text = "".join(pieces)
        if any("\ud800" <= piece[-1:] <= "\udbff" for piece in pieces[:-1]):
            # The two halves of a character that were escaped one by one become one again.
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        return text, end + 1

    def _decoded(self, start: int, end: int) -> str:
        try:
            return str(scanstring(self._text[start:end] + '"', 0, True)[0])
        except json.JSONDecodeError as problem:
            raise json.JSONDecodeError(problem.msg, self._text, start + problem.pos) from None

    def _fault(self, at: int) -> json.JSONDecodeError:
        return json.JSONDecodeError(self._next.value.strip(), self._text, at)
