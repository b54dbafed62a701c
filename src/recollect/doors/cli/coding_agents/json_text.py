"""Puts values into JSON text and takes them out again, leaving every other byte, comments included, as it is."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from recollect.errors import Invalid

_SPACE = re.compile(r"\s*")
# How comments begin, and how they end.
_COMMENTS = {"//": "\n", "/*": "*/"}
_SCALAR = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null')
_USUAL_INDENT = "  "


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of text that was put in, and what stood in its place."""

    inserted: str
    replaced: str = ""


@dataclass(slots=True)
class Node:
    """A value in a text: where it stands, what it is, and where its parts are."""

    start: int
    end: int = 0
    value: Any = None
    parts: "list[Part]" = field(default_factory=list)

    def member(self, name: str) -> "Part | None":
        return next((part for part in self.parts if part.name == name), None)


@dataclass(slots=True)
class Part:
    """A member of an object, or an item of an array, which has no name."""

    start: int
    name: str | None
    node: Node
    comma: int | None = None
    """Where the comma behind it stands."""


def parse(text: str) -> Node:
    """The value in a text; comments are allowed, and a comma behind the last part."""
    start = _space(text, 0)
    node = _value(text, start)
    if _space(text, node.end) != len(text):
        raise _fault(text, node.end)
    return node


def _value(text: str, start: int) -> Node:
    opening = text[start : start + 1]
    if opening in ("{", "["):
        return _container(text, Node(start), "}" if opening == "{" else "]")
    found = _SCALAR.match(text, start)
    if found is None:
        raise _fault(text, start)
    try:
        return Node(start, found.end(), json.loads(found.group()))
    except ValueError as problem:
        raise _fault(text, start) from problem


def _container(text: str, node: Node, closing: str) -> Node:
    place = _space(text, node.start + 1)
    while text[place : place + 1] != closing:
        part = _part(text, place, is_member=closing == "}")
        node.parts.append(part)
        place = _space(text, part.node.end)
        if text[place : place + 1] == ",":
            part.comma = place
            place = _space(text, place + 1)
        elif text[place : place + 1] != closing:
            raise _fault(text, place)
    node.end = place + 1
    if closing == "}":
        node.value = {part.name: part.node.value for part in node.parts}
    else:
        node.value = [part.node.value for part in node.parts]
    return node


def _part(text: str, start: int, *, is_member: bool) -> Part:
    if not is_member:
        return Part(start, None, _value(text, start))
    name = _value(text, start)
    colon = _space(text, name.end)
    if not isinstance(name.value, str) or text[colon : colon + 1] != ":":
        raise _fault(text, colon)
    return Part(start, name.value, _value(text, _space(text, colon + 1)))


def _space(text: str, place: int) -> int:
    """Where white space and comments are over."""
    while True:
        found = _SPACE.match(text, place)
        place = place if found is None else found.end()
        closing = _COMMENTS.get(text[place : place + 2])
        if closing is None:
            return place
        end = text.find(closing, place + 2)
        place = len(text) if end < 0 else end + len(closing)


def _fault(text: str, place: int) -> Invalid:
    return Invalid(f"it is not JSON: see line {text.count(chr(10), 0, place) + 1}")


def put(text: str, path: Sequence[str], value: Any, *, is_item: bool = False) -> tuple[str, Edit, int]:
    """The text with a member at a path, or one more item of the array there.

    Also the edit, and how many names of the path were there before.
    """
    if not text.strip():
        written = json.dumps(_nested(path, value, is_item), indent=_USUAL_INDENT, ensure_ascii=False) + "\n"
        return written, Edit(written, text), 0
    node, depth = parse(text), 0
    while depth < len(path):
        _require(node, dict, path[:depth])
        part = node.member(path[depth])
        if part is None:
            break
        node, depth = part.node, depth + 1
    if depth < len(path):
        part_text = _nested(path[depth + 1 :], value, is_item)
        return (*_inserted(text, node, path[depth], part_text), depth)
    if not is_item:
        raise Invalid(f"it already has {'.'.join(path)}, which is not known to be ours: remove that first")
    _require(node, list, path)
    return (*_inserted(text, node, None, value), depth)


