"""Input checks: each returns the value in the form we store, or raises Invalid with a clear message."""

import difflib
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from numbers import Real
from typing import Any, TypeAlias
from uuid import UUID

from recollect.errors import Invalid

# What metadata may be where a contract passes it as JSON text. Elsewhere it is an object.
Json: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None

MAX_TEXT_MEGABYTES = 16
MAX_TEXT_BYTES = MAX_TEXT_MEGABYTES * 1024 * 1024
MAX_METADATA_BYTES = 1024 * 1024
MAX_METADATA_DEPTH = 100
MAX_METADATA_VALUES = 100_000
MAX_IDENTIFIER_CHARACTERS = 255
MAX_QUESTION_CHARACTERS = 20_000
EMBEDDING_DIMENSIONS = 1536
# Of stored vectors, of which each must fit into a page of PostgreSQL beside its keys. An index would take 4,000.
MAX_DIMENSIONS = 3_072
# Of a caller's own vectors, which no index has to take: pgvector's limit.
MAX_OWN_DIMENSIONS = 16_000
LARGEST_ID = 2**63 - 1
# Of a caller's own words in a message: enough to know them again.
MAX_SHOWN_CHARACTERS = 64

_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")


def namespace(value: str) -> str:
    """Namespaces are plain names, because they also travel in a SET command, which takes no parameters."""
    if not isinstance(value, str) or not _NAMESPACE.fullmatch(value):
        raise Invalid(
            f"namespace {value!r} is invalid: use letters, digits and . _ : @ -, "
            "start with a letter or digit, at most 128 characters"
        )
    return value


def optional_uuid(value: UUID | None, name: str) -> UUID | None:
    """A UUID that may be missing."""
    if value is not None and not isinstance(value, UUID):
        raise Invalid(f"{name} must be a UUID, not {type(value).__name__}")
    return value


# Spelt nothing alike, and each is the name on some route.
_SYNONYMS = {"text": "content", "content": "text"}


