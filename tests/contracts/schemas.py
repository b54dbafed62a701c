"""The input schemas of both MCP contracts, as the contracts have them, written compactly."""

from typing import Any

Schema = dict[str, Any]


def text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def whole(description: str, **more: Any) -> Schema:
    return {"type": "integer", "description": description, **more}


def number(description: str, **more: Any) -> Schema:
    return {"type": "number", "description": description, **more}


def thing(description: str, **more: Any) -> Schema:
    return {"type": "object", "description": description, **more}


def arguments(required: str = "", /, **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": required.split()}


CONVERSATION_ID = text("Conversation ID")
USER_ID = text("User ID")
PROPERTIES = thing("Flexible metadata as key-value pairs")

CONTEXT: dict[str, tuple[str, Schema]] = {
    "fetch_chat_history": (
        "Retrieve the last N messages from a conversation for context rebuilding.",
        arguments(
            "conversation_id",
            conversation_id=CONVERSATION_ID,
            limit=whole("Number of messages to retrieve (default: 10, max: 100)", default=10, minimum=1, maximum=100),
        ),
    ),
    "record_interaction": (
        "Save a user message and assistant response to the conversation history.",
        arguments(
            "conversation_id user_message assistant_response",
            conversation_id=CONVERSATION_ID,
            user_message=text("User's message content"),
            assistant_response=text("Assistant's response content"),
            metadata=text("JSON metadata about the interaction"),
        ),
    ),
    "create_conversation": (
        "Create a new conversation for a user.",
        arguments("user_id", user_id=USER_ID, title=text("Conversation title")),
    ),
    "get_conversation": (
        "Get conversation metadata.",
        arguments("conversation_id", conversation_id=CONVERSATION_ID),
    ),
    "list_conversations": (
        "List recent conversations for a user.",
        arguments(
            "user_id",
            user_id=USER_ID,
            limit=whole(
                "Number of conversations to retrieve (default: 20, max: 100)", default=20, minimum=1, maximum=100
            ),
        ),
    ),
}

COGNITIVE: dict[str, tuple[str, Schema]] = {
    "store_raw_dialogue": (
        "Store raw dialogue data to L0 memory",
        arguments(
            "session_id speaker content",
            session_id=text("Unique identifier for the dialogue session"),
            speaker=text("Speaker identifier (user, assistant, etc.)"),
            content=text("Dialogue content text"),
            metadata=thing("Additional metadata for the dialogue (optional)"),
        ),
    ),
    "compress_to_l2_insight": (
        "Compress dialogue data to L2 insight with OpenAI embedding and semantic fidelity check",
        arguments(
            "content source_ids",
            content=text("Compressed insight content to store with embedding"),
            source_ids={
                "type": "array",
                "items": {"type": "integer"},
                "description": "Array of L0 raw memory IDs that were compressed into this insight",
            },
        ),
    ),
    "hybrid_search": (
        "Perform hybrid semantic + keyword search with RRF fusion. "
        "Embedding is generated automatically from query_text if not provided.",
        arguments(
            "query_text",
            query_text=text("Query text for search (embedding generated automatically)", minLength=1),
            query_embedding={
                "type": "array",
                "items": {"type": "number"},
                "minItems": 1536,
                "maxItems": 1536,
                "description": "Optional: 1536-dimensional query embedding (auto-generated from query_text if omitted)",
            },
            top_k=whole("Maximum number of results to return", minimum=1, maximum=100, default=5),
            weights=thing(
                "Weights for fusing semantic and keyword results (must sum to 1.0)",
                properties={
                    "semantic": number("Weight for semantic search results", minimum=0.0, maximum=1.0, default=0.7),
                    "keyword": number("Weight for keyword search results", minimum=0.0, maximum=1.0, default=0.3),
                },
                default={"semantic": 0.7, "keyword": 0.3},
            ),
        ),
    ),
    "update_working_memory": (
        "Add item to Working Memory with atomic eviction handling. "
        "Returns {added_id: int, evicted_id: Optional[int], archived_id: Optional[int]}",
        arguments(
            "content",
            content=text("Content to store in working memory"),
            importance=number("Importance score (0.0-1.0, default: 0.5)", minimum=0.0, maximum=1.0, default=0.5),
        ),
    ),
    "store_episode": (
        "Store episode memory with query, reward, and reflection for verbal reinforcement learning",
        arguments(
            "query reward reflection",
            query=text("User query that triggered the episode", minLength=1),
            reward=number("Reward score from evaluation (-1.0=poor, +1.0=excellent)", minimum=-1.0, maximum=1.0),
            reflection=text("Verbalized lesson learned (format: 'Problem: ... Lesson: ...')", minLength=1),
        ),
    ),
    "store_dual_judge_scores": (
        "Store dual judge evaluation scores using GPT-4o and Haiku for IRR validation. Evaluates documents with two "
        "independent judges and calculates Cohen's Kappa for methodologically valid ground truth creation.",
        arguments(
            "query_id query docs",
            query_id=whole("Ground truth query ID (must exist in ground_truth table)", minimum=1),
            query=text("User query string for relevance evaluation", minLength=1),
            docs={
                "type": "array",
                "minItems": 1,
                "maxItems": 50,
                "items": arguments(
                    "id content",
                    id=whole("Document identifier"),
                    content=text("Document content to evaluate for relevance", minLength=1),
                ),
                "description": "Array of documents to evaluate with both judges",
            },
        ),
    ),
    "get_golden_test_results": (
        "Execute Golden Test Set for daily Precision@5 tracking and model drift detection. "
        "Returns daily metrics and drift detection status.",
        arguments(),
    ),
    "ping": ("Simple ping tool for testing connectivity", arguments()),
    "graph_add_node": (
        "Create or find a graph node with idempotent operation. "
        "Supports flexible metadata and optional vector linking to L2 insights.",
        arguments(
            "label name",
            label=text("Node type/category (e.g., 'Project', 'Technology', 'Client', 'Error', 'Solution')"),
            name=text("Unique name identifier for the node"),
            properties=PROPERTIES,
            vector_id=whole("Optional foreign key to l2_insights.id for vector embedding linkage", minimum=1),
        ),
    ),
    "graph_add_edge": (
        "Create or update a relationship edge between graph nodes with auto-upsert of nodes. "
        "Supports standardized relations and optional weight scoring.",
        arguments(
            "source_name target_name relation",
            source_name=text("Name of source node (will be created if not exists)"),
            target_name=text("Name of target node (will be created if not exists)"),
            relation=text("Relationship type (e.g., 'USES', 'SOLVES', 'CREATED_BY', 'RELATED_TO', 'DEPENDS_ON')"),
            source_label=text("Label for source node if auto-created (default: 'Entity')"),
            target_label=text("Label for target node if auto-created (default: 'Entity')"),
            weight=number("Edge weight for relevance scoring (0.0-1.0, default: 1.0)", minimum=0.0, maximum=1.0),
            properties=PROPERTIES,
        ),
    ),
    "graph_query_neighbors": (
        "Find neighbor nodes of a given node with single-hop and multi-hop traversal. "
        "Supports filtering by relation type, depth-limited traversal, and cycle detection.",
        arguments(
            "node_name",
            node_name=text("Name of the starting node to find neighbors for"),
            relation_type=text("Optional filter for specific relation types (e.g., 'USES', 'SOLVES', 'RELATED_TO')"),
            depth=whole("Maximum traversal depth (1-5, default: 1)", minimum=1, maximum=5),
        ),
    ),
    "graph_find_path": (
        "Find the shortest path between two nodes using BFS-based pathfinding with bidirectional traversal, "
        "cycle detection, and performance protection.",
        arguments(
            "start_node end_node",
            start_node=text("Name of the starting node for pathfinding"),
            end_node=text("Name of the target node to find path to"),
            max_depth=whole("Maximum traversal depth (1-10, default: 5)", minimum=1, maximum=10, default=5),
        ),
    ),
}
