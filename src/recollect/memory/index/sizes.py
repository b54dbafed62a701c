"""Sizes: how much a namespace holds of each kind and how fast it grows, without reading millions of rows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any

from recollect.storage.database import Statements
from recollect.storage.sql import Queries, Query

# So many are counted; of more, the planner's estimate is good enough.
COUNTED = 100_000

# The kinds of memory, and the tables that hold them: the first has one row for each.
TABLES: dict[str, tuple[str, ...]] = {
    "messages": ("messages",),
    "sessions": ("sessions", "summaries"),
    "documents": ("documents",),
    "memories": ("memories", "memory_history"),
    "insights": ("insights",),
    "episodes": ("episodes",),
    "working_memory": ("working_items", "stale_items"),
    "resources": ("resources",),
    "graph_nodes": ("graph_nodes",),
    "graph_edges": ("graph_edges",),
    "passages": ("passages", "passage_words", "passage_queue", "term_stats"),
    "vectors": ("passage_vectors",),
}
PERIODS = ("minute", "hour", "day")


class _Sql(Queries, file="sizes.sql"):
    counts: Query


# The same statement, planned and not run: the plan says how many rows each part would have without its limit.
_ESTIMATES = replace(_Sql.counts, name="sizes.estimates", text=f"explain (format json)\n{_Sql.counts.text}")


@dataclass(frozen=True, slots=True)
class Count:
    """How many; not exact above the bound."""

    rows: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Counts:
    """What a namespace holds, the messages that came in the last minute, hour and day, and who may come in."""

    memory: dict[str, Count]
    messages: dict[str, Count]
    keys: Count
    users: Count


class Sizes:
    """Counts; what is much, and what to do then, is the flow's to say."""

    async def counts(self, db: Statements) -> Counts:
        """Everything in one statement, and one more if something is large."""
        found = [row["rows"] for row in await db.all(_Sql.counts, limit=COUNTED + 1)]
        counts = [Count(rows, exact=True) for rows in found]
        if max(found) > COUNTED:
            estimates = await self._estimates(db)
            counts = [
                count if count.rows <= COUNTED else Count(max(about, count.rows), exact=False)
                for count, about in zip(counts, chain(estimates, repeat(0)), strict=False)
            ]
        *rest, keys, users = counts
        memory, messages = rest[: len(TABLES)], rest[len(TABLES) :]
        return Counts(
            dict(zip(TABLES, memory, strict=True)), dict(zip(PERIODS, messages, strict=True)), keys=keys, users=users
        )

    async def _estimates(self, db: Statements) -> list[int]:
        (plan,) = (await db.one(_ESTIMATES, limit=COUNTED + 1))[0]
        # On Citus the plan is one node that says nothing: then the bound is what is known.
        return [max(_rows_below_limit(part)) for part in plan["Plan"].get("Plans", ())]


def _rows_below_limit(node: dict[str, Any], below: bool = False) -> Iterator[int]:
    """What the nodes of a part expect to give; those above its limit are left out."""
    yield int(node["Plan Rows"]) if below else 0
    for child in node.get("Plans", ()):
        yield from _rows_below_limit(child, below or node["Node Type"] == "Limit")
