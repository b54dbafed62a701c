"""What pages show of the graph: lists of its nodes, a single one, and the edges among some."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from recollect.storage.database import Statements
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="graph_pages.sql"):
    newest: Query
    reached: Query
    busiest: Query
    labels: Query
    node: Query
    edge_counts: Query
    between: Query


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which nodes to list; what is None does not matter."""

    text: str | None = None
    """Somewhere in the name, in letters of any case."""
    label: str | None = None
    as_of: datetime | None = None


class Place(NamedTuple):
    """Where a list goes on: after a node, and, if the busiest come first, after its number of edges."""

    node_id: int
    edges: int | None = None


@dataclass(frozen=True, slots=True)
class ListedNode:
    """A node in a list."""

    id: int
    name: str
    label: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ShownNode(ListedNode):
    """A node with all that is known of it."""

    properties: dict[str, Any]
    vector_id: int | None


class EdgeCount(NamedTuple):
    """How many edges a node has, or how many of them were counted."""

    edges: int
    has_more: bool


class Link(NamedTuple):
    """An edge by the ids of its ends."""

    source: int
    target: int
    relation: str
    weight: float


class GraphPages:
    """Reads the graph as it is, or as it was at a moment. A list never looks at a whole table."""

    async def newest(
        self, db: Statements, wanted: Wanted, after: Place | None, *, looked_at: int, limit: int
    ) -> list[ListedNode]:
        """Nodes, the newest first, among so many that are looked at."""
        rows = await db.all(
            _Sql.newest,
            before=after and after.node_id,
            looked_at=looked_at,
            limit=limit,
            text=wanted.text,
            label=wanted.label,
            as_of=wanted.as_of,
        )
        return [ListedNode(*row) for row in rows]

    async def reached(self, db: Statements, after: Place | None, *, looked_at: int) -> Place | None:
        """How far `newest` has looked; None if there was no more to look at."""
        before = after and after.node_id
        row = await db.first(_Sql.reached, before=before, looked_at=looked_at)
        return None if row is None else Place(row["id"])

    async def busiest(
        self, db: Statements, wanted: Wanted, after: Place | None, *, looked_at: int, limit: int
    ) -> list[tuple[ListedNode, int]]:
        """Nodes by how many of the newest edges they have, with that number; only so many edges are looked at."""
        rows = await db.all(
            _Sql.busiest,
            before=after and after.node_id,
            before_edges=after and after.edges,
            looked_at=looked_at,
            limit=limit,
            text=wanted.text,
            label=wanted.label,
            as_of=wanted.as_of,
        )
        return [(ListedNode(*node), edges) for *node, edges in rows]

    async def labels(self, db: Statements, *, looked_at: int, limit: int) -> list[str]:
        """The labels of the newest nodes, the most frequent first."""
        return [row["label"] for row in await db.all(_Sql.labels, looked_at=looked_at, limit=limit)]

    async def node(self, db: Statements, node_id: int, as_of: datetime | None) -> ShownNode | None:
        """A node, if there is one of that id, or was."""
        row = await db.first(_Sql.node, id=node_id, as_of=as_of)
        return None if row is None else ShownNode(**row)

    async def edge_counts(
        self, db: Statements, ids: Collection[int], as_of: datetime | None, *, most: int, looked_at: int
    ) -> dict[int, EdgeCount]:
        """How many edges nodes have; none is counted further than to a bound, and few are looked at."""
        rows = await db.all(_Sql.edge_counts, ids=list(ids), as_of=as_of, most=most, looked_at=looked_at)
        return {row["id"]: EdgeCount(row["edges"], row["has_more"]) for row in rows}

    async def between(
        self, db: Statements, ids: Collection[int], others: Collection[int], as_of: datetime | None, *, limit: int
    ) -> list[Link]:
        """Edges between some nodes and others, the strongest first."""
        rows = await db.all(_Sql.between, ids=list(ids), others=list(others), as_of=as_of, limit=limit)
        return [Link(*row) for row in rows]
