"""Contract cognitive-memory-mcp: the graph tools, as the examples call them."""

import json
from datetime import UTC, datetime
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
        "vector_id": None,
        "relations": found["neighbors"][0]["relations"],
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


def test_neighbors_show_every_edge_its_properties_and_the_insight_they_point_to(mcp: McpClient, word: str) -> None:
    insight = mcp.ok("compress_to_l2_insight", content=f"PostgreSQL stores vectors {word}", source_ids=[])
    mcp.ok("graph_add_node", label="Technology", name=f"PG {word}", vector_id=insight["id"])
    ends = {"source_name": f"Project {word}", "target_name": f"PG {word}"}
    mcp.ok("graph_add_edge", **ends, relation="USES", weight=0.9, properties={"version": "15+"})
    mcp.ok("graph_add_edge", **ends, relation="TESTS", weight=0.4)
    back = {"source_name": ends["target_name"], "target_name": ends["source_name"]}
    mcp.ok("graph_add_edge", **back, relation="SERVES", weight=0.5)
    (found,) = mcp.ok("graph_query_neighbors", node_name=ends["source_name"])["neighbors"]
    assert (found["relation"], found["vector_id"]) == ("USES", insight["id"])
    assert [(edge["relation"], edge["direction"]) for edge in found["relations"]] == [
        ("USES", "out"),
        ("SERVES", "in"),
        ("TESTS", "out"),
    ]
    assert found["relations"][0]["properties"] == {"version": "15+"}
    (only,) = mcp.ok("graph_query_neighbors", node_name=ends["source_name"], relation_type="TESTS")["neighbors"]
    assert [edge["relation"] for edge in only["relations"]] == ["TESTS"]


def test_an_edge_that_is_added_again_without_a_weight_keeps_its_own(mcp: McpClient, word: str) -> None:
    edge = {"source_name": f"A {word}", "target_name": f"B {word}", "relation": "USES"}
    assert mcp.ok("graph_add_edge", **edge)["weight"] == 1.0
    assert mcp.ok("graph_add_edge", **edge, weight=0.3)["weight"] == 0.3
    assert mcp.ok("graph_add_edge", **edge, properties={"a": 1})["weight"] == 0.3


def test_null_stands_for_an_optional_argument_that_is_left_out(mcp: McpClient, word: str) -> None:
    stored = {"session_id": word, "speaker": "user", "content": "x"}
    assert mcp.ok("store_raw_dialogue", **stored, metadata=None)["status"] == "success"
    found = mcp.ok("hybrid_search", query_text=word, query_embedding=None, top_k=None, weights=None)
    assert found["weights"] == {"semantic": 0.7, "keyword": 0.3}
    assert "unknown parameter limit" in mcp.refused("hybrid_search", query_text=word, limit=None)


def test_an_item_of_working_memory_can_be_archived_by_hand(mcp: McpClient, word: str) -> None:
    added = mcp.ok("update_working_memory", content=f"Call the bank {word}", importance=0.7)
    archived = mcp.ok("archive_working_memory", id=added["added_id"])
    found = mcp.read("memory://stale-memory?reason=MANUAL_ARCHIVE")["contents"]
    assert [item["original_content"] for item in found if item["id"] == archived["archived_id"]] == [
        f"Call the bank {word}"
    ]
    assert "no item" in mcp.refused("archive_working_memory", id=added["added_id"])


def test_neighbours_and_paths_are_told_as_they_were(mcp: McpClient, word: str) -> None:
    a, b, c = (f"{name} {word}" for name in "abc")
    mcp.ok("graph_add_edge", source_name=a, target_name=b, relation="USES", weight=0.2)
    mcp.ok("graph_add_edge", source_name=b, target_name=c, relation="USES")
    then = datetime.now(UTC).isoformat()
    mcp.ok("graph_add_edge", source_name=a, target_name=b, relation="USES", weight=0.9, target_label="Tool")
    mcp.ok("graph_add_edge", source_name=a, target_name=c, relation="USES")
    (neighbor,) = mcp.ok("graph_query_neighbors", node_name=a, as_of=then)["neighbors"]
    assert (neighbor["name"], neighbor["label"], neighbor["weight"]) == (b, "Entity", 0.2)
    assert mcp.ok("graph_find_path", start_node=a, end_node=c, as_of=then)["path_length"] == 2
    assert mcp.ok("graph_find_path", start_node=a, end_node=c)["path_length"] == 1
    for problem, moment in (
        ("in the future", "2999-01-01T00:00:00Z"),
        ("write a date and time such as", "yesterday"),
        ("had no node named", "2020-01-01T00:00:00Z"),
    ):
        refusal = json.loads(mcp.refused("graph_query_neighbors", node_name=a, as_of=moment))
        assert problem in refusal["details"]
