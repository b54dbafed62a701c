"""Graph memory: add nodes and edges, list the neighbours of a node, find how two nodes are connected."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from recollect import checks
from recollect.errors import LimitReached, NotFound
from recollect.flows.cognitive.shortest_paths import shortest_paths
from recollect.flows.defence.masking import MasksSecrets, masks
from recollect.flows.indexing.node_passages import NodePassages
from recollect.memory.changes import Change, Changes
from recollect.memory.cognitive.graph import Direction, End, Graph, GraphView, Neighbor, Node
from recollect.storage.database import Database, Statements

MAX_DEPTH = 5
MAX_PATH_DEPTH = 10
MAX_WALK_SECONDS = 10.0
DEFAULT_WEIGHT = 1.0

# Five steps reach nearly everything: more neighbours than this are counted, not listed, and not walked on from.
MAX_NEIGHBORS = 1000
# The most that a caller may ask for, to draw them.
MAX_WALKED = 5000


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge as it is stored now, and which of its ends came into being with it."""

    id: int
    source_id: int
    target_id: int
    relation: str
    weight: float
    source_created: bool
    target_created: bool


@dataclass(frozen=True, slots=True)
class Neighborhood:
    """What lies around a node: by distance, then by weight (the strongest first), then by name."""

    start_node: str
    depth: int
    neighbors: list[Neighbor]
    total: int
    """How many nodes lie within `searched_depth` steps."""
    searched_depth: int
    """How far the walk went: less than was asked if it ended, or if it found more than can be listed."""

    @property
    def truncated(self) -> bool:
        """Whether there are more nodes than are listed."""
        return self.total > len(self.neighbors)


@dataclass(frozen=True, slots=True)
class PathNode:
    """A node on a path, and the strongest edge to the next one: "out" if it points there, "in" if it comes from it."""

    node_id: int
    label: str
    name: str
    relation_to_next: str | None
    direction_to_next: Direction | None
    weight_to_next: float | None


@dataclass(frozen=True, slots=True)
class Paths:
    """Up to ten shortest paths, all of one length, the one with the strongest edges first."""

    start_node: str
    end_node: str
    paths: list[list[PathNode]]
    searched_depth: int

    @property
    def found(self) -> bool:
        """Whether there is a path within the depth that was searched."""
        return bool(self.paths)

    @property
    def path(self) -> list[PathNode]:
        """One shortest path; empty if there is none."""
        return self.paths[0] if self.paths else []

    @property
    def length(self) -> int:
        """The number of steps; 0 from a node to itself, and if there is no path."""
        return max(len(self.path) - 1, 0)


