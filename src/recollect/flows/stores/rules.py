"""Rules of memory stores: ids as callers see them, names and metadata of stores, paths and contents of files."""

import unicodedata
from collections.abc import Mapping
from typing import TypeVar
from uuid import UUID

from recollect import checks
from recollect.errors import Invalid, NotFound

STORE, FILE, VERSION = "memstore", "mem", "memver"
_TITLES = {STORE: "memory store", FILE: "memory", VERSION: "memory version"}

MAX_NAME_CHARACTERS = 255
MAX_DESCRIPTION_CHARACTERS = 1_024
MAX_PAIRS = 16
MAX_KEY_CHARACTERS = 64
MAX_VALUE_CHARACTERS = 512
MAX_CONTENT_BYTES = 102_400
MAX_PATH_BYTES = 1_024
MAX_SEGMENTS = 20

# Controls, formats such as joiners, and the separators of lines and paragraphs: nobody sees them in a path.
_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp"})

Found = TypeVar("Found")


def shown(prefix: str, item_id: UUID) -> str:
    """The id of a store, file or version for callers: `mem_` and 32 hexadecimal digits."""
    return f"{prefix}_{item_id.hex}"


def parsed(prefix: str, name: str) -> UUID | None:
    """The id that a caller means, or None if it cannot be one."""
    digits = name.removeprefix(f"{prefix}_")
    if digits == name or len(digits) != 32 or not set(digits) <= set("0123456789abcdef"):
        return None
    return UUID(digits)


def required_id(prefix: str, name: str) -> UUID:
    """The id that a caller means; what cannot be one is not found."""
    return known(parsed(prefix, name), prefix, name)


def known(found: Found | None, prefix: str, name: str) -> Found:
    """What was found under an id, or NotFound."""
    if found is None:
        raise NotFound(f"There is no {_TITLES[prefix]} {name[: checks.MAX_SHOWN_CHARACTERS]}")
    return found


def store_name(value: str, name: str = "name") -> str:
    """What a store is called; two may be called the same."""
    checks.storable(value, name)
    if not 1 <= len(value) <= MAX_NAME_CHARACTERS:
        raise Invalid(f"{name} must have between 1 and {MAX_NAME_CHARACTERS} characters")
    if any(unicodedata.category(character) == "Cc" for character in value):
        raise Invalid(f"{name} contains control characters: remove them")
    return value


def description(value: str, name: str = "description") -> str:
    """What a store holds, in a text that may be empty."""
    checks.storable(value, name)
    if len(value) > MAX_DESCRIPTION_CHARACTERS:
        raise Invalid(f"{name} is longer than {MAX_DESCRIPTION_CHARACTERS:,} characters")
    return value


def metadata(value: Mapping[str, str], name: str = "metadata") -> str:
    """A few pairs of texts, as the JSON text that PostgreSQL will store."""
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for pair in value.items() for text in pair):
        raise Invalid(f"{name} must be a JSON object whose values are strings")
    if len(value) > MAX_PAIRS:
        raise Invalid(f"{name} has more than {MAX_PAIRS} pairs")
    if not all(1 <= len(key) <= MAX_KEY_CHARACTERS for key in value):
        raise Invalid(f"The keys of {name} must have between 1 and {MAX_KEY_CHARACTERS} characters")
    if any(len(text) > MAX_VALUE_CHARACTERS for text in value.values()):
        raise Invalid(f"A value of {name} is longer than {MAX_VALUE_CHARACTERS} characters")
    return checks.storable_json(dict(value), name)


def path(value: str, name: str = "path") -> str:
    """A path such as `/projects/notes.md`, of which there is one spelling only."""
    checks.storable(value, name)
    if not value.startswith("/"):
        raise Invalid(f"{name} must start with /, such as /projects/notes.md")
    if len(value.encode()) > MAX_PATH_BYTES:
        raise Invalid(f"{name} is longer than {MAX_PATH_BYTES:,} bytes")
    segments = value[1:].split("/")
    if len(segments) > MAX_SEGMENTS:
        raise Invalid(f"{name} has more than {MAX_SEGMENTS} segments: use fewer folders")
    if any(segment in ("", ".", "..") for segment in segments):
        raise Invalid(f"{name} has a segment that is empty, . or ..: write the path in full")
    if any(unicodedata.category(character) in _UNSEEN for character in value):
        raise Invalid(f"{name} contains control or format characters: remove them")
    if not unicodedata.is_normalized("NFC", value):
        raise Invalid(f"{name} is not in Unicode Normalization Form C: normalise it")
    return value


def folder(value: str, name: str) -> str:
    """A folder to list: a path with a slash at its end, or / for the whole store."""
    if not value.endswith("/"):
        raise Invalid(f"{name} must end with /, such as /notes/")
    if value != "/":
        path(value[:-1], name)
    return value


def content(value: str, name: str = "content") -> str:
    """The text of a file, which may be empty."""
    checks.storable(value, name)
    if len(value.encode()) > MAX_CONTENT_BYTES:
        raise Invalid(f"{name} is larger than the limit of 100 kB ({MAX_CONTENT_BYTES:,} bytes): split it into files")
    return value
