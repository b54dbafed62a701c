"""What the server lists is what the contracts describe."""

import jsonschema  # type: ignore[import-untyped]  # comes with the SDK, without types
import pytest
from mcp.types import Tool

from tests.contracts.schemas import COGNITIVE, CONTEXT, Schema
from tests.mcp_servers import McpClient

CONTRACTS = CONTEXT | COGNITIVE
READ_ONLY = {
    "recall",
    "fetch_chat_history",
    "get_conversation",
    "list_conversations",
    "hybrid_search",
    "ping",
    "graph_query_neighbors",
    "graph_find_path",
    "list_golden_queries",
    "list_memories",
    "pinned_memories",
    "get_memory",
    "memory_history",
}
AS_OF: Schema = {
    "as_of": {"type": "string", "format": "date-time", "description": "As it was at this time (default: now)"}
}
OF_OUR_OWN: dict[str, Schema] = {
    "fetch_chat_history": AS_OF,
    "get_conversation": AS_OF,
    "list_conversations": AS_OF,
    "hybrid_search": AS_OF,
    "graph_query_neighbors": AS_OF,
    "graph_find_path": AS_OF,
    "record_interaction": {
        "speaker": {"type": "string", "description": "User's name"},
        "at": {"type": "string", "format": "date-time", "description": "When it was said (default: now)"},
    },
}
GOLDEN = ["add_golden_query", "list_golden_queries", "remove_golden_query", "accept_judgements"]
MEMORIES = [
    *("add_memory", "update_memory", "undo_memory", "delete_memory"),
    *("list_memories", "pinned_memories", "get_memory", "memory_history"),
]


@pytest.fixture
def tools(mcp: McpClient) -> dict[str, Tool]:
    return mcp.tools()


def test_the_tools_are_those_of_the_contracts_and_sixteen_of_our_own(tools: dict[str, Tool]) -> None:
    assert list(tools) == ["remember", "recall", "forget", *CONTRACTS, *GOLDEN, "archive_working_memory", *MEMORIES]


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_schema_is_the_contracts(tools: dict[str, Tool], name: str) -> None:
    description, schema = CONTRACTS[name]
    assert tools[name].description == description
    # A contract that describes parameters in words leaves room for optional ones of our own.
    assert tools[name].input_schema == schema | {"properties": schema["properties"] | OF_OUR_OWN.get(name, {})}


def test_every_tool_has_a_title_hints_and_an_output_schema(tools: dict[str, Tool]) -> None:
    for name, tool in tools.items():
        assert tool.title
        assert tool.annotations is not None
        assert tool.output_schema is not None
        assert tool.annotations.read_only_hint is (name in READ_ONLY)
        assert tool.annotations.destructive_hint is (name in ("forget", "remove_golden_query", "delete_memory"))
        assert tool.annotations.idempotent_hint is not None
        assert tool.annotations.open_world_hint is (name == "store_dual_judge_scores")
        assert tool.output_schema["type"] == "object"
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)


def test_nothing_in_a_schema_is_left_over_from_how_it_was_made(tools: dict[str, Tool]) -> None:
    for tool in tools.values():
        for schema in (tool.input_schema, tool.output_schema or {}):
            for part in _parts(schema):
                assert not part.keys() & {"$ref", "$defs", "anyOf", "title", "additionalProperties"}


def _parts(schema: Schema) -> list[Schema]:
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return [schema, *(part for each in inner for part in _parts(each))]


def test_the_resources_are_those_of_the_contract_and_two_of_ours(mcp: McpClient) -> None:
    listed = {resource.uri: resource for resource in mcp.do(mcp.sdk.list_resources).resources}
    names = ["l2-insights", "working-memory", "episode-memory", "l0-raw", "stale-memory", "lineage", "changes"]
    assert list(listed) == [f"memory://{name}" for name in names]
    for resource in listed.values():
        assert resource.mime_type == "application/json"
        assert resource.title
        assert resource.description


def test_the_templates_have_every_parameter_of_the_contract(mcp: McpClient) -> None:
    templates = mcp.do(mcp.sdk.list_resource_templates).resource_templates
    assert [template.uri_template for template in templates] == [
        "memory://l2-insights{?query,top_k,fidelity_min,created_after,created_before,as_of}",
        "memory://working-memory{?as_of}",
        "memory://episode-memory{?query,top_k,min_similarity,reward_min,days_back,as_of}",
        "memory://l0-raw{?session_id,date_range,speaker,limit,order,as_of}",
        "memory://stale-memory{?reason,days_back,importance_min,limit,as_of}",
        "memory://lineage{?id}",
        "memory://changes{?since,limit}",
    ]
