"""Recollect's own tools for the golden set, and how the contract's judges meet it, by a real client."""

import json
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from mcp import Client

from recollect.doors.mcp.server import RecollectServer
from recollect.engine import Engine
from recollect.settings import Settings
from tests.contracts.cognitive.test_judges import judged_by, verdict
from tests.flows.test_hybrid_search import fill
from tests.llm_servers import ProviderServer, provider_server
from tests.mcp_servers import text_of

QUERY = "Which train goes to Lisbon?"


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with provider_server() as server:
        server.answer = verdict
        yield server


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, text_of(answer)
    return json.loads(text_of(answer))


async def refused(client: Client, tool: str, **arguments: Any) -> dict[str, str]:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    problem: dict[str, str] = json.loads(text_of(answer))
    return problem


async def test_a_golden_set_is_kept_over_mcp_and_says_what_changed(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    async with Client(RecollectServer(engine)) as client:
        added = await call(client, "add_golden_query", query=QUERY, expected_ids=stored[:1])
        query_id = added["query_id"]
        assert (added["change"], added["expected_before"]) == ("added", None)
        kept = await call(client, "add_golden_query", query=QUERY)
        assert (kept["change"], kept["expected_ids"]) == ("unchanged", stored[:1])
        changed = await call(client, "add_golden_query", query=QUERY, expected_ids=stored[3:])
        assert (changed["change"], changed["expected_before"]) == ("changed", stored[:1])
        assert await call(client, "list_golden_queries") == [
            {"query_id": query_id, "query": QUERY, "expected_ids": stored[3:], "query_type": "short"}
        ]
        assert (await call(client, "get_golden_test_results"))["queries_tested"] == 1
        assert await call(client, "remove_golden_query", query_id=query_id) == {"query_id": query_id, "removed": True}
        problem = await refused(client, "remove_golden_query", query_id=query_id)
        assert problem["error"] == "Resource not found"
        problem = await refused(client, "add_golden_query", query=QUERY, expected_ids=[2**40])
        assert "unknown insight ids" in problem["details"]


async def test_what_two_judges_agree_on_becomes_expected_by_an_explicit_step(
    engine: Engine, namespace: str, provider: ProviderServer, settings: Settings
) -> None:
    stored = await fill(engine, namespace)
    docs = [
        {"id": stored[3], "content": "It goes there, gpt=0.9 claude=0.8"},
        {"id": stored[0], "content": "Perhaps, gpt=0.9 claude=0.2"},
        {"id": stored[1], "content": "No, gpt=0.1 claude=0.2"},
    ]
    async with judged_by(provider, settings) as client:
        query_id = (await call(client, "add_golden_query", query=QUERY))["query_id"]
        await call(client, "store_dual_judge_scores", query_id=query_id, query=QUERY, docs=docs)
        assert (await call(client, "list_golden_queries"))[0]["expected_ids"] == []
        assert await call(client, "accept_judgements", query_id=query_id) == {
            "query_id": query_id,
            "expected_ids": stored[3:],
            "added": stored[3:],
            "already_expected": [],
            "irrelevant": [stored[1]],
            "disputed": [stored[0]],
            "unknown": [],
        }
        assert (await call(client, "get_golden_test_results"))["precision_at_5"] == 0.2


async def test_judges_are_not_asked_about_another_query_than_the_one_that_is_named(
    engine: Engine, namespace: str, provider: ProviderServer, settings: Settings
) -> None:
    async with judged_by(provider, settings) as client:
        query_id = (await call(client, "add_golden_query", query=QUERY))["query_id"]
        docs = [{"id": 1, "content": "A document, gpt=0.9 claude=0.8"}]
        other = {"query_id": query_id, "query": "Who likes parrots?", "docs": docs}
        problem = await refused(client, "store_dual_judge_scores", **other)
        assert provider.requests == []
        await call(client, "store_dual_judge_scores", **other | {"query": "which train goes to LISBON"})
    assert problem["error"] == "Parameter validation failed"
    assert problem["details"].startswith(f'query does not match the golden query {query_id}, "{QUERY}": send that text')
