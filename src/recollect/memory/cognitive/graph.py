"""The graph: things known by their names, and how they relate."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from recollect.errors import Conflict
from recollect.storage.database import Statements, Transaction
from recollect.storage.record import Record
from recollect.storage.sql import Queries, Query

# The label of a node that is only known from an edge.
DEFAULT_LABEL = "Entity"

# The weight of an edge that is created without one.
DEFAULT_WEIGHT = 1.0

Direction = Literal["out", "in"]

# Edges to one neighbour that are listed; a node may be reached from very many.
MAX_RELATIONS = 20


class _Sql(Queries, file="graph.sql"):
    insight: Query
    lock_node: Query
    keep_nodes: Query
    amend_node: Query
    create_node: Query
    create_nodes: Query
    named: Query
    create_ends: Query
    lock_ends: Query
    label_ends: Query
    create_edge: Query
    create_edges: Query
    lock_edge: Query
    keep_edge: Query
    amend_edge: Query
    around: Query
    parallel: Query
    adjacent: Query
    links: Query
    hops: Query
    described: Query
    remove_versions: Query
    remove_edge_versions: Query
    remove_edges: Query
    remove: Query
    unlink: Query
    unlink_versions: Query
    drop_repeats: Query
    page_graph_nodes: Query
    restore_graph_nodes: Query
    compare_graph_nodes: Query
    size_graph_nodes: Query
    shown_graph_nodes: Query
    page_graph_edges: Query
    restore_graph_edges: Query
    compare_graph_edges: Query
    size_graph_edges: Query
    page_graph_node_versions: Query
    restore_graph_node_versions: Query
    compare_graph_node_versions: Query
    page_graph_edge_versions: Query
    restore_graph_edge_versions: Query
    compare_graph_edge_versions: Query
    shown_graph_edges: Query


class _Then(Queries, file="graph_then.sql"):
    """The reads of the graph at a moment, by the same names."""

    named: Query
    around: Query
    parallel: Query
    adjacent: Query
    links: Query
    hops: Query
    described: Query


NODE_RECORD = Record(
    "graph_node",
    "graph_nodes",
    ("id",),
    _Sql.page_graph_nodes,
    _Sql.restore_graph_nodes,
    _Sql.compare_graph_nodes,
    size=_Sql.size_graph_nodes,
    shown=_Sql.shown_graph_nodes,
)
EDGE_RECORD = Record(
    "graph_edge",
    "graph_edges",
    ("id",),
    _Sql.page_graph_edges,
    _Sql.restore_graph_edges,
    _Sql.compare_graph_edges,
    size=_Sql.size_graph_edges,
    shown=_Sql.shown_graph_edges,
)
NODE_VERSION_RECORD = Record(
    "graph_node_version",
    "graph_node_versions",
    ("node_id", "number"),
    _Sql.page_graph_node_versions,
    _Sql.restore_graph_node_versions,
    _Sql.compare_graph_node_versions,
)
EDGE_VERSION_RECORD = Record(
    "graph_edge_version",
    "graph_edge_versions",
    ("edge_id", "number"),
    _Sql.page_graph_edge_versions,
    _Sql.restore_graph_edge_versions,
    _Sql.compare_graph_edge_versions,
)


@dataclass(frozen=True, slots=True)
class Node:
    """A thing; `created` tells whether the call that returned it was the first to name it."""

    id: int
    label: str
    name: str
    properties: dict[str, Any]
    vector_id: int | None
    created: bool


@dataclass(frozen=True, slots=True)
class End:
    """A node as an edge knows it; `labelled` tells whether a caller chose its label."""

    id: int
    labelled: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """An edge, seen from the node it was reached from."""

    relation: str
    weight: float
    direction: Direction
    properties: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A node, its distance, and the edges by which it was reached, the strongest first."""

    node_id: int
    label: str
    name: str
    properties: dict[str, Any]
    vector_id: int | None
    distance: int
    relations: tuple[Relation, ...]

    @property
    def relation(self) -> str:
        """That of the strongest edge."""
        return self.relations[0].relation

    @property
    def weight(self) -> float:
        """That of the strongest edge."""
        return self.relations[0].weight

    @property
    def direction(self) -> Direction:
        """That of the strongest edge."""
        return self.relations[0].direction


@dataclass(frozen=True, slots=True)
class Hop:
    """The strongest edge between two nodes, seen from the first of them."""

    relation: str
    weight: float
    direction: Direction


@dataclass(frozen=True, slots=True)
class Removed:
    """How many rows went with a node, its own included, and which edges."""

    nodes: int
    node_versions: int
    edges: list[int]
    edge_versions: int


