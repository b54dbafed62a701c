"""The lines of an import: read one at a time, and checked before anything of them is stored."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, BinaryIO
from uuid import UUID

from recollect import checks
from recollect.errors import Invalid
from recollect.flows.kinds import registry
from recollect.flows.kinds.kind import Kind
from recollect.flows.kinds.rules import LARGEST_ID
from recollect.storage.columns import Column

# A text of 16 MB, were every character of it escaped.
MAX_LINE_BYTES = 6 * checks.MAX_TEXT_BYTES + checks.MAX_METADATA_BYTES


@dataclass(frozen=True, slots=True)
class Line:
    """One line that is a JSON object: where it stands, how long it is, and what it says."""

    number: int
    text: str
    size: int
    fields: Mapping[str, Any]

    @property
    def place(self) -> str:
        """Where it stands, in words."""
        return f"line {self.number}"


@dataclass(frozen=True, slots=True)
class BadLine:
    """One line that is not."""

    number: int
    size: int
    reason: str

    @property
    def place(self) -> str:
        """Where it stands, in words."""
        return f"line {self.number}"


def read(file: BinaryIO) -> Iterator[Line | BadLine]:
    """Every line that is not blank."""
    number = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        size = len(raw)
        if size > MAX_LINE_BYTES:
            rest = raw
            while not rest.endswith(b"\n") and (rest := file.readline(MAX_LINE_BYTES)):
                size += len(rest)
            yield BadLine(number, size, f"the line is longer than {MAX_LINE_BYTES // 2**20} MB")
            continue
        if not raw.strip():
            continue
        fields, reason = None, "the line is not a JSON object"
        try:
            text = raw.decode().strip()
            fields = json.loads(text)
        except UnicodeDecodeError:
            reason = "the line is not UTF-8"
        except RecursionError:
            reason = "the line is nested too deeply"
        except ValueError as problem:
            reason = f"the line is not JSON, or was cut off: {checks.json_fault(problem)}"
        yield Line(number, text, size, fields) if isinstance(fields, dict) else BadLine(number, size, reason)


def kind_of(fields: Mapping[str, Any]) -> Kind:
    """Which kind of record a line says it is."""
    name = fields.get("kind")
    for kind in registry.KINDS:
        if kind.name == name:
            return kind
    raise Invalid(f"unknown kind {name!r}")


def check(kind: Kind, fields: Mapping[str, Any], columns: Mapping[str, Column]) -> None:
    """Whether a record has every field of its kind, no other, and in each what can stand there."""
    if missing := columns.keys() - fields.keys() - kind.later:
        raise Invalid(f"the record has no {', '.join(sorted(missing))}")
    if unknown := fields.keys() - columns.keys() - {"kind"}:
        raise Invalid(f"a {fields['kind']} has no field {', '.join(sorted(unknown))}")
    for name, column in columns.items():
        value, form = fields.get(name), _FORMS.get(column.type)
        if value is None and (column.optional or (name in kind.later and name not in fields)):
            continue
        if value is None:
            raise Invalid(f"{name} must not be null")
        if column.type in ("json", "jsonb"):
            checks.storable_json(value, name)
        if form is not None and not form[1](value):
            raise Invalid(f"{name} must be {form[0]}")
        if column.type == "text":
            checks.storable(value, name)
        if column.counted and not 0 < value <= LARGEST_ID:
            raise Invalid(f"{name} must be between 1 and {LARGEST_ID}")


def check_values(kind: Kind, fields: Mapping[str, Any]) -> None:
    """Refuse a record that no door could have made; null, where the table has it, needs no rule."""
    for name, rule in kind.rules.items():
        if (value := fields.get(name)) is not None:
            rule(value, name)
    kind.check(fields)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _parses(fits: Callable[[str], bool], value: object) -> bool:
    try:
        return isinstance(value, str) and fits(value)
    except (ValueError, OverflowError):
        return False


def _list_of(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


_FORMS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "text": ("text", lambda value: isinstance(value, str)),
    "uuid": ("a UUID, written in lower case with hyphens", partial(_parses, lambda text: str(UUID(text)) == text)),
    "bigint": ("a whole number", _whole),
    "integer": ("a whole number of 32 bits", lambda value: _whole(value) and value in range(-(2**31), 2**31)),
    "double precision": ("a number", _number),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "timestamp with time zone": (
        "a time with a UTC offset, such as 2024-05-01T12:00:00+00:00",
        # In UTC, too, it must be in the range of a datetime, or the record could not be read again.
        partial(
            _parses,
            lambda text: (at := datetime.fromisoformat(text)).tzinfo is not None and at.astimezone(UTC).tzinfo is UTC,
        ),
    ),
    "date": ("a date, such as 2024-05-01", partial(_parses, lambda text: date.fromisoformat(text).isoformat() == text)),
    "bytea": (
        "bytes written as \\x and lowercase hex digits",
        partial(_parses, lambda text: text == "\\x" + bytes.fromhex(text[2:]).hex()),
    ),
    "bigint[]": ("a list of whole numbers", _list_of(_whole)),
    "text[]": ("a list of texts", _list_of(lambda value: isinstance(value, str))),
    "vector[]": ("a list of vectors in text", _list_of(lambda value: isinstance(value, str))),
    f"vector({checks.EMBEDDING_DIMENSIONS})": ("a list of numbers", _list_of(_number)),
}
"""What a value of a type must be. What JSON columns hold is anybody's, and what is not named the database checks."""
