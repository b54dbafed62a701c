"""Limits: what a key that is for one user or one agent may run and see; a statement that does not say why is refused.

A statement says it in a comment, by the names of its values or columns, first the user's, then the agent's:

    -- Limit given owner, agent_id     these values must be the key's; `-` stands for one that another line covers
    -- Limit found user_id, agent_id   rows of others are left out, or refused if the statement writes
    -- Limit found_in session_id       rows of sessions of others are left out
    -- Limit session session_id        this value names sessions of the key's, or such as there are not
    -- Limit memory memory_id          this value names memories of the key's, or past versions of them
    -- Limit seen ids                  these were brought by a limited statement of the same file, in the same request
    -- Limit none: why                 it tells nothing of anybody
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from recollect.errors import Forbidden
from recollect.origin import Limits, beyond
from recollect.storage.sql import Limit, Queries, Query

Rows = Sequence[Any]
Fetch = Callable[[Query, Mapping[str, object]], Awaitable[Rows]]

_MEMORY = "memory"

# Whose ids are in the rows of the statements of a file. Passages are written by one and found by others.
_KIND_OF = {"memories": _MEMORY, "log": "message"} | dict.fromkeys(("passages", "search", "giants"), "passage")

# The id of a past version begins with that of its memory.
_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class _Sql(Queries, file="limited.sql"):
    sessions: Query
    memories: Query


async def run(query: Query, values: Mapping[str, object], limits: Limits, fetch: Fetch) -> Rows:
    """The rows of a statement that are within the limits of the caller's key."""
    if not query.limits:
        raise Forbidden(beyond(limits))
    kind = _KIND_OF.get(query.name.partition(".")[0])
    for limit in query.limits:
        if not await _allows(limit, kind, values, limits, fetch):
            raise Forbidden(beyond(limits))
    rows = await fetch(query, values)
    for limit in query.limits:
        within = await _within(limit, rows, limits, fetch)
        if len(within) < len(rows) and query.role != "read":
            raise Forbidden(beyond(limits))
        rows = within
    if kind is not None and all(limit.how != "none" for limit in query.limits):
        limits.seen.update((kind, str(row["id"])) for row in rows if row.get("id") is not None)
    return rows


async def _allows(limit: Limit, kind: str | None, values: Mapping[str, object], limits: Limits, fetch: Fetch) -> bool:
    """Whether the values of a statement are within limits."""
    if limit.how == "given":
        names = (*limit.names, None)[:2]
        return all(
            only is None or name == "-" or (name is not None and set(listed(values[name])) <= {only})
            for only, name in zip((limits.user, limits.agent), names, strict=True)
        )
    if limit.how not in ("seen", "session", "memory"):
        return True
    ids = [str(value) for value in listed(values[limit.names[0]]) if value is not None]
    if limit.how == "session":
        rows = await fetch(_Sql.sessions, {"ids": ids})
        return all(limits.cover(row["user_id"], row["agent_id"]) for row in rows)
    if limit.how == "seen":
        return {(kind, each) for each in ids} <= limits.seen
    found = [_UUID.match(each) for each in ids]
    named = {(_MEMORY, each[0]) for each in found if each is not None}
    if unseen := named - limits.seen:
        rows = await fetch(_Sql.memories, {"ids": [each for _, each in unseen]})
        limits.seen.update((_MEMORY, row["id"]) for row in rows if limits.cover(row["user_id"], row["agent_id"]))
    return None not in found and named <= limits.seen


async def _within(limit: Limit, rows: Rows, limits: Limits, fetch: Fetch) -> Rows:
    """Those of some rows that are within limits."""
    if limit.how == "found":
        user, agent = (*limit.names, None)[:2]
        return [row for row in rows if limits.cover(row[user], None if agent is None else row[agent])]
    if limit.how == "found_in" and rows:
        (column,) = limit.names
        held = await fetch(_Sql.sessions, {"ids": sorted({row[column] for row in rows})})
        own = {row["id"] for row in held if limits.cover(row["user_id"], row["agent_id"])}
        return [row for row in rows if row[column] in own]
    return rows


def listed(value: object) -> list[object]:
    """A value that may be several, as a list."""
    return list(value) if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str) else [value]
