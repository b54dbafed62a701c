"""The tools of the MCP reference memory server: its answers to the letter, over a graph that every door finds."""

import json
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from mcp import Client

from recollect.doors.mcp import toolsets
from recollect.doors.mcp.server import RecollectServer
from recollect.engine import Engine
from recollect.flows.cognitive import entities
from recollect.memory.index.search import Scope
from tests.contracts.cognitive.test_isolation import call, refused, text
from tests.memory.test_passages import counts

ANN = {"name": "Ann", "entityType": "person", "observations": ["keeps bees"]}
CHOIR = {"name": "Choir", "entityType": "group", "observations": []}
LEADS = {"from": "Ann", "to": "Choir", "relationType": "leads"}


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


def served(engine: Engine) -> Client:
    return Client(RecollectServer(engine, [toolsets.GRAPH_REFERENCE, toolsets.COGNITIVE]))


def test_it_is_offered_only_by_name() -> None:
    assert toolsets.GRAPH_REFERENCE not in toolsets.chosen(None)
    assert [each.function.__name__ for each in toolsets.definitions(toolsets.chosen("graph-reference"))] == [
        *("create_entities", "create_relations", "add_observations"),
        *("delete_entities", "delete_observations", "delete_relations"),
        *("read_graph", "search_nodes", "open_nodes"),
    ]


async def test_schemas_have_the_names_of_that_server(engine: Engine) -> None:
    async with served(engine) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        relation = tools["create_relations"].input_schema["properties"]["relations"]["items"]
        assert (list(relation["properties"]), relation["required"]) == (["from", "to", "relationType"],) * 2
        entity = (tools["read_graph"].output_schema or {})["properties"]["entities"]["items"]
        assert entity["required"] == ["name", "entityType", "observations"]
        assert tools["delete_entities"].input_schema["required"] == ["entityNames"]
        assert tools["add_observations"].input_schema["properties"]["observations"]["items"]["required"] == [
            "entityName",
            "contents",
        ]


