"""How mem0's memories, metadata and filters look here, and the other way round."""

import hashlib
import warnings
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from recollect.checks import moment
from recollect.errors import Invalid

IDS = {"user_id": "user_id", "agent_id": "agent_id", "run_id": "session_id"}
"""mem0's ids, and what they are called here."""
CATEGORIES = ("semantic", "episodic", "fact", "preference")

# What a caller's metadata must not say, because the ids and names say it.
_IDENTITY = {*IDS, "actor_id"}
# Keys of metadata that mean something of their own here: a caller's are stored under another name.
_TAKEN = {"category", "superseded_by", "speaker"}
_RENAMED = {f"mem0_{name}": name for name in _TAKEN}
# What mem0 shows beside the metadata.
_PROMOTED = ("role", "attributed_to", "expiration_date")
_EVENTS = {"create": "ADD", "undo": "ADD", "update": "UPDATE", "delete": "DELETE", "supersede": "DELETE"}


def identifier(value: Any, name: str) -> str:
    """An id as mem0 takes it: numbers become text, and white space inside is refused."""
    trimmed = str(value).strip()
    if not trimmed:
        raise Invalid(f"Invalid {name}: cannot be empty or whitespace-only. Provide a valid identifier.")
    if any(letter.isspace() for letter in trimmed):
        raise Invalid(f"Invalid {name}: cannot contain whitespace. Provide a valid identifier without spaces.")
    return trimmed


def scope_of(user_id: Any, agent_id: Any, run_id: Any) -> dict[str, str]:
    """The ids that were given, as they are called here."""
    given = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
    return {IDS[name]: identifier(value, name) for name, value in given.items() if value is not None}


def stored_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """A caller's metadata as it is stored; ids in it are ignored, as mem0 does."""
    if metadata is not None and not isinstance(metadata, Mapping):
        raise Invalid(f"metadata must be a dict, not {type(metadata).__name__}")
    given = dict(metadata or {})
    for name in _IDENTITY & given.keys():
        warnings.warn(f"metadata[{name!r}] is ignored: ids cannot be set through metadata", stacklevel=2)
        given.pop(name)
    return {_key_of(name): value for name, value in given.items()}


def _key_of(name: str) -> str:
    """The name under which metadata of that name is stored."""
    return f"mem0_{name}" if name in _TAKEN else name


