"""Through every tool and resource: what one namespace stores is nowhere to be seen in another, and roles hold."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextResourceContents

from recollect.doors.mcp import resources, toolsets
from recollect.doors.mcp.server import RecollectServer
from recollect.engine import Engine
from recollect.origin import ROLES, Limits, Role
from recollect.settings import Settings
from tests.rest_servers import listening
from tests.stored_rows import stored_rows

WORD = "zanzibar"
RESOURCES = (
    "memory://l2-insights",
    f"memory://l2-insights?query={WORD}",
    "memory://working-memory",
    f"memory://episode-memory?query={WORD}&min_similarity=0",
    "memory://l0-raw",
    f"memory://l0-raw?session_id={WORD}",
    "memory://stale-memory",
    "memory://changes",
    "memory://changes?since=0&limit=500",
)


@pytest.fixture
async def other(settings: Settings, namespace: str) -> AsyncIterator[Engine]:
    engine = await Engine.open(settings.model_copy(update={"namespace": f"{namespace}-other"}))
    yield engine
    await engine.close()


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content or {}


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return str(result.content)


async def fill(client: Client) -> dict[str, Any]:
    """One of everything; returns the ids."""
    conversation = (await call(client, "create_conversation", user_id=WORD))["id"]
    await call(client, "record_interaction", conversation_id=conversation, user_message=WORD, assistant_response=WORD)
    said = (await call(client, "store_raw_dialogue", session_id=WORD, speaker="user", content=WORD))["id"]
    insight = (await call(client, "compress_to_l2_insight", content=f"{WORD} it is", source_ids=[said]))["id"]
    await call(client, "store_episode", query=WORD, reward=1.0, reflection=WORD)
    for number in range(11):
        kept = (await call(client, "update_working_memory", content=f"{WORD} {number}"))["added_id"]
    await call(client, "graph_add_edge", source_name=WORD, target_name=f"{WORD} too", relation="IS")
    document = (await call(client, "remember", text=f"All about {WORD}"))["id"]
    golden = (await call(client, "add_golden_query", query=WORD, expected_ids=[insight]))["query_id"]
    about = {"text": f"Once upon a time in {WORD}", "user_id": WORD, "key": WORD}
    old = (await call(client, "add_memory", **about))["id"]
    memory = (await call(client, "add_memory", **about | {"text": f"There is no {WORD}"}))["id"]
    stored = {
        "memory": memory,
        "old memory": old,
        "said": said,
        "insight": insight,
        "document": document,
        "golden": golden,
        "kept": kept,
    }
    return stored | {"conversation": conversation}


@asynccontextmanager
async def with_key(url: str, key: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        yield client


async def test_nothing_of_one_namespace_is_seen_from_another(engine: Engine, other: Engine) -> None:
    async with Client(RecollectServer(engine)) as owner, Client(RecollectServer(other)) as stranger:
        await check_that_nothing_is_seen(owner, stranger)


async def test_two_keys_of_one_server_see_nothing_of_each_other(engine: Engine, namespace: str) -> None:
    theirs = await engine.access.create_key(f"{namespace}-one")
    others = await engine.access.create_key(f"{namespace}-two")
    # A grant opens what is asked of a namespace by its name, and nothing else.
    await engine.grants.grant(f"{namespace}-one", f"{namespace}-two", others.id)
    async with (
        listening(engine) as url,
        with_key(url, theirs.secret) as owner,
        with_key(url, others.secret) as stranger,
    ):
        await check_that_nothing_is_seen(owner, stranger)


async def test_no_entity_of_one_namespace_is_seen_from_another(engine: Engine, other: Engine) -> None:
    names = [toolsets.GRAPH_REFERENCE, toolsets.CORE]
    async with Client(RecollectServer(engine, names)) as owner, Client(RecollectServer(other, names)) as stranger:
        await check_that_no_entity_is_seen(owner, stranger)


def test_the_matrix_asks_every_tool_and_resource() -> None:
    """What judges store is shown by their query alone, and the golden test is asked in its own tests."""
    asking = (fill, check_that_nothing_is_seen, check_that_no_memory_is_seen, check_that_no_entity_is_seen)
    asked = {name for code in asking for name in code.__code__.co_consts}
    tools = {definition.function.__name__ for definition in toolsets.definitions(toolsets.EVERY)}
    assert tools - asked == {"store_dual_judge_scores", "get_golden_test_results"}
    # Lineage is of one item, and asked for those of the owner.
    assert {memory.uri for memory in (*resources.RESOURCES, resources.CHANGES)} <= {
        uri.partition("?")[0] for uri in RESOURCES
    }


def calls_of_each_role(ids: dict[str, Any]) -> list[tuple[Role, str, dict[str, Any]]]:
    """One call of every tool, with the role it needs. Those that a writer may make can be made in this order."""
    conversation = {"conversation_id": ids["conversation"]}
    documents = [{"id": ids["insight"], "content": WORD}]
    observed = {"entityName": "z", "contents": ["more"]}
    relation = {"from": WORD, "to": f"{WORD} too", "relationType": "NEAR"}
    return [
        ("read", "ping", {}),
        ("read", "recall", {"query": WORD}),
        ("read", "hybrid_search", {"query_text": WORD}),
        ("read", "get_conversation", conversation),
        ("read", "fetch_chat_history", conversation),
        ("read", "list_conversations", {"user_id": WORD}),
        ("read", "graph_query_neighbors", {"node_name": WORD}),
        ("read", "graph_find_path", {"start_node": WORD, "end_node": f"{WORD} too"}),
        ("read", "list_golden_queries", {}),
        ("read", "list_memories", {}),
        ("read", "pinned_memories", {"user_id": WORD}),
        ("read", "get_memory", {"id": ids["memory"]}),
        ("read", "memory_history", {"id": ids["memory"]}),
        ("read", "read_graph", {}),
        ("read", "search_nodes", {"query": WORD}),
        ("read", "open_nodes", {"names": [WORD]}),
        ("write", "create_conversation", {"user_id": WORD}),
        ("write", "record_interaction", {**conversation, "user_message": "x", "assistant_response": "y"}),
        ("write", "store_raw_dialogue", {"session_id": WORD, "speaker": "user", "content": "more"}),
        ("write", "compress_to_l2_insight", {"content": "more", "source_ids": [ids["said"]]}),
        ("write", "store_episode", {"query": "more", "reward": 1.0, "reflection": "more"}),
        ("write", "update_working_memory", {"content": "more"}),
        ("write", "archive_working_memory", {"id": ids["kept"]}),
        ("write", "graph_add_node", {"label": "x", "name": "y"}),
        ("write", "graph_add_edge", {"source_name": "x", "target_name": "y", "relation": "IS"}),
        ("write", "remember", {"text": "more"}),
        ("write", "add_golden_query", {"query": "more", "expected_ids": [ids["insight"]]}),
        ("write", "get_golden_test_results", {}),
        ("write", "add_memory", {"text": "more", "user_id": WORD}),
        ("write", "update_memory", {"id": ids["memory"], "text": "more of it"}),
        ("write", "undo_memory", {"id": ids["old memory"]}),
        ("write", "create_entities", {"entities": [{"name": "z", "entityType": "z", "observations": ["z"]}]}),
        ("write", "create_relations", {"relations": [relation]}),
        ("write", "add_observations", {"observations": [observed]}),
        ("write", "store_dual_judge_scores", {"query_id": ids["golden"], "query": WORD, "docs": documents}),
        ("write", "accept_judgements", {"query_id": ids["golden"]}),
        ("admin", "remove_golden_query", {"query_id": ids["golden"]}),
        ("admin", "delete_memory", {"id": ids["memory"]}),
        ("admin", "forget", {"id": ids["document"]}),
        ("admin", "delete_observations", {"deletions": [{"entityName": WORD, "observations": ["more"]}]}),
        ("admin", "delete_relations", {"relations": [relation]}),
        ("admin", "delete_entities", {"entityNames": [WORD]}),
    ]


# There are no language models to judge, and so nothing to accept.
WITHOUT_JUDGES = {"store_dual_judge_scores": "API key", "accept_judgements": "has not been judged"}


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_key_does_what_its_role_may_and_changes_nothing_else(engine: Engine, namespace: str) -> None:
    keys = {role: (await engine.access.create_key(namespace, role=role)).secret for role in ROLES}
    async with (
        listening(engine, tools=toolsets.EVERY) as url,
        with_key(url, keys["admin"]) as owner,
        with_key(url, keys["read"]) as reader,
        with_key(url, keys["write"]) as writer,
    ):
        calls = calls_of_each_role(await fill(owner))
        before = await stored_rows(engine, namespace)
        for client, may_not in ((reader, ("write", "admin")), (writer, ("admin",))):
            for role, tool, arguments in calls:
                if role in may_not:
                    assert "needs a key with role" in await refused(client, tool, **arguments), tool
                elif role == "read":
                    await call(client, tool, **arguments)
            for uri in (*RESOURCES, "memory://knowledge-graph"):
                assert WORD in await text(client, uri)
        assert await stored_rows(engine, namespace) == before
        for role, tool, arguments in calls:
            if tool in WITHOUT_JUDGES:
                assert WITHOUT_JUDGES[tool] in await refused(writer, tool, **arguments)
            elif role == "write":
                await call(writer, tool, **arguments)
    tools = {definition.function.__name__ for definition in toolsets.definitions(toolsets.EVERY)}
    assert {tool for _, tool, _ in calls} == tools


# What a key may call that is limited to a user, with what is the user's. All else is refused.
OF_ONE_USER = {
    "ping",
    "recall",
    "create_conversation",
    "get_conversation",
    "list_conversations",
    "fetch_chat_history",
    "record_interaction",
    "add_memory",
    "list_memories",
    "pinned_memories",
    "get_memory",
    "memory_history",
    "update_memory",
    "undo_memory",
    "delete_memory",
}


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_key_for_one_user_sees_and_changes_nothing_of_others(engine: Engine, namespace: str) -> None:
    everything = (await engine.access.create_key(namespace)).secret
    own = (await engine.access.create_key(namespace, limits=Limits(WORD))).secret
    others = (await engine.access.create_key(namespace, "anna", limits=Limits("anna"))).secret
    async with (
        listening(engine, tools=toolsets.EVERY) as url,
        with_key(url, everything) as owner,
        with_key(url, own) as user,
        with_key(url, others) as another,
    ):
        ids = await fill(owner)
        calls = calls_of_each_role(ids)
        before = await stored_rows(engine, namespace, "anna")
        for _, tool, arguments in calls:
            result = await another.call_tool(tool, arguments)
            assert result.is_error or WORD not in str(result.structured_content), (tool, result)
        assert await stored_rows(engine, namespace, "anna") == before
        for client in (user, another):
            for uri in (*RESOURCES, "memory://knowledge-graph"):
                with pytest.raises(MCPError, match="limited to user"):
                    await client.read_resource(uri)
            for item in (f"memory:{ids['memory']}", f"message:{ids['said']}", f"insight:{ids['insight']}"):
                with pytest.raises(MCPError, match=r"limited to user|No item has the id"):
                    await client.read_resource(f"memory://lineage?id={item}")
        allowed = {tool for _, tool, arguments in calls if not (await user.call_tool(tool, arguments)).is_error}
        assert allowed == OF_ONE_USER


async def check_that_nothing_is_seen(owner: Client, stranger: Client) -> None:
    ids = await fill(owner)
    for uri in RESOURCES:
        assert '"contents": []' in await text(stranger, uri)
        assert '"contents": []' not in await text(owner, uri)
    assert WORD not in str(await call(stranger, "ping"))
    assert (await call(stranger, "list_conversations", user_id=WORD))["result"] == []
    assert (await call(stranger, "recall", query=WORD))["memories"] == []
    assert (await call(stranger, "hybrid_search", query_text=WORD))["results"] == []
    conversation = {"conversation_id": ids["conversation"]}
    assert "not found" in await refused(stranger, "get_conversation", **conversation)
    assert "not found" in await refused(stranger, "fetch_chat_history", **conversation)
    words = {"user_message": "x", "assistant_response": "y"}
    assert "not found" in await refused(stranger, "record_interaction", **conversation, **words)
    refusal = await refused(stranger, "compress_to_l2_insight", content="x", source_ids=[ids["said"]])
    assert "unknown dialogue ids" in refusal
    assert "not the id" in await refused(stranger, "graph_add_node", label="x", name="y", vector_id=ids["insight"])
    assert "no node" in await refused(stranger, "graph_query_neighbors", node_name=WORD)
    assert "no node" in await refused(stranger, "graph_find_path", start_node=WORD, end_node=WORD)
    assert (await call(stranger, "list_golden_queries"))["result"] == []
    assert "is not in the golden set" in await refused(stranger, "remove_golden_query", query_id=ids["golden"])
    assert "is not in the golden set" in await refused(stranger, "accept_judgements", query_id=ids["golden"])
    assert "no item" in await refused(stranger, "archive_working_memory", id=ids["kept"])
    await check_that_no_memory_is_seen(stranger, ids)
    for memory in (ids["document"], f"insight:{ids['insight']}", f"message:{ids['said']}"):
        assert "No item has the id" in await refused(stranger, "forget", id=memory)
        with pytest.raises(MCPError, match="No item has the id"):
            await stranger.read_resource(f"memory://lineage?id={memory}")
        assert WORD in await text(owner, f"memory://lineage?id={memory}")
    assert (await call(owner, "recall", query=WORD))["memories"]


async def check_that_no_memory_is_seen(stranger: Client, ids: dict[str, Any]) -> None:
    now = datetime.now(UTC).isoformat()
    for filters in ({}, {"user_id": WORD}, {"key": WORD}, {"as_of": now}, {"valid_at": now}):
        assert (await call(stranger, "list_memories", **filters))["result"] == []
    pinned = await call(stranger, "pinned_memories", user_id=WORD)
    assert pinned == {"memories": [], "omitted": 0}
    for each in (ids["memory"], ids["old memory"]):
        assert "Unknown memory" in await refused(stranger, "update_memory", id=each, text="mine now")
        assert "Unknown memory" in await refused(stranger, "undo_memory", id=each)
        assert "Unknown memory" in await refused(stranger, "delete_memory", id=each)
        assert "Unknown memory" in await refused(stranger, "get_memory", id=each)
        assert "was known at" in await refused(stranger, "get_memory", id=each, as_of=now)
        assert "Unknown memory" in await refused(stranger, "memory_history", id=each)
        own = {"text": "x", "user_id": WORD, "supersedes": [each]}
        assert "Unknown memory" in await refused(stranger, "add_memory", **own)


async def check_that_no_entity_is_seen(owner: Client, stranger: Client) -> None:
    entity = {"name": WORD, "entityType": WORD, "observations": [f"{WORD} is far away"]}
    relation = {"from": WORD, "to": f"{WORD} too", "relationType": "IS"}
    nothing: dict[str, Any] = {"entities": [], "relations": []}
    await call(owner, "create_entities", entities=[entity])
    await call(owner, "create_relations", relations=[relation])
    assert await call(stranger, "read_graph") == nothing
    assert await call(stranger, "search_nodes", query=WORD) == nothing
    assert await call(stranger, "open_nodes", names=[WORD]) == nothing
    assert json.loads(await text(stranger, "memory://knowledge-graph")) == nothing
    assert (await call(stranger, "recall", query=WORD))["memories"] == []
    adding = [{"entityName": WORD, "contents": ["mine"]}]
    assert f"Entity with name {WORD} not found" in await refused(stranger, "add_observations", observations=adding)
    await call(
        stranger, "delete_observations", deletions=[{"entityName": WORD, "observations": entity["observations"]}]
    )
    await call(stranger, "delete_relations", relations=[relation])
    await call(stranger, "delete_entities", entityNames=[WORD])
    assert await call(owner, "read_graph") == {"entities": [entity], "relations": [relation]}
    assert (await call(owner, "recall", query=WORD))["memories"]


async def text(client: Client, uri: str) -> str:
    try:
        (contents,) = (await client.read_resource(uri)).contents
    except MCPError as problem:
        raise AssertionError(f"{uri}: {problem.message}") from problem
    assert isinstance(contents, TextResourceContents)
    return contents.text
