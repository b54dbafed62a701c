"""Contract cognitive-memory-mcp: bad input for every parameter is an error of the contract's shape that names it."""

import json
from typing import Any

import pytest

from recollect.checks import MAX_TEXT_BYTES
from tests.mcp_servers import ONE_TRANSPORT, McpClient

BAD_PARAMETER = "Parameter validation failed"
NOT_FOUND = "Resource not found"

GOOD: dict[str, dict[str, Any]] = {
    "store_raw_dialogue": {"session_id": "bad-input", "speaker": "user", "content": "text"},
    "compress_to_l2_insight": {"content": "text", "source_ids": [1]},
    "hybrid_search": {"query_text": "text"},
    "update_working_memory": {"content": "text"},
    "store_episode": {"query": "text", "reward": 0.5, "reflection": "text"},
    "store_dual_judge_scores": {"query_id": 1, "query": "text", "docs": [{"id": 1, "content": "text"}]},
    "get_golden_test_results": {},
    "ping": {},
    "graph_add_node": {"label": "Thing", "name": "bad-input"},
    "graph_add_edge": {"source_name": "bad-input", "target_name": "bad-input too", "relation": "IS"},
    "graph_query_neighbors": {"node_name": "bad-input"},
    "graph_find_path": {"start_node": "bad-input", "end_node": "bad-input"},
}

LONG = "x" * 256
TOO_LARGE = "x" * (MAX_TEXT_BYTES + 1)
VECTOR = [0.1] * 384 + [0.0] * 1152

