"""The file of mem0: what `get_all` or an export of it returned, as memories of ours."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect import checks
from recollect.errors import Invalid
from recollect.flows.chat_ids import refuse_stored_chat
from recollect.identifiers import uuid_of
from recollect.language.sameness import gist
from recollect.memory.memories import CATEGORIES, Identity, MemoryScope

# Where the list of memories stands if the file is an object.
_LISTS = ("results", "memories")

# mem0's own categories are topics. Two of them say what sort of memory it is; the others stay in the metadata.
_CATEGORIES = {"user_preferences": "preference", "milestones": "episodic"}
_DEFAULT_CATEGORY = "fact"

# What has a place of its own here, or is of one answer only.
_PLACED = {"id", "memory", "user_id", "agent_id", "run_id", "metadata", "created_at", "updated_at", "score", "hash"}


@dataclass(frozen=True, slots=True)
class Mem0Memory:
    """A memory as our records are, with the first entry of its history."""

    place: str
    fields: dict[str, Any]
    history: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BadMemory:
    """What cannot be taken over."""

    place: str
    reason: str


def parse(content: bytes, user_id: str | None, now: datetime) -> Iterator[Mem0Memory | BadMemory]:
    """Every memory of a file; one that names nobody belongs to `user_id`, one without a time came about now."""
    for number, entry in enumerate(_entries(content), 1):
        place = f"record {number}"
        try:
            yield _memory(place, entry, user_id, now)
        except Invalid as problem:
            yield BadMemory(place, str(problem))


def _entries(content: bytes) -> list[Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise Invalid(f"The file is not JSON: {checks.json_fault(problem)}") from problem
    if isinstance(found, dict):
        found = next((found[name] for name in _LISTS if name in found), None)
    if not isinstance(found, list):
        raise Invalid('The file is not a mem0 export: it must be a JSON array, or an object with "results"')
    return found


def _memory(place: str, entry: Any, user_id: str | None, now: datetime) -> Mem0Memory:
    if not isinstance(entry, dict):
        raise Invalid("the memory is not a JSON object")
    text = checks.text(entry.get("memory"), "memory")  # type: ignore[arg-type]  # the check refuses what is not text
    holder = _holder(entry, user_id)
    category = _category(entry)
    identity = "\\x" + Identity.of(holder, category, gist(text)).digest.hex()
    memory_id = _id(entry, holder, text)
    created_at = _moment(entry, "created_at") or now
    metadata = _metadata(entry)
    fields = {
        "id": memory_id,
        "text": text,
        "category": category,
        "user_id": holder.user_id,
        "agent_id": holder.agent_id,
        "session_id": holder.session_id,
        "metadata": metadata,
        "identity": identity,
        "origin": identity,
        "superseded_by": None,
        "created_at": created_at.isoformat(),
        "updated_at": _text_of(_moment(entry, "updated_at")),
    }
    return Mem0Memory(place, fields, _history(memory_id, text, holder, created_at))


def _history(memory_id: str, text: str, holder: MemoryScope, at: datetime) -> dict[str, Any]:
    return {
        "memory_id": memory_id,
        "number": 1,
        "id": str(uuid_of("mem0", memory_id, "create")),
        "event": "create",
        "old_memory": None,
        "new_memory": text,
        "at": at.isoformat(),
        "user_id": holder.user_id,
        "session_id": holder.session_id,
    }


def _holder(entry: Mapping[str, Any], user_id: str | None) -> MemoryScope:
    named = [entry.get("user_id"), entry.get("agent_id"), entry.get("run_id")]
    if not any(named):
        if user_id is None:
            raise Invalid("the memory has no user_id, agent_id or run_id: name an owner with --user")
        named[0] = user_id
    for value, name in zip(named, ("user_id", "agent_id", "run_id"), strict=True):
        if value:
            checks.identifier(value, name)
    if named[2]:
        refuse_stored_chat(named[2])
    return MemoryScope(*(value or None for value in named))


def _category(entry: Mapping[str, Any]) -> str:
    metadata = entry.get("metadata")
    own = metadata.get("category") if isinstance(metadata, dict) else None
    listed = entry.get("categories")
    for name in [own, *(listed if isinstance(listed, list) else [])]:
        if isinstance(name, str) and (name in CATEGORIES or name in _CATEGORIES):
            return _CATEGORIES.get(name, name)
    return _DEFAULT_CATEGORY


def _id(entry: Mapping[str, Any], holder: MemoryScope, text: str) -> str:
    """Its own if that is a UUID, otherwise one that is the same whenever the file comes."""
    own = entry.get("id")
    try:
        return str(UUID(own))
    except (TypeError, ValueError, AttributeError):
        parts = [holder.user_id, holder.agent_id, holder.session_id, own if own is not None else text]
        return str(uuid_of("mem0", json.dumps(parts)))


def _metadata(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's, and under "mem0" what else there was to say."""
    metadata = entry.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise Invalid("metadata must be a JSON object")
    rest = {name: value for name, value in entry.items() if name not in _PLACED and value not in (None, [], {}, "")}
    together = {**metadata, "mem0": rest} if rest else metadata
    checks.metadata(together)
    return together


def _moment(entry: Mapping[str, Any], name: str) -> datetime | None:
    value = entry.get(name)
    if value is None:
        return None
    try:
        return checks.utc(datetime.fromisoformat(value), name)
    except (TypeError, ValueError) as problem:
        raise Invalid(f"{name} is not a time such as 2024-05-01T12:00:00Z: {value!r}") from problem


def _text_of(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
