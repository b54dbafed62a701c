"""mem0's methods as requests to the REST door, each of which is sent its answer."""

import json
import warnings
from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from recollect.adapters import mem0_shapes as shapes
from recollect.errors import Invalid, NotFound

MAX_LISTED = 1000
"""Memories in one answer of the server; a search has no more."""
PROCEDURAL = "procedural_memory"
DEGRADED = "X-Recollect-Degraded"
NEXT_CURSOR = "X-Next-Cursor"
NO_MODEL = (
    "Recollect has no language model that could extract facts, so each message is stored as it is: set RECOLLECT_LLM, "
    "or pass infer=False"
)
UNSET = object()

_EVENTS = {"created": "ADD", "merged": "UPDATE"}

Result = TypeVar("Result")


class MemoryNotFound(NotFound, ValueError):
    """There is no such memory; mem0 raises a ValueError."""


class Request(NamedTuple):
    """One call of a route; with `header`, the answer comes with that header."""

    method: str
    path: str = "/ltm/memories"
    ids: tuple[str, ...] = ()
    json: Any = None
    params: Mapping[str, Any] | None = None
    header: str | None = None

    def options(self) -> dict[str, Any]:
        """What a connection takes besides the route and the ids."""
        return {"json": self.json, "params": self.params, "header": self.header}


Steps = Generator[Request, Any, Result]


def _now(show_expired: bool) -> dict[str, str]:
    return {} if show_expired else {"valid_at": datetime.now(UTC).isoformat()}


def add(
    messages: Any,
    scope: dict[str, str],
    metadata: dict[str, Any] | None,
    timestamp: Any,
    expiration_date: Any,
    infer: bool,
    memory_type: str | None,
    instructions: str | None,
) -> Steps[dict[str, Any]]:
    """Store the facts in what was said, or each message."""
    if not scope:
        raise Invalid("At least one of 'user_id', 'agent_id', or 'run_id' must be provided")
    if memory_type not in (None, PROCEDURAL):
        raise Invalid(f"Invalid 'memory_type'. Please pass {PROCEDURAL} to create procedural memories.")
    expires = shapes.expiry(expiration_date)
    stored = shapes.stored_metadata(metadata) | ({} if expires is None else {"expiration_date": expires})
    said = shapes.chat(messages)
    if memory_type == PROCEDURAL and "agent_id" in scope:
        warnings.warn("Recollect stores a procedural memory as it was said, without a summary", stacklevel=2)
        lines = [f"{line['role']}: {line['content']}" for line in said]
        said, infer = [{"role": "user", "content": "\n".join(lines)}], False
        stored["memory_type"] = PROCEDURAL
    if not said:
        return {"results": []}
    category = (metadata or {}).get("category")
    body = scope | {
        "messages": said,
        "metadata": stored,
        "verbatim": not infer,
        "category": category if category in shapes.CATEGORIES else "fact",
        "instructions": instructions,
        "at": shapes.said_at(timestamp),
        "valid_until": shapes.valid_until(expires),
    }
    added = yield Request("POST", "/ltm/memories/facts", json=body)
    if infer and added["method"] == "verbatim":
        warnings.warn(added["degraded"] or NO_MODEL, stacklevel=2)
    return {"results": _added(added, infer)}


def _added(added: Mapping[str, Any], infer: bool) -> list[dict[str, Any]]:
    """What became of the messages, as mem0 tells it."""
    results = []
    for memory in added["results"]:
        item, event = shapes.memory_item(memory), _EVENTS.get(memory["outcome"], "NONE")
        told = {"actor_id": item.get("actor_id"), "role": item["role"]} if added["method"] == "verbatim" else {}
        # What is known already is no result of mem0's extraction, but one of storing messages.
        if not infer or event != "NONE":
            results.append({"id": item["id"], "memory": item["memory"], "event": event, **told})
    return results


def search(query: str, top_k: int, filters: Any, threshold: float | None, show_expired: bool) -> Steps[dict[str, Any]]:
    """The memories that answer a question, best first."""
    _check_numbers(top_k, threshold)
    if not isinstance(query, str) or not query.strip():
        raise Invalid("Invalid query: cannot be empty or whitespace-only")
    asked = shapes.asked(filters) | _now(show_expired) | {"query": query.strip()}
    least = 0.1 if threshold is None else threshold
    limit, kept = min(top_k, MAX_LISTED), list[Any]()
    while limit:
        body = asked | {"limit": limit}
        found, degraded = yield Request("POST", "/ltm/memories/search", json=body, header=DEGRADED)
        if degraded:
            warnings.warn(degraded, stacklevel=2)
        kept = [memory for memory in found["results"] if memory["score"] >= least][:top_k]
        # They come in the order of recall, not of this score: behind those below the threshold there may be others.
        if len(kept) >= top_k or len(found["results"]) < limit or limit == MAX_LISTED:
            break
        limit = min(MAX_LISTED, limit * 10)
    return {"results": list(map(shapes.memory_item, kept))}


