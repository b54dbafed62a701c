"""Puts a marked block at the end of TOML text and takes it out again, leaving every other byte as it is."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from recollect.doors.cli.coding_agents.json_text import Edit
from recollect.errors import Invalid

BEGIN = "# recollect: begin; `recollect uninstall` removes this block"
END = "# recollect: end"


def parse(text: str) -> dict[str, Any]:
    """What a text says."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise Invalid(f"it is not TOML: {str(problem)[:200]}") from problem


def put(text: str, path: Sequence[str], table: Mapping[str, Any]) -> tuple[str, Edit]:
    """The text with one more table behind everything else."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [BEGIN, f"[{'.'.join(path)}]", *(f"{name} = {_value(value)}" for name, value in table.items()), END]
    before = parse(text)
    if _at(before, path) is not None:
        raise Invalid(f"it already has {'.'.join(path)}, which is not known to be ours: remove that first")
    gap = "" if not text else newline if text.endswith("\n") else 2 * newline
    inserted = gap + newline.join(lines) + newline
    after = parse(text + inserted)
    if _at(after, path) != table or _without(after, path) != _without(before, path):
        raise Invalid(f"{'.'.join(path[:-1])} is written in a way that takes no further table")
    return text + inserted, Edit(inserted)


def remove(text: str, path: Sequence[str]) -> str:
    """The text without the block; refused if others have come to depend on where it stands."""
    begin = text.find(BEGIN)
    end = text.find(END, begin)
    if begin < 0 or end < 0:
        return text
    behind = text.find("\n", end) + 1 or len(text)
    left = text[:begin].removesuffix("\n").removesuffix("\r") if begin else ""
    result = (left or text[:begin].strip()) + text[behind:]
    if _without(parse(result), path) != _without(parse(text), path):
        raise Invalid("the block of recollect in it has been changed: remove it by hand")
    return result


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_value(each)}" for name, each in value.items()) + " }"
    if isinstance(value, str):
        # Strings of JSON are strings of TOML, but for this one character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value, ensure_ascii=False)


def _at(document: Mapping[str, Any], path: Sequence[str]) -> Any:
    found: Any = document
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _without(document: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """The document without what is at a path; a table that holds nothing else is as good as none."""
    rest = {name: value for name, value in document.items() if name != path[0]}
    inner = document.get(path[0])
    if len(path) > 1 and isinstance(inner, Mapping) and (kept := _without(inner, path[1:])):
        rest[path[0]] = kept
    return rest