def nearest(name: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown name: the nearest known one, or all of them."""
    names = list(known)
    if (synonym := _SYNONYMS.get(name)) in names:
        return f"Did you mean {synonym}?"
    near = difflib.get_close_matches(name, names, 1)
    if near:
        return f"Did you mean {near[0]}?"
    return f"Known: {', '.join(names)}." if names else "None are known."


def text(value: str, name: str) -> str:
    """Text to remember: not blank, storable as UTF-8, within the size limit."""
    _sized(value, name)
    if not value.strip():
        raise Invalid(f"{name} is empty: it needs at least one non-whitespace character")
    return value


def question(value: str, name: str, *, needs_words: bool = True) -> str:
    """A text to search by: it is no document, and has words unless semantic search alone is to find something."""
    text(value, name)
    if len(value) > MAX_QUESTION_CHARACTERS:
        raise Invalid(
            f"{name} is longer than the limit of {MAX_QUESTION_CHARACTERS:,} characters: ask a shorter question"
        )
    if needs_words and not has_words(value):
        raise Invalid(f"{name} has no letters or digits to search for: use words")
    return value


def has_words(value: str) -> bool:
    """Whether there is anything in a text to search by."""
    return any(character.isalnum() for character in value)


def identifier(value: str, name: str) -> str:
    """A name that a caller gives to a user, a session or an agent."""
    return _short(value, name, f"pass the id of the {name.removesuffix('_id').removeprefix('exclude_')}")


def optional_identifier(value: str | None, name: str) -> str | None:
    """Such a name where it may be missing."""
    return None if value is None else identifier(value, name)


def short_name(value: str, name: str) -> str:
    """What a caller calls a person, a thing or a kind of things: a speaker, a node, a label, a role."""
    return _short(value, name, "it needs at least one non-whitespace character")


def optional_short_name(value: str | None, name: str) -> str | None:
    """Such a name where it may be missing."""
    return None if value is None else short_name(value, name)


def optional_text(value: str | None, name: str) -> str | None:
    """Text that may be missing or blank, a title for example."""
    return value if value is None or value == "" else _sized(value, name)


def metadata(value: Mapping[str, Any] | None, name: str = "metadata") -> str | None:
    """A JSON object, as the text that PostgreSQL will store."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise Invalid(f"{name} must be a JSON object: a mapping with string keys")
    return _json(dict(value), name)


def payload(value: Json, name: str) -> str | None:
    """Any JSON value that a client wants back as it is, as the text that PostgreSQL will store."""
    return None if value is None else _json(value, name, MAX_TEXT_BYTES)


def json_value(value: object, name: str) -> str:
    """Any JSON value, as the text that PostgreSQL will store."""
    return _json(value, name)


def metadata_filter(value: Mapping[str, Any] | None, name: str) -> str | None:
    """What metadata must contain; an empty filter asks for nothing."""
    encoded = metadata(value, name)
    return encoded if value else None


def metadata_text(value: str | None, name: str = "metadata") -> str | None:
    """For contracts that pass metadata as JSON text: any JSON value."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise Invalid(f"{name} must be JSON text, not {type(value).__name__}: pass json.dumps(...)")
    if len(value) > 2 * MAX_METADATA_BYTES:  # some of it may be escaped
        raise Invalid(f"{name} is larger than the limit of {MAX_METADATA_BYTES // 1024} kB")
    try:
        decoded = json.loads(value)
    except (TypeError, ValueError, RecursionError) as problem:
        raise Invalid(f"{name} is not JSON: {json_fault(problem)}") from problem
    return _json(decoded, name)


def as_object(metadata: Json) -> dict[str, Any] | None:
    """Metadata for a contract in which it is an object; another lets it be any JSON value."""
    return metadata if metadata is None or isinstance(metadata, dict) else {"value": metadata}


def json_fault(problem: Exception) -> str:
    """Why something is not JSON, for who wrote it: Python names functions and settings of its own."""
    if isinstance(problem, RecursionError):
        return "it is nested too deeply"
    reason = str(problem)
    if "int_max_str_digits" in reason:
        return f"a number has more than {sys.get_int_max_str_digits():,} digits: write it as a string"
    return "a number is infinite or NaN" if reason.startswith("Out of range float") else reason


def embedding(values: Sequence[float], name: str) -> str:
    """A vector in the caller's space, as pgvector's text form; arrays of NumPy and its like are taken too."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise Invalid(f"{name} must be a list of {EMBEDDING_DIMENSIONS} numbers")
    if len(values) != EMBEDDING_DIMENSIONS:
        raise Invalid(f"{name} must have {EMBEDDING_DIMENSIONS} numbers, not {len(values)}")
    for place, number in enumerate(values):
        if isinstance(number, bool) or not isinstance(number, Real):
            raise Invalid(f"{name} must contain only numbers; number {place} is {type(number).__name__}")
        if not abs(number) <= _LARGEST_FLOAT32:
            raise Invalid(f"{name} must contain finite numbers that fit into 32 bits; number {place} does not")
    # Beyond these, the sums that cosine similarity takes would overflow or vanish.
    numbers = list(map(float, values))
    length = math.hypot(*numbers)
    if not length:
        return _ALL_ZEROS
    if not _SHORTEST_VECTOR < length < _LONGEST_VECTOR:
        raise Invalid(f"{name} is too large or too small a vector for 32-bit arithmetic: normalise it to length 1")
    return "[" + ",".join(map(repr, numbers)) + "]"


def own_vector(values: Sequence[float], name: str) -> str:
    """A vector of any size in the caller's space, as pgvector's text form."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not 0 < len(values) <= MAX_OWN_DIMENSIONS:
        raise Invalid(f"{name} must be a list of 1 to {MAX_OWN_DIMENSIONS:,} numbers")
    for place, number in enumerate(values):
        if isinstance(number, bool) or not isinstance(number, Real) or not abs(number) <= _LARGEST_FLOAT32:
            raise Invalid(f"{name} must contain finite numbers that fit into 32 bits; number {place} is not one")
    return "[" + ",".join(map(repr, map(float, values))) + "]"


def query_embedding(values: Sequence[float], name: str) -> str:
    """A vector to search with: it must also have a direction."""
    encoded = embedding(values, name)
    if encoded == _ALL_ZEROS:
        raise Invalid(f"{name} is all zeros: cosine similarity needs a direction")
    return encoded


def positive(value: int, name: str) -> int:
    """A count of at least one, in the range of PostgreSQL's integers."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
        raise Invalid(f"{name} must be a whole number greater than 0 and below {2**31:,}, not {value!r}")
    return value


def between(value: int, low: int, high: int, name: str) -> int:
    """A whole number in a closed range."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Invalid(f"{name} must be between {low} and {high}, not {value!r}")
    return value


def number_between(value: float, low: float, high: float, name: str) -> float:
    """A finite number in a closed range."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise Invalid(f"{name} must be a number between {low} and {high}, not {value!r}")
    return float(value)


def positive_number(value: float, high: float, name: str) -> float:
    """A finite number above zero, up to a limit."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= high:
        raise Invalid(f"{name} must be a number greater than 0 and at most {high:,}, not {value!r}")
    return float(value)


def one_of(value: str, allowed: Sequence[str], name: str) -> str:
    """One of a contract's fixed words."""
    if not isinstance(value, str) or value not in allowed:
        raise Invalid(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
    return value


_OUT_OF_RANGE = "{name} is outside the range of years that can be stored: {value}"
_INFINITE = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


def utc(value: datetime, name: str) -> datetime:
    """A moment in UTC; one without a time zone is taken as UTC."""
    if not isinstance(value, datetime):
        raise Invalid(f"{name} must be a datetime, not {type(value).__name__}")
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError as problem:
        raise Invalid(_OUT_OF_RANGE.format(name=name, value=value)) from problem


def moment(given: object) -> datetime:
    """A date and time in text, as JSON, files and commands have it; a plain ValueError, for models of Pydantic."""
    try:
        return datetime.fromisoformat(given if isinstance(given, str) else "")
    except ValueError:
        raise ValueError("write a date and time such as 2026-02-14T12:00:00Z") from None


def storable_utc(value: datetime | None, name: str) -> datetime | None:
    """When something was said, or None. The first and the last moment stand for infinity in PostgreSQL."""
    if value is None:
        return None
    stored = utc(value, name)
    if stored in _INFINITE:
        raise Invalid(_OUT_OF_RANGE.format(name=name, value=value))
    return stored


def optional_utc(value: datetime | None, name: str) -> datetime | None:
    """A moment in UTC that may be missing."""
    return None if value is None else utc(value, name)


def optional_future(value: datetime | None, name: str) -> datetime | None:
    """A moment in UTC that is still to come, and may be missing."""
    moment = optional_utc(value, name)
    if moment is not None and moment <= datetime.now(UTC):
        raise Invalid(f"{name} must be in the future, not {moment.isoformat()}")
    return moment


def as_of(value: datetime | None, name: str = "as_of") -> datetime | None:
    """A moment that may be asked about: none that is still to come, but for clocks that disagree a little."""
    if value is None:
        return None
    moment = utc(value, name)
    if moment > datetime.now(UTC) + _CLOCKS_DIFFER:
        raise Invalid(f"{name} {moment.isoformat()} is in the future: pass a time in the past, or omit it for now")
    return moment


def future(value: datetime | None, name: str) -> datetime | None:
    """A moment that is still to come."""
    if value is None:
        return None
    moment = utc(value, name)
    if moment <= datetime.now(UTC):
        raise Invalid(f"{name} {moment.isoformat()} is in the past: pass a time in the future")
    return moment


def from_now(seconds: float, name: str) -> datetime:
    """The moment that is so many seconds away."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise Invalid(f"{name} must be a number of seconds greater than 0, not {seconds!r}")
    try:
        return datetime.now(UTC) + timedelta(seconds=seconds)
    except OverflowError as problem:
        raise Invalid(f"{name} is beyond the years that can be stored: pass fewer seconds") from problem


def time_range(
    start: datetime, end: datetime, names: tuple[str, str] = ("start_date", "end_date")
) -> tuple[datetime, datetime]:
    """A closed range of time, in order."""
    first, last = utc(start, names[0]), utc(end, names[1])
    if last < first:
        raise Invalid(f"{names[1]} {last.isoformat()} is before {names[0]} {first.isoformat()}: swap them")
    return first, last


_CLOCKS_DIFFER = timedelta(minutes=1)
_LARGEST_FLOAT32 = 3.4028234e38
_SHORTEST_VECTOR, _LONGEST_VECTOR = 1e-18, 1e18
_ALL_ZEROS = "[" + ",".join(["0.0"] * EMBEDDING_DIMENSIONS) + "]"


def storable_json(value: object, name: str) -> str:
    """JSON of any size that PostgreSQL can hold and answers can show, as the text that PostgreSQL will store."""
    try:
        encoded = json.dumps(value, allow_nan=False, ensure_ascii=False)
        encoded.encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise Invalid(f"{name} is not JSON: {json_fault(problem)}") from problem
    if "\\u0000" in encoded and _has_nul(value):
        raise Invalid(f"{name} contains a NUL character, which PostgreSQL cannot store: remove it")
    if _is_deep(value, MAX_METADATA_DEPTH):
        raise Invalid(f"{name} is nested more than {MAX_METADATA_DEPTH} levels deep: flatten it")
    if not _has_text_keys(value):
        raise Invalid(f"{name} must be a JSON object with string keys: convert the other keys")
    return encoded


def _json(value: object, name: str, most_bytes: int = MAX_METADATA_BYTES) -> str:
    # Counted before anything is encoded: whatever it is, the answer comes soon.
    seen, waiting = 0, [value]
    while waiting and seen <= MAX_METADATA_VALUES:
        inner = waiting.pop()
        if isinstance(inner, Mapping | list | tuple):
            seen += len(inner)
            if seen <= MAX_METADATA_VALUES:
                waiting += inner.values() if isinstance(inner, Mapping) else inner
    if seen > MAX_METADATA_VALUES:
        raise Invalid(f"{name} has more than {MAX_METADATA_VALUES:,} values: store less in it")
    encoded = storable_json(value, name)
    if len(encoded.encode()) > most_bytes:
        raise Invalid(f"{name} is larger than the limit of {most_bytes // 1024} kB")
    return encoded


def _is_deep(value: object, levels: int) -> bool:
    """Whether something is nested deeper than so many levels; what writes answers gives up at some depth."""
    if not isinstance(value, Mapping | list | tuple):
        return False
    inner = value.values() if isinstance(value, Mapping) else value
    return levels == 0 or any(_is_deep(item, levels - 1) for item in inner)


def _sized(value: str, name: str) -> str:
    storable(value, name)
    if len(value) > MAX_TEXT_BYTES or len(value.encode()) > MAX_TEXT_BYTES:
        raise Invalid(f"{name} is larger than the limit of {MAX_TEXT_MEGABYTES} MB: split it into several parts")
    return value


def _short(value: str, name: str, remedy: str) -> str:
    storable(value, name)
    if not value.strip():
        raise Invalid(f"{name} is empty: {remedy}")
    if len(value) > MAX_IDENTIFIER_CHARACTERS:
        raise Invalid(f"{name} is longer than {MAX_IDENTIFIER_CHARACTERS} characters")
    return value


def storable(value: str, name: str) -> None:
    """Text that PostgreSQL can hold, empty or not."""
    if not isinstance(value, str):
        raise Invalid(f"{name} must be text, not {type(value).__name__}")
    if "\x00" in value:
        raise Invalid(f"{name} contains a NUL character, which PostgreSQL cannot store: remove it")
    try:
        value.encode()
    except UnicodeEncodeError as problem:
        raise Invalid(
            f"{name} is not valid UTF-8 (it contains half of a surrogate pair): remove that, or decode it correctly"
        ) from problem


def _has_text_keys(value: object) -> bool:
    """What writes JSON would turn other keys into text by itself."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _has_text_keys(item) for key, item in value.items())
    return not isinstance(value, list | tuple) or all(map(_has_text_keys, value))


def _has_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, Mapping):
        return any(_has_nul(key) or _has_nul(item) for key, item in value.items())
    return isinstance(value, list | tuple) and any(map(_has_nul, value))
