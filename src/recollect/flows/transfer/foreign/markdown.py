"""A folder of Markdown notes, such as a vault of Obsidian: notes, their tags, and the links between them."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from itertools import islice
from typing import Any
from urllib.parse import unquote

from recollect import checks
from recollect.errors import Invalid
from recollect.flows.transfer.foreign.pieces import LeftOut, Note, Piece, Refused, Text, iso_moment, title_of
from recollect.flows.transfer.foreign.sources import Member, Reading, Source
from recollect.flows.transfer.import_report import Progress

FORMAT = "markdown"

MAX_LINKS = 1_000

# A note of a longer name is refused.
MAX_NAME = checks.MAX_IDENTIFIER_CHARACTERS

OTHER_FILES = "files that are not Markdown: {}"
EMPTY = "empty notes"
UNKNOWN_LINKS = "links to what is not a note of the folder"
MANY_LINKS = f"links beyond the first {MAX_LINKS:,} of a note"
FRONT_MATTER = "fields of front matter that are more than a value or a list"

_SUFFIXES = (".md", ".markdown")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"([\w-][\w -]*):(?:[ \t](.*))?")
_LIST_ITEM = re.compile(r"[ \t]*-[ \t](.*)")
_INLINE_CODE = re.compile(r"`[^`]*`")
_FENCES = ("```", "~~~")
_WIKI_LINK = re.compile(r"\[\[([^\[\]|#^\n]{1,300})(?:[|#^][^\[\]\n]{0,500})?\]\]")
_LINK = re.compile(r"\]\(<?([^()<>\s#]{1,300}\.(?:md|markdown))(?:#[^()<>\s]{0,300})?>?\)", re.IGNORECASE)
_TAG = re.compile(r"(?<![\w#/&])#([^\W\d_][\w/-]{0,100}|\d[\w/-]*[^\W\d_][\w/-]{0,100})")
_DATES = ("date", "created", "created_at", "updated", "modified")

Fields = Mapping[str, Any]


def wanted(source: Source) -> list[Member]:
    """The notes."""
    return [member for member in source.members if member.name.lower().endswith(_SUFFIXES)]


def read(source: Source, user_id: str, progress: Progress, owner: str | None = None) -> Iterator[Piece]:
    """Every note as a text, and as a node with edges to those that it links to."""
    notes = wanted(source)
    folder = _Folder(notes)
    for member in source.members:
        if not member.name.lower().endswith(_SUFFIXES):
            yield LeftOut(member.name, OTHER_FILES.format(posixpath.splitext(member.name)[1].lower() or "no suffix"))
    for member in notes:
        if member.size > checks.MAX_TEXT_BYTES:
            yield Refused(member.name, f"the note is larger than the limit of {checks.MAX_TEXT_MEGABYTES} MB")
            continue
        try:
            with member.open() as file:
                content = Reading(file, progress).read()
            yield from _note_pieces(source, folder, member, content.decode("utf-8-sig"), owner)
        except OSError as problem:
            yield Refused(member.name, f"the note cannot be read: {problem.strerror}")
        except UnicodeDecodeError:
            yield Refused(member.name, "the note is not UTF-8")
        except Invalid as problem:
            yield Refused(member.name, str(problem))


class _Folder:
    """Which note a link means: by its path, or by its name if only one has it."""

    def __init__(self, notes: list[Member]) -> None:
        self._paths: dict[str, list[str]] = {}
        self._files: dict[str, str] = {}
        for member in notes:
            path = _bare(member.name)
            self._files[path] = member.name
            for name in {path.lower(), path.rpartition("/")[2].lower()}:
                self._paths.setdefault(name, []).append(path)

    def node(self, path: str) -> str:
        """The name of a note's node: its own name, or its path if others have that name, too."""
        name = path.rpartition("/")[2]
        return name if len(self._paths[name.lower()]) == 1 else path

    def links(self, own: str, prose: str) -> tuple[dict[str, str], int]:
        """The nodes that the note at a path links to with their files, and the number of links that lead nowhere."""
        given = [match[1] for match in _WIKI_LINK.finditer(prose)]
        given += [unquote(match[1]) for match in _LINK.finditer(prose) if "://" not in match[1]]
        targets = [self._target(link, own.rpartition("/")[0]) for link in dict.fromkeys(given)]
        nodes = {self.node(path): self._files[path] for path in targets if path is not None and path != own}
        return {name: file for name, file in nodes.items() if len(name) <= MAX_NAME}, targets.count(None)

    def _target(self, link: str, at: str) -> str | None:
        """The path that a link in the folder `at` leads to."""
        target = _bare(link.strip())
        for name in (posixpath.normpath(posixpath.join(at, target)), target.lstrip("/"), target.rpartition("/")[2]):
            if found := self._paths.get(name.lower()):
                return found[0]
        return None