BAD: list[tuple[str, dict[str, Any], str]] = [
    ("store_raw_dialogue", {"session_id": ""}, "session_id is empty"),
    ("store_raw_dialogue", {"session_id": 5}, "session_id must be text"),
    ("store_raw_dialogue", {"session_id": LONG}, "session_id is longer than 255"),
    ("store_raw_dialogue", {"speaker": " "}, "speaker is empty"),
    ("store_raw_dialogue", {"speaker": None}, "speaker must be text"),
    ("store_raw_dialogue", {"content": ""}, "content is empty"),
    ("store_raw_dialogue", {"content": "a\x00b"}, "content contains a NUL"),
    ("store_raw_dialogue", {"content": ["a"]}, "content must be text"),
    ("store_raw_dialogue", {"content": TOO_LARGE}, "content is larger than the limit"),
    ("store_raw_dialogue", {"metadata": "words"}, "metadata must be an object"),
    ("store_raw_dialogue", {"metadata": [1]}, "metadata must be an object"),
    ("store_raw_dialogue", {"metadata": {"a": "\x00"}}, "metadata contains a NUL"),
    ("store_raw_dialogue", {"metadata": {"a": "x" * 1024 * 1024}}, "metadata is larger than the limit"),
    ("compress_to_l2_insight", {"content": "\t"}, "content is empty"),
    ("compress_to_l2_insight", {"content": False}, "content must be text"),
    ("compress_to_l2_insight", {"source_ids": 1}, "source_ids must be an array"),
    ("compress_to_l2_insight", {"source_ids": ["1"]}, "source_ids[0] must be a whole number"),
    ("compress_to_l2_insight", {"source_ids": [1, 1.5]}, "source_ids[1] must be a whole number"),
    ("compress_to_l2_insight", {"source_ids": [True]}, "source_ids[0] must be a whole number"),
    ("compress_to_l2_insight", {"source_ids": list(range(1, 1002))}, "source_ids has 1,001 ids"),
    ("hybrid_search", {"query_text": ""}, "query_text must have at least 1 character"),
    ("hybrid_search", {"query_text": "   "}, "query_text is empty"),
    ("hybrid_search", {"query_text": "?!"}, "query_text has no letters"),
    ("hybrid_search", {"query_text": "x " * 10_001}, "query_text is longer than the limit"),
    ("hybrid_search", {"query_text": 7}, "query_text must be text"),
    ("hybrid_search", {"query_embedding": [0.1]}, "query_embedding must have at least 1536 items"),
    ("hybrid_search", {"query_embedding": [*VECTOR, 0.0]}, "query_embedding must have at most 1536 items"),
    ("hybrid_search", {"query_embedding": ["0.1"] * 1536}, "query_embedding[0] must be a number"),
    ("hybrid_search", {"query_embedding": [0.0] * 1536}, "query_embedding is all zeros"),
    ("hybrid_search", {"query_embedding": [0.1] * 1536}, "query_embedding"),
    ("hybrid_search", {"query_embedding": "words"}, "query_embedding must be an array"),
    ("hybrid_search", {"top_k": 0}, "top_k must be between 1 and 100, not 0"),
    ("hybrid_search", {"top_k": 101}, "top_k must be between 1 and 100, not 101"),
    ("hybrid_search", {"top_k": "5"}, "top_k must be a whole number"),
    ("hybrid_search", {"weights": {"semantic": 0.7, "keyword": 0.7}}, "weights must sum to 1.0"),
    ("hybrid_search", {"weights": {"semantic": 1.0}}, "weights must sum to 1.0"),
    ("hybrid_search", {"weights": {"semantic": 1.5}}, "weights.semantic must be between 0.0 and 1.0, not 1.5"),
    ("hybrid_search", {"weights": {"keyword": "0.3"}}, "weights.keyword must be a number"),
    ("hybrid_search", {"weights": {"words": 0.3}}, "unknown parameter weights.words"),
    ("hybrid_search", {"weights": [0.7, 0.3]}, "weights must be an object"),
    ("update_working_memory", {"content": ""}, "content is empty"),
    ("update_working_memory", {"content": {}}, "content must be text"),
    ("update_working_memory", {"importance": -0.1}, "importance must be between 0.0 and 1.0, not -0.1"),
    ("update_working_memory", {"importance": 1.1}, "importance must be between 0.0 and 1.0, not 1.1"),
    ("update_working_memory", {"importance": "high"}, "importance must be a number"),
    ("update_working_memory", {"importance": True}, "importance must be a number"),
    ("store_episode", {"query": ""}, "query must have at least 1 character"),
    ("store_episode", {"query": "\n"}, "query is empty"),
    ("store_episode", {"query": 1}, "query must be text"),
    ("store_episode", {"reward": 1.01}, "reward must be between -1.0 and 1.0, not 1.01"),
    ("store_episode", {"reward": -2}, "reward must be between -1.0 and 1.0, not -2"),
    ("store_episode", {"reward": "good"}, "reward must be a number"),
    ("store_episode", {"reflection": ""}, "reflection must have at least 1 character"),
    ("store_episode", {"reflection": None}, "reflection must be text"),
    ("store_dual_judge_scores", {"query_id": 0}, "query_id must be greater than or equal to 1"),
    ("store_dual_judge_scores", {"query_id": "1"}, "query_id must be a whole number"),
    ("store_dual_judge_scores", {"query": ""}, "query must have at least 1 character"),
    ("store_dual_judge_scores", {"docs": []}, "docs must have at least 1 item"),
    ("store_dual_judge_scores", {"docs": [{"id": 1, "content": "x"}] * 51}, "docs must have at most 50 items"),
    ("store_dual_judge_scores", {"docs": [{"id": 1}]}, "docs[0].content is required"),
    ("store_dual_judge_scores", {"docs": [{"id": "1", "content": "x"}]}, "docs[0].id must be a whole number"),
    ("store_dual_judge_scores", {"docs": [{"id": 1, "content": ""}]}, "docs[0].content must have at least 1"),
    ("store_dual_judge_scores", {"docs": {"id": 1}}, "docs must be an array"),
    ("graph_add_node", {"label": ""}, "label is empty"),
    ("graph_add_node", {"label": 3}, "label must be text"),
    ("graph_add_node", {"name": " "}, "name is empty"),
    ("graph_add_node", {"name": LONG}, "name is longer than 255"),
    ("graph_add_node", {"properties": "words"}, "properties must be an object"),
    ("graph_add_node", {"vector_id": 0}, "vector_id must be greater than or equal to 1"),
    ("graph_add_node", {"vector_id": 1.5}, "vector_id must be a whole number"),
    ("graph_add_node", {"vector_id": 2**70}, "vector_id must be between 1 and"),
    ("graph_add_edge", {"source_name": ""}, "source_name is empty"),
    ("graph_add_edge", {"target_name": "a\x00b"}, "target_name contains a NUL"),
    ("graph_add_edge", {"relation": LONG}, "relation is longer than 255"),
    ("graph_add_edge", {"relation": None}, "relation must be text"),
    ("graph_add_edge", {"source_label": ""}, "source_label is empty"),
    ("graph_add_edge", {"target_label": 1}, "target_label must be text"),
    ("graph_add_edge", {"weight": 1.5}, "weight must be between 0.0 and 1.0, not 1.5"),
    ("graph_add_edge", {"weight": "1"}, "weight must be a number"),
    ("graph_add_edge", {"properties": [1]}, "properties must be an object"),
    ("graph_query_neighbors", {"node_name": ""}, "node_name is empty"),
    ("graph_query_neighbors", {"node_name": 1}, "node_name must be text"),
    ("graph_query_neighbors", {"relation_type": ""}, "relation_type is empty"),
    ("graph_query_neighbors", {"relation_type": ["USES"]}, "relation_type must be text"),
    ("graph_query_neighbors", {"depth": 0}, "depth must be between 1 and 5, not 0"),
    ("graph_query_neighbors", {"depth": 6}, "depth must be between 1 and 5, not 6"),
    ("graph_query_neighbors", {"depth": "1"}, "depth must be a whole number"),
    ("graph_find_path", {"start_node": ""}, "start_node is empty"),
    ("graph_find_path", {"end_node": {}}, "end_node must be text"),
    ("graph_find_path", {"max_depth": 0}, "max_depth must be between 1 and 10, not 0"),
    ("graph_find_path", {"max_depth": 11}, "max_depth must be between 1 and 10, not 11"),
    ("graph_find_path", {"max_depth": False}, "max_depth must be a whole number"),
]