def chat(messages: Any) -> list[dict[str, Any]]:
    """What was said; messages of the system and those without text are left out, as mem0 does."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    elif isinstance(messages, Mapping):
        messages = [messages]
    elif not isinstance(messages, list):
        raise Invalid("messages must be str, dict, or list[dict]")
    said = []
    for message in messages:
        if not isinstance(message, Mapping) or message.get("role") is None or message.get("content") is None:
            warnings.warn(f"A message without role and content is left out: {message!r}", stacklevel=2)
        elif message["role"] != "system":
            content = message["content"]
            named = {"name": str(message["name"])} if message.get("name") else {}
            said.append({"role": str(message["role"]), "content": content, **named})
    return said


def expiry(expiration_date: Any) -> str | None:
    """A date as mem0 writes it."""
    if expiration_date is None:
        return None
    if isinstance(expiration_date, datetime):
        return expiration_date.date().isoformat()
    try:
        return (
            expiration_date if isinstance(expiration_date, date) else date.fromisoformat(expiration_date)
        ).isoformat()
    except (TypeError, ValueError) as problem:
        raise Invalid("expiration_date must be a valid date in YYYY-MM-DD format") from problem


def valid_until(expires: str | None) -> str | None:
    """When a memory is over that is shown for the last time on a day."""
    if expires is None:
        return None
    return datetime.combine(date.fromisoformat(expires) + timedelta(days=1), time(), UTC).isoformat()


def said_at(timestamp: Any) -> str | None:
    """When it was said: seconds since 1970, a datetime, or text as ISO 8601 has it."""
    if timestamp is None:
        return None
    try:
        if isinstance(timestamp, int | float):
            return datetime.fromtimestamp(timestamp, UTC).isoformat()
        return (timestamp if isinstance(timestamp, datetime) else moment(timestamp)).isoformat()
    except (TypeError, ValueError, OverflowError) as problem:
        raise Invalid(f"timestamp must be seconds since 1970, a datetime or ISO 8601, not {timestamp!r}") from problem


def memory_item(memory: Mapping[str, Any], *, with_score: bool = True) -> dict[str, Any]:
    """A memory as mem0 shows it."""
    stored = dict(memory["metadata"])
    stored.pop("category", None)
    speaker = stored.pop("speaker", None)
    promoted = {name: stored.pop(name) for name in _PROMOTED if name in stored}
    ids = {name: memory[ours] for name, ours in IDS.items() if memory[ours] is not None}
    metadata = {_RENAMED.get(name, name): value for name, value in stored.items()}
    return {
        "id": memory["id"],
        "memory": memory["memory"],
        "hash": hashlib.md5(memory["memory"].encode(), usedforsecurity=False).hexdigest(),
        "metadata": metadata or None,
        **({"score": memory["score"]} if with_score else {}),
        "created_at": memory["created_at"],
        "updated_at": memory["updated_at"] or memory["created_at"],
        **ids,
        **({} if speaker is None else {"actor_id": speaker}),
        **promoted,
    }


def history_item(entry: Mapping[str, Any], created_at: str, memory: Mapping[str, Any]) -> dict[str, Any]:
    """Something that happened to a memory, as mem0 tells it."""
    event = _EVENTS.get(entry["event"], "DELETE")
    return {
        "id": entry["id"],
        "memory_id": entry["memory_id"],
        "old_memory": entry["old_memory"],
        "new_memory": entry["new_memory"],
        "event": event,
        "created_at": created_at,
        "updated_at": entry["timestamp"],
        "is_deleted": event == "DELETE",
        "actor_id": memory.get("actor_id"),
        "role": memory.get("role"),
    }


def merge_patch(old: Any, new: Mapping[str, Any]) -> dict[str, Any]:
    """What turns one JSON object into the other by RFC 7396; mem0 replaces values whole."""
    before = old if isinstance(old, Mapping) else {}
    patch: dict[str, Any] = dict.fromkeys(before.keys() - new.keys())
    for name, value in new.items():
        patch[name] = merge_patch(before.get(name), value) if isinstance(value, Mapping) else value
    return patch


def asked(filters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Filters of mem0 as fields of a search here: ids, times, and conditions on the metadata."""
    fields: dict[str, Any] = {}
    where: list[dict[str, Any]] = []
    for name, value in _conditions(filters or {}):
        if name in IDS:
            given = identifier(value, name)
            if fields.setdefault(IDS[name], given) != given:
                raise Invalid(f"filters name two values of {name}: a memory has one")
        elif name == "created_at":
            fields |= _times(value)
        elif value != "*":
            where.append(_condition(name, value))
    if not any(name in fields for name in IDS.values()):
        raise Invalid(
            "filters must contain at least one of: user_id, agent_id, run_id. Example: filters={'user_id': 'u1'}."
        )
    return fields | ({"where": {"AND": where}} if where else {})


def _conditions(filters: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every condition that must hold."""
    if not isinstance(filters, Mapping):
        raise Invalid(f"filters must be a dict, not {type(filters).__name__}")
    for name, value in filters.items():
        if name == "AND":
            if not isinstance(value, list):
                raise Invalid("AND operator requires a list of conditions")
            for each in value:
                yield from _conditions(each)
        else:
            yield name, value


def _condition(name: str, value: Any) -> dict[str, Any]:
    """One condition as the server takes it; mem0's wildcard is one that any memory meets."""
    if name in ("AND", "OR", "NOT"):
        if not isinstance(value, list) or not value or not all(isinstance(each, Mapping) for each in value):
            raise Invalid(f"{name} operator requires a non-empty list of conditions")
        return {name: [{"AND": [_condition(*item) for item in each.items()]} for each in value]}
    if name in IDS or name == "created_at":
        raise Invalid(f"{name} in filters must hold for all results: it cannot stand in OR or NOT")
    if value == "*":
        value = {"nin": []}
    ours = "speaker" if name == "actor_id" else _key_of(name)
    return {ours: {"in": value} if isinstance(value, list) else value}


def _times(value: Any) -> dict[str, Any]:
    """The bounds of `created_at`; bounds are inclusive here."""
    bounds = {"gte": ("since", 0), "gt": ("since", 1), "lte": ("until", 0), "lt": ("until", -1)}
    if not isinstance(value, Mapping) or not value.keys() <= bounds.keys():
        raise Invalid("created_at in filters takes gt, gte, lt and lte, each with a time as ISO 8601 has it")
    found = {}
    for operator, given in value.items():
        name, step = bounds[operator]
        found[name] = (moment(given) + timedelta(microseconds=step)).isoformat()
    return found
