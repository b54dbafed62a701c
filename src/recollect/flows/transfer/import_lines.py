"""The lines of an import: read one at a time, and checked before anything of them is stored."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
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
            size += _skip_rest(file)
            yield BadLine(number, size, f"the line is longer than {MAX_LINE_BYTES // 2**20} MB")
        elif raw.strip():
            yield _parsed(number, raw)


def _skip_rest(file: BinaryIO) -> int:
    skipped = 0
    while part := file.readline(MAX_LINE_BYTES):
        skipped += len(part)
        if part.endswith(b"\n"):
            break
    return skipped


def _parsed(number: int, raw: bytes) -> Line | BadLine:
    try:
        text = raw.decode().strip()
        fields = json.loads(text)
    except UnicodeDecodeError:
        return BadLine(number, len(raw), "the line is not UTF-8")
    except RecursionError:
        return BadLine(number, len(raw), "the line is nested too deeply")
    except ValueError as problem:
        return BadLine(number, len(raw), f"the line is not JSON, or was cut off: {checks.json_fault(problem)}")
    if not isinstance(fields, dict):
        return BadLine(number, len(raw), "the line is not a JSON object")
    return Line(number, text, len(raw), fields)


def kind_of(fields: Mapping[str, Any]) -> Kind:
    """Which kind of record a line says it is."""
    name = fields.get("kind")
    for kind in registry.KINDS:
        if kind.name == name:
            return kind
    raise Invalid(f"kind is {name!r}, which is not a kind of record")


def check(fields: Mapping[str, Any], columns: Mapping[str, Column]) -> None:
    """Whether a record has every field of its kind, no other, and in each what can stand there."""
    if missing := columns.keys() - fields.keys():
        raise Invalid(f"the record has no {', '.join(sorted(missing))}")
    if unknown := fields.keys() - columns.keys() - {"kind"}:
        raise Invalid(f"a {fields['kind']} has no field {', '.join(sorted(unknown))}")
    for name, column in columns.items():
        value = fields[name]
        if value is not None:
            _check_value(value, column)
        elif not column.optional:
            raise Invalid(f"{name} must not be null")
        if column.counted and not 0 < fields[name] <= LARGEST_ID:
            raise Invalid(f"{name} must be between 1 and {LARGEST_ID}")


def check_values(kind: Kind, fields: Mapping[str, Any]) -> None:
    """Refuse a record that no door could have made; null, where the table has it, needs no rule."""
    for name, rule in kind.rules.items():
        if fields[name] is not None:
            rule(fields[name], name)
    kind.check(fields)


def _check_value(value: Any, column: Column) -> None:
    if column.type in ("json", "jsonb"):
        checks.storable_json(value, column.name)
    elif column.type in _FORMS:
        what, fits = _FORMS[column.type]
        if not fits(value):
            raise Invalid(f"{column.name} must be {what}")
    if column.type == "text":
        checks.storable(value, column.name)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _short(value: object) -> bool:
    return _whole(value) and value in range(-(2**31), 2**31)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _moment(value: object) -> bool:
    return _parses(value, _is_moment)


def _is_moment(text: str) -> bool:
    """In UTC, too, it must be one that a datetime can say, or nobody could read the record again."""
    moment = datetime.fromisoformat(text)
    return moment.tzinfo is not None and moment.astimezone(UTC).tzinfo is UTC


def _day(value: object) -> bool:
    return _parses(value, lambda text: date.fromisoformat(text).isoformat() == text)


def _uuid(value: object) -> bool:
    return _parses(value, lambda text: str(UUID(text)) == text)


def _bytes(value: object) -> bool:
    return _parses(value, lambda text: text == "\\x" + bytes.fromhex(text[2:]).hex())


def _parses(value: object, fits: Callable[[str], bool]) -> bool:
    try:
        return isinstance(value, str) and fits(value)
    except (ValueError, OverflowError):
        return False


def _list_of(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


_FORMS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "text": ("text", lambda value: isinstance(value, str)),
    "uuid": ("a UUID, written in lower case with hyphens", _uuid),
    "bigint": ("a whole number", _whole),
    "integer": ("a whole number of 32 bits", _short),
    "double precision": ("a number", _number),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "timestamp with time zone": ("a time with its offset, such as 2024-05-01T12:00:00+00:00", _moment),
    "date": ("a date, such as 2024-05-01", _day),
    "bytea": ("bytes as \\x and lower-case hexadecimal digits", _bytes),
    "bigint[]": ("a list of whole numbers", _list_of(_whole)),
    f"vector({checks.EMBEDDING_DIMENSIONS})": ("a list of numbers", _list_of(_number)),
}
"""What a value of a type must be. What JSON columns hold is anybody's, and what is not named the database checks."""