def get_all(filters: Any, top_k: int, show_expired: bool) -> Steps[dict[str, Any]]:
    """The memories of a scope, newest first."""
    _check_numbers(top_k)
    asked = shapes.asked(filters) | _now(show_expired)
    if "where" in asked:
        asked["where"] = json.dumps(asked["where"])
    found: list[Any] = []
    cursor = None
    while len(found) < top_k:
        params = asked | {"limit": min(top_k - len(found), MAX_LISTED), "cursor": cursor}
        page, cursor = yield Request("GET", params=params, header=NEXT_CURSOR)
        found += page["results"]
        if cursor is None:
            break
    return {"results": [shapes.memory_item(memory, with_score=False) for memory in found]}


def get(memory_id: Any) -> Steps[dict[str, Any] | None]:
    """One memory, or None."""
    try:
        memory = yield Request("GET", "/ltm/memories/{}", (str(memory_id),))
    except NotFound:
        return None
    return shapes.memory_item(memory)


def update(
    memory_id: Any, text: str | None, metadata: dict[str, Any] | None, expiration_date: Any
) -> Steps[dict[str, Any]]:
    """Change a memory."""
    if text is None and metadata is None and expiration_date is UNSET:
        raise Invalid("At least one of text, metadata, or expiration_date must be provided")
    body: dict[str, Any] = {} if text is None else {"data": text}
    new = shapes.stored_metadata(metadata)
    if expiration_date is not UNSET:
        new["expiration_date"] = shapes.expiry(expiration_date)
        body["valid_until"] = shapes.valid_until(new["expiration_date"])
    try:
        if new:
            old = (yield Request("GET", "/ltm/memories/{}", (str(memory_id),)))["metadata"]
            old.pop("category")
            body["metadata"] = shapes.merge_patch(old, old | new)
        if body:
            yield Request("PATCH", "/ltm/memories/{}", (str(memory_id),), body)
    except NotFound as problem:
        raise MemoryNotFound(f"Memory with id {memory_id} not found. Please provide a valid 'memory_id'.") from problem
    return {"message": "Memory updated successfully!"}


def delete(memory_id: Any) -> Steps[dict[str, Any]]:
    """Delete one memory."""
    try:
        yield Request("DELETE", "/ltm/memories/{}", (str(memory_id),))
    except NotFound as problem:
        raise MemoryNotFound(f"Memory with id {memory_id} not found") from problem
    return {"message": "Memory deleted successfully!"}


def delete_all(scope: dict[str, str]) -> Steps[dict[str, Any]]:
    """Delete the memories of a scope."""
    if not scope:
        raise Invalid(
            "At least one filter is required to delete all memories. If you want to delete all memories, use the "
            "`reset()` method."
        )
    yield Request("DELETE", params=scope)
    return {"message": "Memories deleted successfully!"}


def history(memory_id: Any) -> Steps[list[dict[str, Any]]]:
    """What happened to a memory."""
    try:
        entries = (yield Request("GET", "/ltm/memories/{}/history", (str(memory_id),)))["entries"]
    except NotFound:
        return []
    memory = (yield from get(memory_id)) or {}
    return [shapes.history_item(entry, entries[0]["timestamp"], memory) for entry in entries]


def reset() -> Steps[None]:
    """Delete all memories."""
    yield Request("DELETE", params={"everybody": True})


def options(
    kwargs: dict[str, Any],
    method: str,
    top_k: int,
    *,
    rerank: bool = False,
    explain: bool = False,
    reference_date: Any = None,
) -> int:
    """How many results are wanted; refuses what mem0 refuses, and tells what has no effect."""
    if named := shapes.IDS.keys() & kwargs.keys():
        raise Invalid(
            f"Top-level entity parameters {named} are not supported in {method}(). "
            "Use filters={'user_id': '...'} instead."
        )
    if reference_date is not None:
        raise Invalid("reference_date is not supported, nor is it by mem0 outside its platform: filter by created_at")
    wanted: int = kwargs.pop("limit", top_k)
    without_effect = [*kwargs, *(name for name, on in (("rerank", rerank), ("explain", explain)) if on)]
    if without_effect:
        warnings.warn(f"{', '.join(without_effect)} has no effect on a search in Recollect", stacklevel=3)
    return wanted


def _check_numbers(top_k: Any, threshold: Any = None) -> None:
    if threshold is not None and (not isinstance(threshold, int | float) or not 0 <= threshold <= 1):
        raise Invalid(f"Invalid threshold: {threshold}. Must be between 0 and 1 (inclusive).")
    if not isinstance(top_k, int) or isinstance(top_k, bool) or top_k < 0:
        raise Invalid(f"Invalid top_k: {top_k}. Must be a non-negative integer.")
