"""Contract cognitive-memory-mcp: the graph tools, as the examples call them."""

import json
from typing import Any

from tests.mcp_servers import McpClient


def test_a_node_is_created_once_and_found_after(mcp: McpClient, word: str) -> None:
    properties = {"status": "active", "priority": "high", "start_date": "2025-01-15"}
    created = mcp.ok("graph_add_node", label="Project", name=word, properties=properties)
    assert list(created) == ["node_id", "label", "name", "created", "vector_id", "status"]
    assert isinstance(created["node_id"], int)
    assert (created["label"], created["name"], created["created"]) == ("Project", word, True)
    assert (created["vector_id"], created["status"]) == (None, "success")
    again = mcp.ok("graph_add_node", label="Project", name=word)
    assert again == created | {"created": False}


def test_a_node_may_point_to_an_insight(mcp: McpClient, word: str) -> None:
    said = mcp.ok("store_raw_dialogue", session_id=word, speaker="user", content="PostgreSQL stores vectors.")
    insight = mcp.ok("compress_to_l2_insight", content="PostgreSQL stores vectors", source_ids=[said["id"]])
    node = mcp.ok("graph_add_node", label="Technology", name=word, vector_id=insight["id"])
    assert node["vector_id"] == insight["id"]


def test_a_vector_id_that_is_no_insight_is_refused(mcp: McpClient, word: str) -> None:
    problem = json.loads(mcp.refused("graph_add_node", label="Technology", name=word, vector_id=2**40))
    assert f"vector_id {2**40}" in problem["details"]


def test_an_edge_is_made_with_its_ends_and_updated_after(mcp: McpClient, word: str) -> None:
    example: dict[str, Any] = {
        "source_name": f"Cognitive Memory System {word}",
        "target_name": f"PostgreSQL {word}",
        "relation": "USES",
        "source_label": "Project",
        "target_label": "Technology",
        "weight": 0.9,
        "properties": {"critical": True, "version": "15+"},
    }
    made = mcp.ok("graph_add_edge", **example)
    assert list(made) == [
        "edge_id",
        "source_node_id",
        "target_node_id",
        "relation",
        "weight",
        "source_created",
        "target_created",
        "status",
    ]
    assert (made["relation"], made["weight"], made["status"]) == ("USES", 0.9, "success")
    assert (made["source_created"], made["target_created"]) == (True, True)
    again = mcp.ok("graph_add_edge", **(example | {"weight": 0.2}))
    assert again == made | {"weight": 0.2, "source_created": False, "target_created": False}
    example.pop("weight")
    assert mcp.ok("graph_add_edge", **example)["weight"] == 1.0


def test_neighbors_are_described_as_in_the_contract(mcp: McpClient, word: str) -> None:
    start, database, language = f"System {word}", f"PostgreSQL {word}", f"Python {word}"
    node = mcp.ok("graph_add_node", label="Technology", name=database, properties={"type": "database"})
    mcp.ok("graph_add_edge", source_name=start, target_name=database, relation="USES", weight=0.9)
    mcp.ok("graph_add_edge", source_name=start, target_name=language, relation="USES", weight=0.8)
    mcp.ok("graph_add_edge", source_name=language, target_name=f"C {word}", relation="DEPENDS_ON")
    found = mcp.ok("graph_query_neighbors", node_name=start)
    assert list(found) == ["neighbors", "start_node", "depth", "total_neighbors", "status"]
    assert (found["start_node"], found["depth"], found["total_neighbors"]) == (start, 1, 2)
    assert found["neighbors"][0] == {
        "node_id": node["node_id"],
        "label": "Technology",
        "name": database,
        "properties": {"type": "database"},
        "relation": "USES",
        "distance": 1,
        "weight": 0.9,
        "direction": "out",
    }
    assert found["neighbors"][1]["label"] == "Entity"
    assert mcp.ok("graph_query_neighbors", node_name=start, depth=3)["total_neighbors"] == 3
    only = mcp.ok("graph_query_neighbors", node_name=start, relation_type="USES", depth=3)
    assert {neighbor["name"] for neighbor in only["neighbors"]} == {database, language}


def test_a_path_is_described_as_in_the_contract(mcp: McpClient, word: str) -> None:
    start, middle, end = (f"{name} {word}" for name in ("System", "PostgreSQL", "Vector Storage"))
    mcp.ok("graph_add_edge", source_name=start, target_name=middle, relation="USES", source_label="Project")
    mcp.ok("graph_add_edge", source_name=middle, target_name=end, relation="SOLVES", target_label="Solution")
    found = mcp.ok("graph_find_path", start_node=start, end_node=end, max_depth=5)
    assert list(found) == [
        "path_found",
        "path_length",
        "path",
        "paths",
        "start_node",
        "end_node",
        "search_depth",
        "status",
    ]
    assert (found["path_found"], found["path_length"], found["status"]) == (True, 2, "success")
    assert [(step["name"], step["relation_to_next"]) for step in found["path"]] == [
        (start, "USES"),
        (middle, "SOLVES"),
        (end, None),
    ]
    assert list(found["path"][0]) == ["node_id", "label", "name", "relation_to_next"]
    assert (found["path"][0]["label"], found["path"][2]["label"]) == ("Project", "Solution")
    assert found["paths"] == [found["path"]]
    assert (found["start_node"], found["end_node"]) == (start, end)


def test_no_path_is_an_answer_and_an_unknown_node_an_error(mcp: McpClient, word: str) -> None:
    here, there = f"here {word}", f"there {word}"
    for name in (here, there):
        mcp.ok("graph_add_node", label="Place", name=name)
    found = mcp.ok("graph_find_path", start_node=here, end_node=there)
    assert (found["path_found"], found["path_length"], found["path"]) == (False, 0, [])
    for tool, arguments in (
        ("graph_find_path", {"start_node": here, "end_node": f"nowhere {word}"}),
        ("graph_query_neighbors", {"node_name": f"nowhere {word}"}),
    ):
        problem = json.loads(mcp.refused(tool, **arguments))
        assert list(problem) == ["error", "details", "tool"]
        assert f"nowhere {word}" in problem["details"]