class GraphView:
    """The graph as it is, or as it was at a moment: takes one step from given nodes, flows decide how far to walk."""

    def __init__(self, as_of: datetime | None = None) -> None:
        self._sql: type[_Sql] | type[_Then] = _Sql if as_of is None else _Then
        self._moment = {} if as_of is None else {"as_of": as_of}

    async def ends(self, db: Statements, names: Iterable[str]) -> dict[str, End]:
        """The nodes of these names; a name that no node has is left out."""
        rows = await db.all(self._sql.named, names=list(names), **self._moment)
        return {row["name"]: End(row["id"], row["labelled"]) for row in rows}

    async def around(
        self,
        db: Statements,
        frontier: Sequence[int],
        seen: Sequence[int],
        relation: str | None,
        *,
        distance: int,
        limit: int,
    ) -> tuple[list[Neighbor], int]:
        """The nodes one step beyond the frontier that were not seen, the strongest first; and how many there are."""
        rows = await db.all(
            self._sql.around, frontier=frontier, seen=seen, relation=relation, limit=limit, **self._moment
        )
        several = [row["id"] for row in rows if row["parallel"] > 1]
        relations: dict[int, list[Relation]] = {}
        for edge in (
            await db.all(
                self._sql.parallel,
                frontier=frontier,
                several=several,
                relation=relation,
                max_relations=MAX_RELATIONS,
                **self._moment,
            )
            if several
            else ()
        ):
            relations.setdefault(edge["id"], []).append(_relation(edge, edge["properties"]))
        found = [
            Neighbor(
                row["id"],
                row["label"],
                row["name"],
                row["properties"],
                row["vector_id"],
                distance,
                tuple(relations.get(row["id"]) or [_relation(row, row["edge_properties"])]),
            )
            for row in rows
        ]
        return found, rows[0]["total"] if rows else 0

    async def adjacent(self, db: Statements, ids: Collection[int]) -> list[int]:
        """Every node one step away from any of these, in either direction."""
        return (await db.one(self._sql.adjacent, ids=list(ids), **self._moment))["ids"] or []

    async def links(self, db: Statements, ids: Collection[int]) -> dict[int, set[int]]:
        """Each of these nodes with those one step away from it, in either direction."""
        return {row["id"]: set(row["others"]) for row in await db.all(self._sql.links, ids=list(ids), **self._moment)}

    async def hops(self, db: Statements, pairs: Collection[tuple[int, int]]) -> dict[tuple[int, int], Hop]:
        """The strongest edge between each two neighbours."""
        heres, theres = [here for here, _ in pairs], [there for _, there in pairs]
        rows = await db.all(self._sql.hops, heres=heres, theres=theres, **self._moment)
        return {
            (row["here"], row["there"]): Hop(row["relation"], row["weight"], _direction(row["outward"])) for row in rows
        }

    async def described(self, db: Statements, ids: Collection[int]) -> dict[int, tuple[str, str]]:
        """Label and name of nodes."""
        return {
            row["id"]: (row["label"], row["name"])
            for row in await db.all(self._sql.described, ids=list(ids), **self._moment)
        }


