"""The formats of other programs: who reads each, and which of them a file seems to be in."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from recollect.flows.transfer.foreign import chatgpt, claude, claude_code, letta, markdown
from recollect.flows.transfer.foreign.json_stream import values
from recollect.flows.transfer.foreign.pieces import Piece
from recollect.flows.transfer.foreign.sources import Broken, Member, Source, opened
from recollect.flows.transfer.import_report import Progress

# Of a file, to see what it is.
_LOOKED_AT_CHARACTERS = 2 * 1024 * 1024
_LOOKED_AT_VALUES = 100
_OPENED = ((), ("agents",), ("agents", "*"), ("agents", "*", "messages"), ("blocks",), ("results",), ("memories",))


@dataclass(frozen=True, slots=True)
class Format:
    """One format: what it holds, which files of a folder are in it, and what reads them."""

    about: str
    wanted: Callable[[Source], list[Member]]
    read: Callable[[Source, str, Progress, str | None], Iterator[Piece]]
    """Takes the user whose memory it becomes, what to tell of the bytes that were read, and the owner of texts."""


FORMATS = {
    chatgpt.FORMAT: Format(
        "a ChatGPT data export: the zip, its folder or conversations.json",
        chatgpt.wanted,
        lambda source, user_id, progress, _: chatgpt.read(source, user_id, progress),
    ),
    claude.FORMAT: Format(
        "a Claude data export: the zip, its folder, conversations.json or projects.json", claude.wanted, claude.read
    ),
    claude_code.FORMAT: Format(
        "session transcripts of Claude Code: a .jsonl file or a folder such as ~/.claude/projects",
        claude_code.wanted,
        lambda source, user_id, progress, _: claude_code.read(source, user_id, progress),
    ),
    markdown.FORMAT: Format(
        "Markdown notes with [[links]] and tags: an Obsidian vault, another folder or one note",
        markdown.wanted,
        markdown.read,
    ),
    letta.FORMAT: Format("a Letta agent file (.af)", letta.wanted, letta.read),
}

MEM0, MEMORY_JSON = "mem0", "memory-json"


def recognised(path: Path, origin: str | None) -> str | None:
    """The format that a file, folder or archive seems to be in; None if that cannot be told.

    A folder may hold anything besides what it is named for: it counts as what it is said to be if it has any of it.
    """
    with opened(path) as source:
        if not source.is_folder:
            return _of_file(source.members[0])
        if origin in FORMATS and (wanted := FORMATS[origin].wanted(source)):
            return _of_file(wanted[0]) if wanted[0].name.endswith(".json") else origin
        for member in source.members:
            if member.basename.startswith("conversations") and member.basename.endswith(".json"):
                return _of_file(member)
        suffixes = [member.name.lower().rpartition(".")[2] for member in source.members]
        for suffix, name in (("af", letta.FORMAT), ("jsonl", claude_code.FORMAT), ("md", markdown.FORMAT)):
            if suffix in suffixes:
                return name
    return None


def _of_file(member: Member) -> str | None:
    """By the first record of an array, or the first fields of an object."""
    if member.name.lower().endswith((".md", ".markdown")):
        return markdown.FORMAT
    fields: dict[str, Any] = {}
    # What follows the first of several lines, or is damaged, is for the reader to tell.
    with suppress(Broken), member.open() as file:
        for path, value in islice(values(file, _OPENED, _LOOKED_AT_CHARACTERS), _LOOKED_AT_VALUES):
            if path and isinstance(path[0], int):
                return _of_record(value) if isinstance(value, dict) else None
            if path:
                fields.setdefault(str(path[0]), value)
    return _of_record(fields)


def _of_record(fields: Mapping[str, Any]) -> str | None:
    names, kind = fields.keys(), fields.get("type")
    if "mapping" in names:
        return chatgpt.FORMAT
    if not names.isdisjoint(("chat_messages", "prompt_template", "conversations_memory")):
        return claude.FORMAT
    if not names.isdisjoint(("agents", "core_memory")):
        return letta.FORMAT
    if "sessionId" in names or (kind == "summary" and "leafUuid" in names):
        return claude_code.FORMAT
    if kind in ("entity", "relation"):
        return MEMORY_JSON
    return None if names.isdisjoint(("memory", "results", "memories")) else MEM0