def _bare(path: str) -> str:
    root, suffix = posixpath.splitext(path)
    return root if suffix.lower() in _SUFFIXES else path


def _note_pieces(source: Source, folder: _Folder, member: Member, text: str, owner: str | None) -> Iterator[Piece]:
    """One note, and what of it is left out."""
    text = text.replace("\r\n", "\n").replace("\x00", "")
    front, body, skipped = _front_matter(text)
    if skipped:
        yield LeftOut(member.name, FRONT_MATTER, skipped)
    path = _bare(member.name)
    title = title_of(front.get("title")) or path.rpartition("/")[2]
    prose = _prose_of(body)
    links, unknown = folder.links(path, prose)
    if unknown:
        yield LeftOut(member.name, UNKNOWN_LINKS, unknown)
    if len(links) > MAX_LINKS:
        yield LeftOut(member.name, MANY_LINKS, len(links) - MAX_LINKS)
    if not body.strip():
        yield LeftOut(member.name, EMPTY)
        return
    metadata: dict[str, Any] = {"source": FORMAT, "folder": source.name, "path": member.name, "title": title}
    if tags := _tags_of(front, prose):
        metadata["tags"] = tags
    if front:
        metadata["front_matter"] = front
    uri = f"markdown:{source.name}/{member.name}"
    node = checks.short_name(folder.node(path), "the name of the note")
    note = Note(node, source.name, member.name, dict(islice(links.items(), MAX_LINKS)))
    content = body.strip() if body.lstrip().lstrip("# ").startswith(title) else f"{title}\n\n{body.strip()}"
    yield Text(member.name, uri, owner, title, content, _written_at(front, member), metadata, note)


def _prose_of(body: str) -> str:
    """A text without its code."""
    kept: list[str] = []
    fence: str | None = None
    for line in body.splitlines():
        mark = line.lstrip()[:3]
        if fence is not None:
            fence = None if mark == fence else fence
        elif mark in _FENCES:
            fence = mark
        else:
            kept.append(_INLINE_CODE.sub(" ", line))
    return "\n".join(kept)


def _tags_of(front: Fields, prose: str) -> list[str]:
    """The tags of a note, in order."""
    listed = front.get("tags", front.get("tag", []))
    if isinstance(listed, str):
        listed = re.split(r"[,\s]+", listed)
    return sorted({tag.lstrip("#") for tag in [*listed, *_TAG.findall(prose)] if tag.lstrip("#")})


def _written_at(front: Fields, member: Member) -> datetime | None:
    """When it was written, by its own word, or else when the file was changed."""
    for name in _DATES:
        if isinstance(value := front.get(name), str):
            if at := iso_moment(value):
                return at
            try:
                day = date.fromisoformat(value)
            except ValueError:
                continue
            return datetime(day.year, day.month, day.day, tzinfo=UTC)
    return None if member.changed_at is None else datetime.fromtimestamp(member.changed_at, UTC)


def _front_matter(text: str) -> tuple[dict[str, Any], str, int]:
    """The fields at the head of a note that are a value or a list, the rest of the note, and how many others there are.

    Nested fields would need a parser of YAML, and notes hardly have any.
    """
    head = _FRONT_MATTER.match(text)
    if head is None:
        return {}, text, 0
    fields: dict[str, Any] = {}
    skipped: set[str] = set()
    name = ""
    for line in head[1].splitlines():
        if field := _FIELD.fullmatch(line):
            name = field[1]
            fields[name] = _front_value((field[2] or "").strip()) or []
        elif (item := _LIST_ITEM.fullmatch(line)) and isinstance(listed := fields.get(name), list):
            listed.append(_unquoted(item[1].strip()))
        elif line.strip() and not line.lstrip().startswith("#"):
            skipped.add(name)
            fields.pop(name, None)
    return {name: value for name, value in fields.items() if value}, text[head.end() :], len(skipped)


def _front_value(text: str) -> str | list[str]:
    """A value or a list."""
    if text.startswith("[") and text.endswith("]"):
        return [item for part in text[1:-1].split(",") if (item := _unquoted(part.strip()))]
    return _unquoted(text)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
