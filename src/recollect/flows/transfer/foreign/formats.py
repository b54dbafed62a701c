"""The formats of other programs: who reads each, and which of them a file seems to be in."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from recollect.errors import Invalid
from recollect.flows.transfer.foreign import chatgpt, claude, claude_code, letta, markdown
from recollect.flows.transfer.foreign.json_stream import values
from recollect.flows.transfer.foreign.pieces import Piece
from recollect.flows.transfer.foreign.sources import Heard, Member, Source, opened

# Of a file, to see what it is.
_LOOKED_AT_CHARACTERS = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Format:
    """One format: what it holds, which files of a folder are in it, and what reads them."""

    about: str
    wanted: Callable[[Source], list[Member]]
    read: Callable[[Source, str, Heard, str | None], Iterator[Piece]]
    """Takes the user that it becomes the memory of, who hears of bytes that were read, and the owner of texts."""


FORMATS = {
    chatgpt.FORMAT: Format(
        "a ChatGPT data export: the zip, its folder or conversations.json",
        chatgpt.wanted,
        lambda source, user_id, heard, _: chatgpt.read(source, user_id, heard),
    ),
    claude.FORMAT: Format(
        "a Claude data export: the zip, its folder, conversations.json or projects.json", claude.wanted, claude.read
    ),
    claude_code.FORMAT: Format(
        "session transcripts of Claude Code: a .jsonl file or a folder such as ~/.claude/projects",
        claude_code.wanted,
        lambda source, user_id, heard, _: claude_code.read(source, user_id, heard),
    ),
    markdown.FORMAT: Format(
        "Markdown notes with [[links]] and tags: an Obsidian vault, another folder or one note",
        markdown.wanted,
        markdown.read,
    ),
    letta.FORMAT: Format("a Letta agent file (.af)", letta.wanted, letta.read),
}

MEM0, MEMORY_JSON = "mem0", "memory-json"


def recognised(path: Path) -> str | None:
    """The format that a file, folder or archive seems to be in; None if that cannot be told."""
    with opened(path) as source:
        if not source.is_folder:
            return _of_file(source.members[0])
        for member in source.members:
            if member.basename.startswith("conversations") and member.basename.endswith(".json"):
                return _of_file(member)
        suffixes = [member.name.lower().rpartition(".")[2] for member in source.members]
        for suffix, name in (("af", letta.FORMAT), ("jsonl", claude_code.FORMAT), ("md", markdown.FORMAT)):
            if suffix in suffixes:
                return name
    return None


def _of_file(member: Member) -> str | None:
    if member.name.lower().endswith((".md", ".markdown")):
        return markdown.FORMAT
    try:
        with member.open() as file:
            found = next(islice((value for _, value in values(file, [()], _LOOKED_AT_CHARACTERS)), 1), None)
        if isinstance(found, dict):
            return _of_record(found)
        with member.open() as file:
            return _of_object(file.readline(_LOOKED_AT_CHARACTERS), member)
    except Invalid:
        return None


def _of_record(fields: Mapping[str, Any]) -> str | None:
    """Of the first element of an array."""
    if "mapping" in fields:
        return chatgpt.FORMAT
    if not fields.keys().isdisjoint(("chat_messages", "prompt_template", "conversations_memory")):
        return claude.FORMAT
    return MEM0 if "memory" in fields else None


def _of_object(line: bytes, member: Member) -> str | None:
    """Of a file that is an object, or a line for each."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        fields = {}
    if isinstance(fields, dict) and fields.get("type") in ("entity", "relation"):
        return MEMORY_JSON
    if isinstance(fields, dict) and "sessionId" in fields and "type" in fields:
        return claude_code.FORMAT
    if member.name.lower().endswith(".jsonl"):
        return None
    names = set(_names(member))
    if names >= {"agents", "blocks"} or "core_memory" in names:
        return letta.FORMAT
    if found := _of_record(dict.fromkeys(names)):
        return found
    return MEM0 if "results" in names else None


def _names(member: Member) -> Iterator[str]:
    with member.open() as file:
        for path, _ in values(file, [(), ("agents",), ("blocks",)], _LOOKED_AT_CHARACTERS):
            if path and isinstance(path[0], str):
                yield path[0]