def _require(node: Node, kind: type, path: Sequence[str]) -> None:
    if not isinstance(node.value, kind):
        what = "an object" if kind is dict else "a list"
        raise Invalid(f"{'.'.join(path) or 'its content'} must be {what}")


def _nested(path: Sequence[str], value: Any, is_item: bool) -> Any:
    inner = [value] if is_item else value
    for name in reversed(path):
        inner = {name: inner}
    return inner


def _inserted(text: str, node: Node, name: str | None, value: Any) -> tuple[str, Edit]:
    """One more part at the beginning of an object or array, in the style of the file.

    There, no other line changes, and whoever adds something at the end does not change ours.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    named = "" if name is None else f"{json.dumps(name, ensure_ascii=False)}: "
    place, end = node.start + 1, node.end - 1
    if node.parts and newline not in text[node.start : node.end]:
        edit = Edit(f"{named}{json.dumps(value, ensure_ascii=False)}, ")
    else:
        before = _indent(text, node.start)
        indent = _indent(text, node.parts[0].start) if node.parts else before + _unit(text)
        lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).replace("\n", newline + indent)
        written = f"{newline}{indent}{named}{lines}"
        if node.parts:
            edit = Edit(f"{written},")
        elif text[place:end].strip():  # a comment
            edit = Edit(written)
        else:
            return text[:place] + written + newline + before + text[end:], Edit(
                written + newline + before, text[place:end]
            )
    return text[:place] + edit.inserted + text[place:], edit


def _indent(text: str, place: int) -> str:
    """What the line of a place begins with."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip())]


def _unit(text: str) -> str:
    """One step of indentation, as the first indented line has it."""
    found = re.search(r"^([ \t]+)\S", text, re.M)
    return found[1] if found else _USUAL_INDENT


def remove(text: str, path: Sequence[str], is_ours: Callable[[Part], bool], existing: int) -> str:
    """The text without the parts below a path that are ours, and without empty containers that came with them.

    So many names of the path existed before.
    """
    while (found := next(_ours(parse(text), path, is_ours), None)) is not None:
        text = _without(text, *found)
    for depth in range(len(path), existing, -1):
        holder = _at(parse(text), path[: depth - 1])
        part = None if holder is None else holder.member(path[depth - 1])
        if holder is None or part is None or part.node.value:
            break
        text = _without(text, holder, part)
    return text


def _at(node: Node, path: Sequence[str]) -> Node | None:
    for name in path:
        part = node.member(name)
        if part is None:
            return None
        node = part.node
    return node


def _ours(root: Node, path: Sequence[str], is_ours: Callable[[Part], bool]) -> Iterator[tuple[Node, Part]]:
    """Parts to take out, the outermost first: an item whose own lists would be empty goes whole."""
    holder = _at(root, path)
    if holder is None:
        return
    for part in holder.parts:
        if is_ours(part):
            yield holder, part
        inner = part.node.member("hooks")
        handlers = inner.node.parts if inner is not None else []
        ours = [each for each in handlers if is_ours(each)]
        if inner is not None and ours:
            yield (holder, part) if len(ours) == len(handlers) else (inner.node, ours[0])


def _without(text: str, holder: Node, part: Part) -> str:
    """A part, its comma, and the space before it; the comma before it if it was the last."""
    number = next(number for number, each in enumerate(holder.parts) if each is part)
    end = part.node.end if part.comma is None else part.comma + 1
    start = len(text[: part.start].rstrip())
    before = holder.parts[number - 1] if number else None
    if part.comma is None and before is not None and before.comma is not None:
        return text[: before.comma] + text[before.comma + 1 : start] + text[end:]
    if len(holder.parts) == 1 and not text[end : holder.end - 1].strip():
        end = holder.end - 1
    return text[:start] + text[end:]
