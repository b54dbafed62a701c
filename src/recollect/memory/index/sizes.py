"""Sizes: how much a namespace holds of each kind and how fast it grows, without reading millions of rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, repeat
from typing import Any

from recollect.storage.database import Statements
from recollect.storage.sql import Queries, Query

# So many are counted; of more, the planner's estimate is good enough.
COUNTED = 100_000

PERIODS = ("minute", "hour", "day")


class _Sql(Queries, file="sizes.sql"):
    passages: Query
    vectors: Query
    minute: Query
    hour: Query
    day: Query
    keys: Query
    users: Query


INDEX = {
    "passages": (_Sql.passages, ("passages", "passage_words", "passage_queue", "term_stats")),
    "vectors": (_Sql.vectors, ("passage_vectors",)),
}
"""What of the search index is counted, and the tables that hold it: the first has one row for each."""


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

    async def counts(self, db: Statements, memory: Mapping[str, Query], most: int | None = None) -> Counts:
        """Everything in one statement, and one more if something is large; `memory` selects the rows of each kind.

        More than so many are estimated.
        """
        most = most or COUNTED
        parts = (*memory.values(), _Sql.minute, _Sql.hour, _Sql.day, _Sql.keys, _Sql.users)
        statement = _counting(parts)
        found = [row["rows"] for row in await db.all(statement, limit=most + 1)]
        counts = [Count(rows, exact=True) for rows in found]
        if max(found) > most:
            estimates = await self._estimates(db, statement, most)
            counts = [
                count if count.rows <= most else Count(max(about, count.rows), exact=False)
                for count, about in zip(counts, chain(estimates, repeat(0)), strict=False)
            ]
        *rest, keys, users = counts
        return Counts(
            dict(zip(memory, rest, strict=False)),
            dict(zip(PERIODS, rest[len(memory) :], strict=True)),
            keys=keys,
            users=users,
        )

    async def _estimates(self, db: Statements, statement: Query, most: int) -> list[int]:
        """The same statement, planned and not run: the plan says how many rows each part would have without limit."""
        planned = replace(statement, name="sizes.estimates", text=f"explain (format json)\n{statement.text}")
        (plan,) = (await db.one(planned, limit=most + 1))[0]
        # On Citus the plan is one node that says nothing: then the bound is what is known.
        return [max(_rows_below_limit(part)) for part in plan["Plan"].get("Plans", ())]


@cache
def _counting(parts: tuple[Query, ...]) -> Query:
    """One statement that counts the rows of each part, in their order; every part takes a limit and nothing else."""
    if odd := [part.name for part in parts if part.parameters != ("limit",)]:
        raise TypeError(f"To be counted with the others, {', '.join(odd)} must take a limit and nothing else")
    selected = (part.text.rstrip(";") for part in parts)
    counts = (f"select count(*) as rows from (\n{rows}\n) as some_of_them" for rows in selected)  # noqa: S608  # ours
    return Query("sizes.counts", "\nunion all\n".join(counts), ("limit",))


def _rows_below_limit(node: dict[str, Any], below: bool = False) -> Iterator[int]:
    """What the nodes of a part expect to give; those above its limit are left out."""
    yield int(node["Plan Rows"]) if below else 0
    for child in node.get("Plans", ()):
        yield from _rows_below_limit(child, below or node["Node Type"] == "Limit")
