"""JSON of any length, read a value at a time: memory is that of the largest value, time is linear."""

import codecs
import json
from collections.abc import Collection, Generator, Iterator
from json.decoder import WHITESPACE  # type: ignore[attr-defined]  # what the decoder itself skips
from typing import Any, Protocol

from recollect import checks
from recollect.flows.transfer.foreign.sources import Broken

CHUNK_BYTES = 64 * 1024

# Of one value: a conversation with all its messages is one.
MAX_VALUE_CHARACTERS = 64 * 1024 * 1024

# The longest that a word or an escape of JSON can be: an error nearer to the end may be due to what is yet to come.
_LONGEST_TOKEN = 16

Path = tuple[str | int, ...]


class Readable(Protocol):
    """A file, as far as it is needed here."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, so many at most."""


def values(
    file: Readable, inside: Collection[tuple[str, ...]], max_characters: int = MAX_VALUE_CHARACTERS
) -> Generator[tuple[Path, Any], None, None]:
    """Every value of a document with the path to it; raises Broken where the document stops being JSON.

    The arrays and objects at the paths in `inside` are opened, so that what they hold comes a value at a time; in such
    a path "*" stands for the items of an array. All others come whole.
    """
    text = _Text(file, max_characters)
    yield from _walk(text, frozenset(inside), ())
    if text.peek():
        raise text.broken("something follows the end of the document")


def _walk(text: "_Text", inside: frozenset[tuple[str, ...]], path: Path) -> Iterator[tuple[Path, Any]]:
    opened = tuple("*" if isinstance(step, int) else step for step in path) in inside
    if opened and text.peek() == "[":
        for index in _members(text, "]"):
            yield from _walk(text, inside, (*path, index))
    elif opened and text.peek() == "{":
        for _ in _members(text, "}"):
            name = text.value()
            if not isinstance(name, str):
                raise text.broken("the name of a field is not text")
            text.take(":")
            yield from _walk(text, inside, (*path, name))
    else:
        yield path, text.value()


def _members(text: "_Text", end: str) -> Iterator[int]:
    """Stops before each member of an array or object, which the caller then reads."""
    text.take(text.peek())
    number = 0
    while text.peek() != end:
        if number:
            text.take(",")
        yield number
        number += 1
    text.take(end)


class _Text:
    """The part of a text that is being read."""

    def __init__(self, file: Readable, max_characters: int) -> None:
        self._file = file
        self._max_characters = max_characters
        self._characters = codecs.getincrementaldecoder("utf-8-sig")()
        self._decode = json.JSONDecoder().raw_decode
        self._buffer = ""
        self._at = 0
        self._ended = False
        self._line, self._column = 1, 1

    def peek(self) -> str:
        """The next character that is not blank; empty at the end."""
        while True:
            self._at = WHITESPACE.match(self._buffer, self._at).end()
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if self._ended:
                return ""
            self._read_on()

    def take(self, character: str) -> None:
        """Read this character, or find that the text is broken."""
        if (found := self.peek()) != character:
            raise self.broken(f"{character} is missing" if found else "the file was cut off")
        self._at += 1

    def value(self) -> Any:
        """Read one value whole."""
        self.peek()
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
            except json.JSONDecodeError as problem:
                is_open = problem.msg.startswith("Unterminated string")
                if self._ended or not (is_open or problem.pos + _LONGEST_TOKEN >= len(self._buffer)):
                    is_cut_off = is_open or problem.pos >= len(self._buffer)
                    raise self.broken("the file was cut off" if is_cut_off else problem.msg, problem.pos) from problem
            except (ValueError, RecursionError) as problem:
                raise self.broken(checks.json_fault(problem)) from problem
            else:
                # At the end of what was read, a number may be only a part of one, such as 1 of 12 or of 1e+5.
                following = self._buffer[end : end + 4]
                if self._ended or not (following == "" or (following[0] in ".eE" and len(following) < 4)):
                    self._at = end
                    return value
            if len(self._buffer) - self._at > self._max_characters:
                raise self.broken(f"a value is longer than {self._max_characters:,} characters, or has no end")
            self._read_on()

    def broken(self, reason: str, at: int | None = None) -> Broken:
        """The error that names the place: where the text is being read, or where else in it."""
        line, column = self._place(self._at if at is None else at)
        return Broken(f"the file is not JSON at line {line}, column {column}: {reason}")

    def _read_on(self) -> None:
        """Read as much again as is waiting, so that a long value is not tried over and over."""
        self._line, self._column = self._place(self._at)
        rest = self._buffer[self._at :]
        self._buffer, self._at = rest, 0
        more = self._file.read(max(CHUNK_BYTES, len(rest)))
        self._ended = not more
        try:
            self._buffer = rest + self._characters.decode(more, final=self._ended)
        except UnicodeDecodeError as problem:
            self._buffer = rest + problem.object[: problem.start].decode("utf-8-sig")
            raise self.broken("the text is not UTF-8", len(self._buffer)) from problem

    def _place(self, at: int) -> tuple[int, int]:
        lines = self._buffer.count("\n", 0, at)
        if not lines:
            return self._line, self._column + at
        return self._line + lines, at - self._buffer.rfind("\n", 0, at)
