"""Reads the configuration's JSON: typed fields, no key ignored, no values in error messages."""

import difflib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from recollect.agent.secret import Secret

# Wrapped while the JSON is read, so that the bare text is in no object that a fault could show.
CREDENTIALS = frozenset({"userKey", "apiKey"})

# A credential in the place of a field's name has digits or signs, or is long: such a name is not repeated.
_SHOWN = re.compile(r"[A-Za-z_]{1,24}")
_NOT_SHOWN = "(name hidden)"


class ConfigurationError(Exception):
    """The configuration cannot be used. The sentence names the field and repeats no value."""


class Section:
    """One object of the file. Each field is taken once; what is left at the end is an error."""

    def __init__(self, values: dict[str, Any], name: str = "") -> None:
        self._values = dict(values)
        self._name = name
        self._known: list[str] = []

    def path(self, field: str) -> str:
        """The field's full name, as faults show it."""
        return f"{self._name}.{field}" if self._name else field

    def section(self, field: str) -> "Section | None":
        """An object inside this one, or None if the file has none, or null."""
        if self._values.get(field, 0) is None:
            self.skip(field)
            return None
        value = self._take(field, None)
        if value is not None and not isinstance(value, dict):
            self.refuse(field, "must be a JSON object")
        return None if value is None else Section(value, self.path(field))

    def text(self, field: str, default: str) -> str:
        """A text without the space around it; a blank one is as good as none."""
        value = self._take(field, default)
        if not isinstance(value, str):
            self.refuse(field, "must be a string")
        return value.strip() or default

    def secret(self, field: str) -> Secret | None:
        """A credential, or None if there is none or it is blank."""
        value = self._take(field, None)
        if value is not None and not isinstance(value, Secret):
            self.refuse(field, "must be a string")
        return value if value else None

    def whole(self, field: str, default: int, least: int, most: int) -> int:
        """A whole number within bounds."""
        value = self._take(field, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.refuse(field, f"must be a whole number between {least} and {most}")
        return value

    def seconds(self, field: str, default: float, most: float) -> float:
        """A positive time."""
        value = self._take(field, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
            self.refuse(field, f"must be a positive number of seconds, at most {most:g}")
        return float(value)

    def fraction(self, field: str) -> float | None:
        """A number from 0 to 1, or None if the file does not say."""
        value = self._take(field, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            self.refuse(field, "must be a number between 0 and 1")
        return float(value)

    def choice(self, field: str, allowed: Sequence[str]) -> str | None:
        """One of a few words, or None if the file does not say."""
        value = self._take(field, None)
        if value is not None and value not in tuple(allowed):
            self.refuse(field, f"must be one of: {', '.join(allowed)}")
        return str(value) if value is not None else None

    def choices(self, field: str, default: Sequence[str], allowed: Sequence[str]) -> tuple[str, ...]:
        """At least one of a few words, each once."""
        values = self._take(field, list(default))
        usable = isinstance(values, list) and values and all(value in tuple(allowed) for value in values)
        if not usable or len(set(values)) != len(values):
            self.refuse(field, f"must be a list of one or more of: {', '.join(allowed)}, without duplicates")
        return tuple(values)

    def skip(self, field: str) -> None:
        """A field that may be there and does not count."""
        self._known.append(field)
        self._values.pop(field, None)

    def finish(self) -> None:
        """Reject a field that was not read: it is misspelt or in the wrong place."""
        for field in self._values:
            nearest = self._nearest(field)
            hint = f"Did you mean {nearest}?" if nearest else f"Known fields: {', '.join(self._known)}."
            raise ConfigurationError(f"Unknown field {self.path(shown(field))}. {hint}")

    def others(self) -> tuple[str, ...]:
        """Fields that were not read and resemble none of ours: they may be another program's."""
        if any(map(self._nearest, self._values)):
            self.finish()
        return tuple(map(shown, self._values))

    def _nearest(self, field: str) -> str | None:
        lowered = {known.lower(): known for known in self._known}
        nearest = difflib.get_close_matches(field.lower(), lowered, 1)
        return lowered[nearest[0]] if nearest else None

    def refuse(self, field: str, rule: str) -> NoReturn:
        """Say what the field must be."""
        raise ConfigurationError(f"{self.path(field)} {rule}")

    def _take(self, field: str, default: Any) -> Any:
        self._known.append(field)
        if field in self._values and self._values[field] is None:
            self.refuse(field, "is null: set a value or omit it")
        return self._values.pop(field, default)


def shown(name: str) -> str:
    """The name of a field as it may stand in a sentence."""
    return name if _SHOWN.fullmatch(name) else _NOT_SHOWN


def read(path: Path) -> Section:
    """The object in a file."""
    document = _parsed(path)
    if isinstance(document, dict):
        return Section(document)
    raise ConfigurationError(f"The configuration {path} {document}")


def _parsed(path: Path) -> dict[str, Any] | str:
    """The object, or what is wrong with the file. The caller raises it: an exception from here would hold the text."""
    try:
        # `int` refuses NaN and Infinity, which JSON does not have.
        document = json.loads(path.read_bytes(), object_pairs_hook=_object, parse_constant=int)
    except OSError as problem:
        return f"cannot be read: {problem.strerror or type(problem).__name__}"
    except json.JSONDecodeError as problem:
        return f"is not JSON: {problem.msg} (line {problem.lineno}, column {problem.colno})"
    except UnicodeDecodeError:
        return "is not JSON: it is not valid UTF-8"
    except ConfigurationError as problem:
        return str(problem)
    except (ValueError, RecursionError):
        return "is not JSON: it contains an invalid number or is nested too deeply"
    return document if isinstance(document, dict) else "must be a JSON object"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ConfigurationError(f"contains {shown(name)} twice in one object")
        values[name] = Secret(value.strip()) if name in CREDENTIALS and isinstance(value, str) else value
    return values