def problem_of(mcp: McpClient, tool: str, arguments: dict[str, Any]) -> dict[str, str]:
    problem: dict[str, str] = json.loads(mcp.refused(tool, **arguments))
    assert list(problem) == ["error", "details", "tool"]
    assert problem["tool"] == tool
    return problem


@ONE_TRANSPORT
@pytest.mark.parametrize(("tool", "bad", "named"), BAD, ids=[f"{tool}-{named.split(',')[0]}" for tool, _, named in BAD])
def test_a_bad_value_is_refused(mcp: McpClient, tool: str, bad: dict[str, Any], named: str) -> None:
    problem = problem_of(mcp, tool, GOOD[tool] | bad)
    assert problem["error"] == BAD_PARAMETER
    assert named in problem["details"]


@ONE_TRANSPORT
@pytest.mark.parametrize("tool", GOOD)
def test_an_unknown_parameter_is_refused_by_its_name(mcp: McpClient, tool: str) -> None:
    problem = problem_of(mcp, tool, GOOD[tool] | {"colour": "red"})
    assert (problem["error"], problem["details"]) == (BAD_PARAMETER, "unknown parameter colour")


@pytest.mark.parametrize("tool", [tool for tool, good in GOOD.items() if good])
def test_every_missing_parameter_is_named(mcp: McpClient, tool: str) -> None:
    problem = problem_of(mcp, tool, {})
    assert problem["error"] == BAD_PARAMETER
    assert problem["details"] == "; ".join(f"{name} is required" for name in GOOD[tool])


@ONE_TRANSPORT
@pytest.mark.parametrize("unknown", [2**40, -1, 0, 2**80])
def test_unknown_sources_are_named(mcp: McpClient, unknown: int) -> None:
    problem = problem_of(mcp, "compress_to_l2_insight", {"content": "text", "source_ids": [unknown]})
    assert problem["error"] == NOT_FOUND
    assert str(unknown) in problem["details"]


def test_an_unknown_tool_is_an_error(mcp: McpClient) -> None:
    assert "Unknown tool: nothing" in mcp.refused("nothing")


@ONE_TRANSPORT
@pytest.mark.parametrize(
    ("tool", "bad", "named"),
    [
        ("remember", {"text": ""}, "text must have at least 1 character"),
        ("remember", {"text": " "}, "text is empty"),
        ("remember", {"text": 5}, "text must be text"),
        ("remember", {"text": "x", "metadata": "words"}, "metadata must be an object"),
        ("recall", {"query": "x", "top_k": 0}, "top_k must be between 1 and 100, not 0"),
        ("recall", {"query": "?"}, "query has no letters"),
        ("recall", {"query": "x", "user": "a"}, "unknown parameter user"),
        ("forget", {"id": "document:5"}, "No item has the id document:5"),
        ("forget", {"id": "thing:5"}, "the kind before the colon"),
        ("forget", {}, "id is required"),
    ],
)
def test_a_bad_value_for_a_core_tool_is_one_sentence(
    mcp: McpClient, tool: str, bad: dict[str, Any], named: str
) -> None:
    assert mcp.refused(tool, **bad).startswith(f"Error: {named}")


def test_after_all_that_the_server_still_answers(mcp: McpClient) -> None:
    assert mcp.ok("ping")["response"] == "pong"