class Graph:
    """Stores nodes and edges. What a change replaces is kept as a version, for views of earlier moments."""

    def view(self, as_of: datetime | None = None) -> GraphView:
        """The graph to read, as it is now or was at a moment."""
        return GraphView(as_of)

    async def has_insight(self, db: Statements, insight_id: int) -> bool:
        """Whether there is an insight that a node can point to."""
        return await db.first(_Sql.insight, insight_id=insight_id) is not None

    async def add_node(self, tx: Transaction, name: str, label: str, properties: str, vector_id: int | None) -> Node:
        """Create a node, or merge into the one of that name."""
        new = {"name": name, "properties": properties, "vector_id": vector_id}
        locked = await tx.first(_Sql.lock_node, **new)
        if locked is None:
            if created := await tx.first(_Sql.create_node, label=label, **new):
                tx.tally.add(None, name, label, properties)
                return Node(*created)
            # Another caller has created the node in between.
            locked = await tx.one(_Sql.lock_node, **new)
        *node, changes = locked
        if not changes:
            return Node(*node)
        await tx.all(_Sql.keep_nodes, ids=[locked["id"]])
        tx.tally.add(None, properties)
        return Node(*await tx.one(_Sql.amend_node, label=label, **new))

    async def create_ends(self, tx: Transaction, labels: Mapping[str, str | None]) -> set[str]:
        """Create nodes, name to label, and tell which of them did not exist."""
        rows = await tx.all(
            _Sql.create_ends,
            names=list(labels),
            labels=[label or DEFAULT_LABEL for label in labels.values()],
            labelled=[label is not None for label in labels.values()],
        )
        created = {row["name"] for row in rows}
        tx.tally.add(None, *created, rows=len(created))
        return created

    async def create_nodes(self, tx: Transaction, label: str, properties: Mapping[str, str]) -> list[int]:
        """Create nodes of one label, name to properties, and return the ids of those that did not exist."""
        rows = await tx.all(
            _Sql.create_nodes, label=label, names=list(properties), properties=list(properties.values())
        )
        # Which of them were there is not told; only an import of a foreign file creates nodes like this.
        tx.tally.add(None, *properties, *properties.values(), rows=len(rows))
        return [row["id"] for row in rows]

    async def label_ends(self, tx: Transaction, labels: Mapping[str, str]) -> None:
        """Say what nodes are, name to label, where no caller has said so yet."""
        ids = [row["id"] for row in await tx.all(_Sql.lock_ends, names=list(labels))]
        if ids:
            await tx.all(_Sql.keep_nodes, ids=ids)
            await tx.all(_Sql.label_ends, ids=ids, names=list(labels), labels=list(labels.values()))

    async def put_edge(
        self, tx: Transaction, source: int, target: int, relation: str, weight: float | None, properties: str
    ) -> tuple[int, float]:
        """Create an edge, or give the existing one more properties and a new weight, if there is one.

        Returns its id and its weight.
        """
        given = DEFAULT_WEIGHT if weight is None else weight
        if created := await self._created_edge(tx, source, target, relation, given, properties):
            return created["id"], created["weight"]
        locked = await tx.first(
            _Sql.lock_edge, source=source, target=target, relation=relation, weight=weight, properties=properties
        )
        if locked is None:
            raise Conflict("Another request is deleting a node of this edge: try again")
        if locked["changes"]:
            await tx.all(_Sql.keep_edge, edge_id=locked["id"])
            locked = await tx.one(_Sql.amend_edge, edge_id=locked["id"], weight=weight, properties=properties)
            tx.tally.add(None, properties)
        return locked["id"], locked["weight"]

    async def create_edge(
        self, tx: Transaction, source: int, target: int, relation: str, weight: float, properties: str = "{}"
    ) -> int | None:
        """Create an edge and return its id; None if it is there, and then it stays as it is."""
        row = await self._created_edge(tx, source, target, relation, weight, properties)
        return None if row is None else int(row["id"])

    async def create_edges(
        self, tx: Transaction, edges: Collection[tuple[int, int, str]]
    ) -> dict[tuple[int, int, str], int]:
        """Create edges, each a source, a target and a relation; returns those that were not there with their ids."""
        rows = await tx.all(
            _Sql.create_edges,
            weight=DEFAULT_WEIGHT,
            sources=[source for source, _, _ in edges],
            targets=[target for _, target, _ in edges],
            relations=[relation for _, _, relation in edges],
        )
        tx.tally.add(None, *(row["relation"] for row in rows), rows=len(rows))
        return {(row["source"], row["target"], row["relation"]): row["id"] for row in rows}

    async def remove(self, tx: Transaction, node_id: int) -> Removed:
        """Delete a node and its edges, and all that they ever were."""
        edge_versions = await tx.all(_Sql.remove_edge_versions, node_id=node_id)
        edges = await tx.all(_Sql.remove_edges, node_id=node_id)
        versions = await tx.all(_Sql.remove_versions, node_id=node_id)
        nodes = await tx.all(_Sql.remove, node_id=node_id)
        return Removed(len(nodes), len(versions), [row["id"] for row in edges], len(edge_versions))

    async def keep(self, tx: Transaction, ids: Sequence[int]) -> None:
        """Keep what nodes are that this transaction has locked and is about to change, unless they are held back."""
        await tx.all(_Sql.keep_nodes, ids=list(ids))

    async def drop_repeats(self, tx: Transaction, ids: Sequence[int]) -> None:
        """Drop versions of nodes that say the same as what came after them."""
        await tx.all(_Sql.drop_repeats, ids=list(ids))

    async def unlink(self, tx: Transaction, insight_ids: Sequence[int]) -> None:
        """Let no node point to insights that are going, now or at any time before."""
        ids = {row["id"] for row in await tx.all(_Sql.unlink, insight_ids=list(insight_ids))}
        ids |= {row["node_id"] for row in await tx.all(_Sql.unlink_versions, insight_ids=list(insight_ids))}
        if ids:
            await tx.all(_Sql.drop_repeats, ids=list(ids))

    async def _created_edge(
        self, tx: Transaction, source: int, target: int, relation: str, weight: float, properties: str
    ) -> Any:
        row = await tx.first(
            _Sql.create_edge, source=source, target=target, relation=relation, weight=weight, properties=properties
        )
        if row is not None:
            tx.tally.add(None, relation, properties)
        return row


def _relation(row: Any, properties: dict[str, Any]) -> Relation:
    return Relation(row["relation"], row["weight"], _direction(row["outward"]), properties)


def _direction(outward: bool) -> Direction:
    return "out" if outward else "in"
