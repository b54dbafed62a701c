"""The four graph tools of the cognitive-memory contract."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from recollect.doors.caller import Caller
from recollect.doors.mcp.errors import as_object
from recollect.doors.mcp.schema import WHOLE, AsOf
from recollect.doors.mcp.tool import MERGES, READS, Tools
from recollect.flows.cognitive import graph as flow
from recollect.memory.cognitive import graph as memory

TOOLS = Tools(as_object)

Properties = Annotated[dict[str, Any] | None, Field(description="Flexible metadata as key-value pairs")]

DEFAULT_DEPTH = 1
DEFAULT_PATH_DEPTH = 5


class AddedNode(BaseModel):
    """A node as it is now."""

    node_id: int
    label: str
    name: str
    created: bool
    vector_id: int | None
    status: Literal["success"] = "success"


class AddedEdge(BaseModel):
    """An edge as it is now, and which of its nodes were created."""

    edge_id: int
    source_node_id: int
    target_node_id: int
    relation: str
    weight: float
    source_created: bool
    target_created: bool
    status: Literal["success"] = "success"


class Relation(BaseModel):
    """One of the edges by which a node was reached."""

    model_config = ConfigDict(from_attributes=True)

    relation: str
    weight: float
    direction: memory.Direction
    properties: dict[str, Any]


class Neighbor(BaseModel):
    """A node, and the strongest edge by which it was reached: `direction` is "out" if that edge points to it.

    Beyond the contract: the insight that the node points to, and all the edges.
    """

    model_config = ConfigDict(from_attributes=True)

    node_id: int
    label: str
    name: str
    properties: dict[str, Any]
    relation: str
    distance: int
    weight: float
    direction: memory.Direction
    vector_id: int | None
    relations: list[Relation]


class Neighbors(BaseModel):
    """The neighbours of a node; `truncated` is set if there are more than are listed."""

    neighbors: list[Neighbor]
    start_node: str
    depth: int
    total_neighbors: int
    truncated: bool = Field(False, exclude_if=lambda truncated: not truncated)
    status: Literal["success"] = "success"


class PathNode(BaseModel):
    """A node on a path."""

    model_config = ConfigDict(from_attributes=True)

    node_id: int
    label: str
    name: str
    relation_to_next: str | None


class FoundPath(BaseModel):
    """One shortest path, and up to ten of the same length."""

    path_found: bool
    path_length: int
    path: list[PathNode]
    paths: list[list[PathNode]]
    start_node: str
    end_node: str
    search_depth: int
    status: Literal["success"] = "success"


@TOOLS.tool("Add graph node", MERGES)
async def graph_add_node(
    caller: Caller,
    label: Annotated[
        str,
        Field(
            description="Node type/category (e.g., 'Project', 'Technology', 'Client', 'Error', 'Solution')",
        ),
    ],
    name: Annotated[str, Field(description="Unique name identifier for the node")],
    properties: Properties = None,
    vector_id: Annotated[
        Annotated[int, Field(ge=1), WHOLE] | None,
        Field(description="Optional foreign key to l2_insights.id for vector embedding linkage"),
    ] = None,
) -> AddedNode:
    """Create or find a graph node with idempotent operation. Supports flexible metadata and optional vector linking
    to L2 insights."""
    node = await caller.engine.graph.add_node(caller.namespace, label, name, properties, vector_id)
    return AddedNode(node_id=node.id, label=node.label, name=node.name, created=node.created, vector_id=node.vector_id)


@TOOLS.tool("Add graph edge", MERGES)
async def graph_add_edge(
    caller: Caller,
    source_name: Annotated[str, Field(description="Name of source node (will be created if not exists)")],
    target_name: Annotated[str, Field(description="Name of target node (will be created if not exists)")],
    relation: Annotated[
        str,
        Field(
            description="Relationship type (e.g., 'USES', 'SOLVES', 'CREATED_BY', 'RELATED_TO', 'DEPENDS_ON')",
        ),
    ],
    source_label: Annotated[
        str | None, Field(description="Label for source node if auto-created (default: 'Entity')")
    ] = None,
    target_label: Annotated[
        str | None, Field(description="Label for target node if auto-created (default: 'Entity')")
    ] = None,
    weight: Annotated[
        Annotated[float, Field(ge=0.0, le=1.0)] | None,
        Field(description="Edge weight for relevance scoring (0.0-1.0, default: 1.0)"),
    ] = None,
    properties: Properties = None,
) -> AddedEdge:
    """Create or update a relationship edge between graph nodes with auto-upsert of nodes. Supports standardized
    relations and optional weight scoring."""
    edge = await caller.engine.graph.add_edge(
        caller.namespace,
        source_name,
        target_name,
        relation,
        source_label,
        target_label,
        weight,
        properties,
    )
    return AddedEdge(
        edge_id=edge.id,
        source_node_id=edge.source_id,
        target_node_id=edge.target_id,
        relation=edge.relation,
        weight=edge.weight,
        source_created=edge.source_created,
        target_created=edge.target_created,
    )


@TOOLS.tool("Query graph neighbors", READS)
async def graph_query_neighbors(
    caller: Caller,
    node_name: Annotated[str, Field(description="Name of the starting node to find neighbors for")],
    relation_type: Annotated[
        str | None,
        Field(description="Optional filter for specific relation types (e.g., 'USES', 'SOLVES', 'RELATED_TO')"),
    ] = None,
    depth: Annotated[
        Annotated[int, Field(ge=1, le=flow.MAX_DEPTH), WHOLE] | None,
        Field(description="Maximum traversal depth (1-5, default: 1)"),
    ] = None,
    as_of: AsOf = None,
) -> Neighbors:
    """Find neighbor nodes of a given node with single-hop and multi-hop traversal. Supports filtering by relation
    type, depth-limited traversal, and cycle detection."""
    around = await caller.engine.graph.neighbors(
        caller.namespace, node_name, relation_type, depth or DEFAULT_DEPTH, as_of
    )
    return Neighbors(
        neighbors=[Neighbor.model_validate(neighbor) for neighbor in around.neighbors],
        start_node=around.start_node,
        depth=around.depth,
        total_neighbors=around.total,
        truncated=around.truncated,
    )


@TOOLS.tool("Find graph path", READS)
async def graph_find_path(
    caller: Caller,
    start_node: Annotated[str, Field(description="Name of the starting node for pathfinding")],
    end_node: Annotated[str, Field(description="Name of the target node to find path to")],
    max_depth: Annotated[
        int,
        Field(ge=1, le=flow.MAX_PATH_DEPTH, description="Maximum traversal depth (1-10, default: 5)"),
        WHOLE,
    ] = DEFAULT_PATH_DEPTH,
    as_of: AsOf = None,
) -> FoundPath:
    """Find the shortest path between two nodes using BFS-based pathfinding with bidirectional traversal, cycle
    detection, and performance protection."""
    found = await caller.engine.graph.find_path(caller.namespace, start_node, end_node, max_depth, as_of)
    return FoundPath(
        path_found=found.found,
        path_length=found.length,
        path=_nodes(found.path),
        paths=list(map(_nodes, found.paths)),
        start_node=found.start_node,
        end_node=found.end_node,
        search_depth=found.searched_depth,
    )


def _nodes(path: Sequence[flow.PathNode]) -> list[PathNode]:
    return [PathNode.model_validate(node) for node in path]
