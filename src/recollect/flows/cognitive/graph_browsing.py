"""The graph as people look at it: lists of nodes, a single one, and a part of the graph to draw."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, NamedTuple

from recollect import checks
from recollect.errors import NotFound
from recollect.flows.cognitive.graph import MAX_WALKED, GraphMemory, in_time
from recollect.memory.cognitive.graph import Graph
from recollect.memory.cognitive.graph_pages import GraphPages, Link, ListedNode, Place, ShownNode, Wanted
from recollect.storage.database import Database, Statements

Order = Literal["busiest", "newest"]

MAX_PART = MAX_WALKED
"""Nodes in a part of the graph."""
MAX_LINKS = 20_000
"""Edges in a part of the graph."""
MAX_COUNTED = 1_000
"""Edges of a node, as far as they are counted."""

# Nodes that a search goes through for one page, edges among which the busiest nodes are found, and nodes whose labels
# are offered: a page takes as long on a large graph as on one of this size.
LOOKED_AT = 50_000
NEWEST_EDGES = 10_000
NEWEST_NODES = 10_000
MAX_LABELS = 30

# Edges of one node that are looked at to count those that it had at some time.
MAX_EDGES_LOOKED_AT = 10_000


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of nodes, each with the number of its edges, as far as they are counted."""

    nodes: list[tuple[ListedNode, int]]
    after: Place | None
    """Where the next page begins, if there is one."""
    uncounted: frozenset[int] = frozenset()
    """The nodes that may have more edges than were counted."""


class PartNode(NamedTuple):
    """A node to draw."""

    id: int
    name: str
    label: str


@dataclass(frozen=True, slots=True)
class Part:
    """Some nodes, the one that was asked for first, and the edges among them."""

    nodes: list[PartNode]
    links: list[Link]
    truncated: bool = False
    """Whether nodes or edges are missing because they were too many."""
    total: int | None = None
    """How many nodes lie around the one that was asked for, itself included."""


class GraphBrowsing:
    """Reads only. Every answer is limited, however large the graph is."""

    def __init__(self, database: Database, graph: Graph, pages: GraphPages, memory: GraphMemory) -> None:
        self._database = database
        self._graph = graph
        self._pages = pages
        self._memory = memory

    async def nodes(
        self, namespace: str, wanted: Wanted, order: Order = "newest", after: Place | None = None, limit: int = 50
    ) -> Listing:
        """Nodes of a label, or with a text in their name; the one that is called exactly that comes first."""
        checks.between(limit, 1, MAX_PART, "limit")
        checks.as_of(wanted.as_of)
        checks.optional_short_name(wanted.text, "text")
        checks.optional_short_name(wanted.label, "label")
        async with self._database.reading(namespace) as db:
            found, further = await (self._busiest if order == "busiest" else self._newest)(db, wanted, after, limit)
            # What is called exactly that is the first of the first page, and so not in any other place.
            found = [node for node in found if node.name != wanted.text]
            if wanted.text is not None and after is None:
                ends = await self._graph.view(wanted.as_of).ends(db, [wanted.text])
                named = [await self._pages.node(db, end.id, wanted.as_of) for end in ends.values()]
                found = [*(node for node in named if node and wanted.label in (None, node.label)), *found]
            ids = [node.id for node in found]
            counts = await self._pages.edge_counts(
                db, ids, wanted.as_of, most=MAX_COUNTED, looked_at=MAX_EDGES_LOOKED_AT
            )
        more = frozenset(node_id for node_id, count in counts.items() if count.has_more)
        return Listing([(node, counts[node.id].edges) for node in found], further, more)

    async def _newest(
        self, db: Statements, wanted: Wanted, after: Place | None, limit: int
    ) -> tuple[list[ListedNode], Place | None]:
        found = await self._pages.newest(db, wanted, after, looked_at=LOOKED_AT, limit=limit + 1)
        if len(found) > limit:
            return found[:limit], Place(found[limit - 1].id)
        return found, await self._pages.reached(db, after, looked_at=LOOKED_AT)

    async def _busiest(
        self, db: Statements, wanted: Wanted, after: Place | None, limit: int
    ) -> tuple[list[ListedNode], Place | None]:
        counted = await self._pages.busiest(db, wanted, after, looked_at=NEWEST_EDGES, limit=limit + 1)
        found = [node for node, _ in counted[:limit]]
        return found, Place(found[-1].id, counted[limit - 1][1]) if len(counted) > limit else None

    async def labels(self, namespace: str) -> list[str]:
        """The labels that recent nodes have, the most frequent first."""
        async with self._database.reading(namespace) as db:
            return await self._pages.labels(db, looked_at=NEWEST_NODES, limit=MAX_LABELS)

    async def node(self, namespace: str, node_id: int, as_of: datetime | None = None) -> ShownNode:
        """A node by its id."""
        moment = checks.as_of(as_of)
        async with self._database.reading(namespace) as db:
            node = await self._pages.node(db, node_id, moment)
        if node is None:
            had = "has" if moment is None else f"at {moment.isoformat()} had"
            raise NotFound(f"The graph {had} no node with the id {node_id}")
        return node

    async def around(
        self,
        namespace: str,
        node_id: int,
        depth: int = 1,
        limit: int = 100,
        relation: str | None = None,
        as_of: datetime | None = None,
    ) -> Part:
        """A node and what lies around it, the nearest and strongest first: so many nodes besides its own."""
        node = await self.node(namespace, node_id, as_of)
        found = await self._memory.neighbors(namespace, node.name, relation, depth, as_of, limit)
        nodes = [PartNode(each.node_id, each.name, each.label) for each in found.neighbors]
        shown = [PartNode(node.id, node.name, node.label), *nodes]
        return replace(await self._part(namespace, shown, found.truncated, as_of), total=found.total + 1)

    async def glance(self, namespace: str, limit: int = 100, as_of: datetime | None = None) -> Part:
        """The busiest nodes; where they are fewer, the newest as well."""
        busiest = await self.nodes(namespace, Wanted(as_of=as_of), "busiest", limit=limit)
        found, further = busiest.nodes, busiest.after
        if further is None:
            newest = await self.nodes(namespace, Wanted(as_of=as_of), "newest", limit=limit)
            found, further = [*found, *newest.nodes], newest.after
        nodes = {node.id: PartNode(node.id, node.name, node.label) for node, _ in found}
        return await self._part(namespace, list(nodes.values())[:limit], further is not None, as_of)

    async def between(
        self, namespace: str, ids: Collection[int], others: Collection[int], as_of: datetime | None = None
    ) -> list[Link]:
        """The edges between some nodes and others, the strongest first."""
        for given in (ids, others):
            checks.between(len(given), 0, MAX_PART + 1, "the number of nodes")
        moment = checks.as_of(as_of)
        async with in_time(), self._database.reading(namespace) as db:
            return await self._pages.between(db, ids, others, moment, limit=MAX_LINKS)

    async def _part(self, namespace: str, nodes: list[PartNode], truncated: bool, as_of: datetime | None) -> Part:
        ids = [node.id for node in nodes]
        links = await self.between(namespace, ids, ids, as_of)
        return Part(nodes, links, truncated or len(links) == MAX_LINKS)