class GraphMemory(MasksSecrets):
    """Writes in one transaction; walks both ways along edges, one statement a level, within a limit of time."""

    def __init__(
        self,
        database: Database,
        graph: Graph,
        changes: Changes,
        node_passages: NodePassages,
        written: Callable[[str], None],
    ) -> None:
        self._database = database
        self._graph = graph
        self._changes = changes
        self._node_passages = node_passages
        self._written = written

    @masks("label", "name", "properties")
    async def add_node(
        self,
        namespace: str,
        label: str,
        name: str,
        properties: Mapping[str, Any] | None = None,
        vector_id: int | None = None,
    ) -> Node:
        """Create a node, or find the one of that name and merge the properties into it."""
        checks.short_name(label, "label")
        checks.short_name(name, "name")
        encoded = checks.metadata(properties, "properties") or "{}"
        if vector_id is not None:
            checks.between(vector_id, 1, checks.LARGEST_ID, "vector_id")
        async with self._database.transaction(namespace) as tx:
            if vector_id is not None and not await self._graph.has_insight(tx, vector_id):
                raise NotFound(f"vector_id {vector_id} is not the id of an insight: store the insight first")
            node = await self._graph.add_node(tx, name, label, encoded, vector_id)
            if "observations" in (properties or {}):
                await self._node_passages.renew(tx, [node.id])
            else:
                await self._node_passages.judge(tx, [node.id])
            await self._changes.record(tx, [Change("add" if node.created else "update", "node", str(node.id))])
        self._written(namespace)
        return node

    @masks("source_name", "target_name", "relation", "source_label", "target_label", "properties")
    async def add_edge(
        self,
        namespace: str,
        source_name: str,
        target_name: str,
        relation: str,
        source_label: str | None = None,
        target_label: str | None = None,
        weight: float | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> Edge:
        """Create an edge, and its ends where they do not exist; an edge that exists takes the weight and properties.

        Without a weight, a new edge has 1.0 and one that exists keeps its own.
        """
        for value, name in ((source_name, "source_name"), (target_name, "target_name"), (relation, "relation")):
            checks.short_name(value, name)
        for label, name in ((source_label, "source_label"), (target_label, "target_label")):
            if label is not None:
                checks.short_name(label, name)
        if weight is not None:
            checks.number_between(weight, 0.0, 1.0, "weight")
        encoded = checks.metadata(properties, "properties") or "{}"
        labels = {source_name: source_label}
        if labels.get(target_name) is None:
            labels[target_name] = target_label
        async with self._database.transaction(namespace) as tx:
            graph, created = self._graph.view(), set[str]()
            ends = await graph.ends(tx, labels)
            if missing := {name: label for name, label in labels.items() if name not in ends}:
                created = await self._graph.create_ends(tx, missing)
                ends = await graph.ends(tx, labels)
            if unlabelled := {name: label for name, label in labels.items() if label and not ends[name].labelled}:
                await self._graph.label_ends(tx, unlabelled)
            await self._node_passages.judge(tx, sorted(ends[name].id for name in created | unlabelled.keys()))
            source, target = ends[source_name].id, ends[target_name].id
            given = DEFAULT_WEIGHT if weight is None else weight
            new = await self._graph.create_edge(tx, source, target, relation, given, encoded)
            if new is None:
                edge_id, stored = await self._graph.put_edge(tx, source, target, relation, weight, encoded)
            else:
                edge_id, stored = new, given
            changes = [Change("add", "node", str(ends[name].id)) for name in labels if name in created]
            changes += [Change("update", "node", str(ends[name].id)) for name in unlabelled]
            changes.append(Change("update" if new is None else "add", "edge", str(edge_id)))
            await self._changes.record(tx, changes)
        return Edge(edge_id, source, target, relation, stored, source_name in created, target_name in created)

    @masks("node_name", counts=False)
    async def neighbors(
        self,
        namespace: str,
        node_name: str,
        relation_type: str | None = None,
        depth: int = 1,
        as_of: datetime | None = None,
        limit: int = MAX_NEIGHBORS,
    ) -> Neighborhood:
        """The nodes within some steps of one, each once at its smallest distance; a relation holds for every step.

        With `as_of`, in the graph as it was at that time.
        """
        checks.short_name(node_name, "node_name")
        if relation_type is not None:
            checks.short_name(relation_type, "relation_type")
        checks.between(depth, 1, MAX_DEPTH, "depth")
        checks.between(limit, 1, MAX_WALKED, "limit")
        moment = checks.as_of(as_of)
        graph = self._graph.view(moment)
        async with in_time(), self._database.reading(namespace) as db:
            start = (await _existing(graph, db, moment, node_name))[node_name].id
            neighbors: list[Neighbor] = []
            frontier, seen, total, distance = [start], [start], 0, 0
            while frontier and distance < depth and total <= limit:
                distance += 1
                room = limit - len(neighbors)
                # A row even where there is no room: it says how many more there are.
                found, count = await graph.around(
                    db, frontier, seen, relation_type, distance=distance, limit=max(room, 1)
                )
                total += count
                neighbors += found[:room]
                frontier = [neighbor.node_id for neighbor in found[:room]]
                seen += frontier
        return Neighborhood(node_name, depth, neighbors, total, distance)

    @masks("start_node", "end_node", counts=False)
    async def find_path(
        self, namespace: str, start_node: str, end_node: str, max_depth: int = 5, as_of: datetime | None = None
    ) -> Paths:
        """How two nodes are connected, or were then: the shortest paths of at most so many steps."""
        checks.short_name(start_node, "start_node")
        checks.short_name(end_node, "end_node")
        checks.between(max_depth, 1, MAX_PATH_DEPTH, "max_depth")
        moment = checks.as_of(as_of)
        graph = self._graph.view(moment)
        async with in_time(), self._database.reading(namespace) as db:
            ends = await _existing(graph, db, moment, start_node, end_node)
            found = await shortest_paths(graph, db, ends[start_node].id, ends[end_node].id, max_depth)
            hops = await graph.hops(db, {pair for path in found.paths for pair in pairwise(path)})
            nodes = await graph.described(db, {node for path in found.paths for node in path})
        paths = []
        for path in found.paths:
            steps = [hops[pair] for pair in pairwise(path)]
            on_the_way = [
                PathNode(node, *nodes[node], hop.relation, hop.direction, hop.weight)
                for node, hop in zip(path, steps, strict=False)
            ]
            paths.append([*on_the_way, PathNode(path[-1], *nodes[path[-1]], None, None, None)])
        paths.sort(key=lambda path: -sum(node.weight_to_next or 0.0 for node in path))
        return Paths(start_node, end_node, paths, found.depth)


async def _existing(graph: GraphView, db: Statements, as_of: datetime | None, *names: str) -> dict[str, End]:
    ends = await graph.ends(db, names)
    for name in names:
        if name not in ends:
            had = "has" if as_of is None else f"at {as_of.isoformat()} had"
            raise NotFound(f"The graph {had} no node named {name!r} (names must match exactly)")
    return ends


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """End what looks at too much of a large graph."""
    try:
        async with asyncio.timeout(MAX_WALK_SECONDS):
            yield
    except TimeoutError as problem:
        raise LimitReached(
            f"The graph traversal was stopped after {MAX_WALK_SECONDS:g} seconds: use a smaller depth or fewer nodes"
        ) from problem
