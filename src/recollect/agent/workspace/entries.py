"""Entries of a curated file: list items and paragraphs of Markdown that a person may edit by hand."""

import re
from dataclasses import dataclass

# What begins a list item at the left margin; everything indented under it belongs to it, blank lines included.
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+")
_HEADING = re.compile(r"#{1,6}(?:\s|$)")
_BYTE_ORDER_MARK = "\ufeff"
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class Block:
    """Some whole lines of the file, as they stand there; `entry` is what they say, or None if they only shape it."""

    raw: str
    entry: str | None = None


def blocks(text: str) -> list[Block]:
    """The file in pieces; joined, their raw texts are the file again, whatever is in it."""
    found: list[Block] = []
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    place = 0
    while place < len(lines):
        end = _end_of_block(lines, place)
        raw = "".join(lines[place:end])
        said = raw.lstrip(_BYTE_ORDER_MARK).replace("\r\n", "\n")
        entry = None
        if said.strip() and not _HEADING.match(said):
            marker = _ITEM.match(said)
            first, *rest = said[marker.end() if marker else 0 :].split("\n")
            entry = "\n".join([first, *(line.removeprefix(_INDENT) for line in rest)]).strip()
        found.append(Block(raw, entry))
        place = end
    return found


def tidy(entry: str) -> str:
    """An entry as it will be read back: no blanks around it or at the end of its lines, one kind of line end."""
    return "\n".join(line.rstrip() for line in entry.replace("\r\n", "\n").split("\n")).strip()


def written(entry: str, block: Block | None = None) -> str:
    """A tidy entry as lines of the file: a list item, with the marker of the one it replaces."""
    marker = _ITEM.match(block.raw) if block else None
    first, *rest = entry.split("\n")
    lines = [f"{marker.group() if marker else '- '}{first}", *(f"{_INDENT}{line}" if line else "" for line in rest)]
    return "\n".join(lines) + "\n"


def appended(text: str, entry: str) -> str:
    """The file with one entry more, at its end."""
    return text + ("" if not text or text.endswith("\n") else "\n") + written(entry)


def _end_of_block(lines: list[str], start: int) -> int:
    """The line after a block: a blank line and a heading stand alone, items and paragraphs end before the next."""
    first = lines[start].lstrip(_BYTE_ORDER_MARK)
    if not first.strip() or _HEADING.match(first):
        return start + 1
    item = _ITEM.match(first) is not None
    end = start + 1
    while end < len(lines):
        following = next((place for place in range(end, len(lines)) if lines[place].strip()), len(lines))
        if following > end:
            # An item goes on after blank lines if what follows them is indented.
            if not item or following == len(lines) or not lines[following].startswith((" ", "\t")):
                return end
            end = following
        elif _ITEM.match(lines[end]) or _HEADING.match(lines[end]):
            return end
        end += 1
    return end