async def said(client: Client, tool: str, **arguments: Any) -> str:
    """What a model reads."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return str(result.content[0].text)  # type: ignore[union-attr]  # all answers are text


async def test_answers_are_those_of_that_server(engine: Engine) -> None:
    async with served(engine) as client:
        assert await said(client, "create_entities", entities=[ANN, CHOIR, ANN]) == json.dumps([ANN, CHOIR], indent=2)
        assert await said(client, "create_entities", entities=[ANN]) == "[]"
        assert await said(client, "create_relations", relations=[LEADS, LEADS]) == json.dumps([LEADS], indent=2)
        assert await said(client, "create_relations", relations=[LEADS]) == "[]"
        more = [{"entityName": "Ann", "contents": ["keeps bees", "paints"]}]
        added = [{"entityName": "Ann", "addedObservations": ["paints"]}]
        assert await said(client, "add_observations", observations=more) == json.dumps(added, indent=2)
        ann = ANN | {"observations": ["keeps bees", "paints"]}
        whole = {"entities": [ann, CHOIR], "relations": [LEADS]}
        assert await said(client, "read_graph") == json.dumps(whole, indent=2)
        assert await text(client, "memory://knowledge-graph") == json.dumps(whole, indent=2)
        assert await call(client, "search_nodes", query="PAINT") == {"entities": [ann], "relations": [LEADS]}
        assert await call(client, "search_nodes", query="grou") == {"entities": [CHOIR], "relations": [LEADS]}
        assert await call(client, "open_nodes", names=["Choir", "Nobody"]) == {
            "entities": [CHOIR],
            "relations": [LEADS],
        }
        gone = {"entityName": "Nobody", "observations": ["x"]}
        deletions = [{"entityName": "Ann", "observations": ["paints"]}, gone]
        assert await said(client, "delete_observations", deletions=deletions) == "Observations deleted successfully"
        assert (await call(client, "open_nodes", names=["Ann"]))["entities"] == [ANN]
        assert await said(client, "delete_relations", relations=[LEADS, LEADS | {"to": "x"}]) == (
            "Relations deleted successfully"
        )
        assert await said(client, "delete_entities", entityNames=["Ann", "Nobody"]) == "Entities deleted successfully"
        assert await call(client, "read_graph") == {"entities": [CHOIR], "relations": []}


async def test_observations_of_an_unknown_entity_are_refused_and_none_is_added(engine: Engine) -> None:
    async with served(engine) as client:
        await call(client, "create_entities", entities=[ANN])
        both = [{"entityName": "Ann", "contents": ["paints"]}, {"entityName": "Bob", "contents": ["x"]}]
        result = await client.call_tool("add_observations", {"observations": both})
        assert (result.is_error, result.content[0].text) == (  # type: ignore[union-attr]  # all answers are text
            True,
            "Entity with name Bob not found",
        )
        assert (await call(client, "read_graph"))["entities"] == [ANN]


async def test_what_only_a_relation_names_is_no_entity_until_it_is_created(engine: Engine) -> None:
    async with served(engine) as client:
        await call(client, "create_relations", relations=[LEADS])
        assert await call(client, "read_graph") == {"entities": [], "relations": [LEADS]}
        observing = [{"entityName": "Ann", "contents": ["x"]}]
        assert "not found" in await refused(client, "add_observations", observations=observing)
        assert (await call(client, "create_entities", entities=[ANN]))["entities"] == [ANN]
        await call(client, "delete_entities", entityNames=["Choir"])
        assert await call(client, "read_graph") == {"entities": [ANN], "relations": []}


async def recalled(engine: Engine, namespace: str, question: str, **scope: Any) -> list[str]:
    await engine.indexer.flush(namespace)
    found = await engine.recall.recall(namespace, question, Scope(kinds=("node",), **scope))
    return [memory.text for memory in found.memories]


async def test_recall_finds_what_was_observed_until_it_is_deleted(engine: Engine, namespace: str) -> None:
    async with served(engine) as client:
        await call(client, "create_entities", entities=[ANN, CHOIR])
        before = datetime.now(UTC)
        await call(
            client, "add_observations", observations=[{"entityName": "Choir", "contents": ["rehearses on Monday"]}]
        )
        assert (await recalled(engine, namespace, "Who has insects?"))[0] == "Ann: keeps bees"
        assert (await recalled(engine, namespace, "When do the singers meet?"))[0] == "Choir: rehearses on Monday"
        assert await recalled(engine, namespace, "rehearses Monday", as_of=before) == ["Ann: keeps bees"]
        await call(client, "graph_add_node", label="person", name="Bob", properties={"observations": ["sells kayaks"]})
        assert (await recalled(engine, namespace, "kayaks"))[0] == "Bob: sells kayaks"
        deletions = [{"entityName": "Choir", "observations": ["rehearses on Monday"]}]
        await call(client, "delete_observations", deletions=deletions)
        await call(client, "delete_entities", entityNames=["Bob"])
        assert await recalled(engine, namespace, "rehearses Monday kayaks") == ["Ann: keeps bees"]
        assert (await counts(engine, namespace))["passages"] == 1


async def test_a_deleted_observation_is_in_no_earlier_version_either(engine: Engine, namespace: str) -> None:
    async with served(engine) as client:
        await call(client, "create_entities", entities=[ANN])
        await call(client, "create_relations", relations=[LEADS])
        for text in ("paints", "sings"):
            await call(client, "add_observations", observations=[{"entityName": "Ann", "contents": [text]}])
        moment = datetime.now(UTC)
        await call(client, "delete_observations", deletions=[{"entityName": "Ann", "observations": ["paints"]}])
        around = await engine.graph.neighbors(namespace, "Choir", as_of=moment)
        assert around.neighbors[0].properties == {"observations": ["keeps bees", "sings"]}


async def test_a_graph_that_is_too_large_to_read_at_once_is_refused_with_advice(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(engine) as client:
        monkeypatch.setattr(entities, "MAX_READ", 1)
        await call(client, "create_entities", entities=[ANN, CHOIR])
        assert "open some by name" in await refused(client, "read_graph")
        assert (await call(client, "open_nodes", names=["Ann"]))["entities"] == [ANN]
