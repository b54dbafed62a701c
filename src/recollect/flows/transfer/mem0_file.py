"""The file of mem0: what `get_all` or an export of it returned, as memories of ours."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect import checks, trust
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

# Names in a caller's metadata that mean something of their own here; `recollect.adapters.mem0` shows them as they were.
_TAKEN = {"category", "superseded_by", "speaker"}

# What has a place of its own here, or is of one answer only.
_PLACED = {"id", "memory", "user_id", "agent_id", "run_id", "metadata", "created_at", "updated_at", "score", "hash"}


@dataclass(frozen=True, slots=True)
class Mem0Memory:
    """A memory as our records are."""

    place: str
    fields: dict[str, Any]

    @property
    def history(self) -> dict[str, Any]:
        """The first entry of its history."""
        return {
            "memory_id": self.fields["id"],
            "number": 1,
            "id": str(uuid_of("mem0", self.fields["id"], "create")),
            "event": "create",
            "old_memory": None,
            "new_memory": self.fields["text"],
            "at": self.fields["created_at"],
            "user_id": self.fields["user_id"],
            "session_id": self.fields["session_id"],
        }


@dataclass(frozen=True, slots=True)
class BadMemory:
    """What cannot be taken over."""

    place: str
    reason: str


def parse(content: bytes, user_id: str | None, now: datetime) -> Iterator[Mem0Memory | BadMemory]:
    """Every memory of a file; one without a user belongs to `user_id`, one without a time is dated now."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise Invalid(f"The file is not JSON: {checks.json_fault(problem)}") from problem
    if isinstance(found, dict):
        found = next((found[name] for name in _LISTS if name in found), None)
    if not isinstance(found, list):
        raise Invalid('The file is not a mem0 export: it must be a JSON array, or an object with "results"')
    for number, entry in enumerate(found, 1):
        place = f"record {number}"
        try:
            yield _memory(place, entry, user_id, now)
        except Invalid as problem:
            yield BadMemory(place, str(problem))


def _memory(place: str, entry: Any, user_id: str | None, now: datetime) -> Mem0Memory:
    if not isinstance(entry, dict):
        raise Invalid("the memory is not a JSON object")
    text = checks.text(entry.get("memory"), "memory")  # type: ignore[arg-type]  # the check refuses what is not text
    scope = _scope(entry, user_id)
    category = _category(entry)
    identity = "\\x" + Identity.of(scope, category, gist(text)).digest.hex()
    own_id = entry.get("id")
    try:
        memory_id = str(UUID(own_id))
    except (TypeError, ValueError, AttributeError):
        # One that is the same whenever the file comes.
        parts = [scope.user_id, scope.agent_id, scope.session_id, text if own_id is None else own_id]
        memory_id = str(uuid_of("mem0", json.dumps(parts)))
    created_at = _moment(entry, "created_at") or now
    updated_at = _moment(entry, "updated_at")
    fields = {
        "id": memory_id,
        "text": text,
        "category": category,
        "trust": trust.IMPORT,
        "user_id": scope.user_id,
        "agent_id": scope.agent_id,
        "session_id": scope.session_id,
        "metadata": _metadata(entry),
        "identity": identity,
        "origin": identity,
        "superseded_by": None,
        "created_at": created_at.isoformat(),
        # It is known here from now on, whatever its own date: nobody was told of it before.
        "since": now.isoformat(),
        "updated_at": None if updated_at is None else updated_at.isoformat(),
    }
    return Mem0Memory(place, fields)


def _category(entry: Mapping[str, Any]) -> str:
    """The first category of mem0's that is one of ours, or has a counterpart here."""
    own, listed = entry.get("metadata"), entry.get("categories")
    names = [own.get("category") if isinstance(own, dict) else None, *(listed if isinstance(listed, list) else [])]
    known = (_CATEGORIES.get(name, name) for name in names if isinstance(name, str))
    return next((name for name in known if name in CATEGORIES), _DEFAULT_CATEGORY)


def _metadata(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's metadata, and under "mem0" the fields that have no place here."""
    metadata = entry.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise Invalid("metadata must be a JSON object")
    metadata = {f"mem0_{name}" if name in _TAKEN else name: value for name, value in metadata.items()}
    rest = {name: value for name, value in entry.items() if name not in _PLACED and value not in (None, [], {}, "")}
    metadata = {**metadata, "mem0": rest} if rest else metadata
    checks.metadata(metadata)
    return metadata


def _scope(entry: Mapping[str, Any], user_id: str | None) -> MemoryScope:
    named = [entry.get("user_id"), entry.get("agent_id"), entry.get("run_id")]
    if not any(named):
        if user_id is None:
            raise Invalid("the memory has no user_id, agent_id or run_id: set an owner with --user")
        named[0] = user_id
    for value, name in zip(named, ("user_id", "agent_id", "run_id"), strict=True):
        if value:
            checks.identifier(value, name)
    if named[2]:
        refuse_stored_chat(named[2])
    return MemoryScope(*(value or None for value in named))


def _moment(entry: Mapping[str, Any], name: str) -> datetime | None:
    value = entry.get(name)
    if value is None:
        return None
    try:
        return checks.storable_utc(checks.moment(value), name)
    except ValueError as problem:
        raise Invalid(f"{name} is not a time such as 2024-05-01T12:00:00Z: {value!r}") from problem
