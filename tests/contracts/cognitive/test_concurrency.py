"""Fifty clients at once: working memory keeps its size, and an edge is made once."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

import pytest
from mcp import Client

from recollect.storage import embedded
from tests.mcp_servers import McpClient, connected, serving

CLIENTS = 50


@pytest.fixture(scope="module")
def url(server: embedded.Lease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with (tmp_path_factory.mktemp("mcp") / "log").open("w") as log, serving(f"test-{uuid4()}", log) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[McpClient]:
    with connected(url, "its own") as client:
        yield client


def at_once(client: McpClient, url: str, tool: str, arguments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One call of each of many clients, all under way together."""

    async def calls() -> list[dict[str, Any]]:
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(Client(url)) for _ in arguments]
            results = await asyncio.gather(
                *(each.call_tool(tool, given) for each, given in zip(clients, arguments, strict=True))
            )
        assert not any(result.is_error for result in results)
        return [result.structured_content or {} for result in results]

    answers: list[dict[str, Any]] = client.do(calls)
    return answers


def test_working_memory_keeps_ten_items_and_archives_every_other_once(client: McpClient, url: str) -> None:
    contents = [{"content": f"item {number}"} for number in range(CLIENTS)]
    answers = at_once(client, url, "update_working_memory", contents)
    kept = {item["id"] for item in client.read("memory://working-memory")["contents"]}
    stale = client.read("memory://stale-memory?limit=1000")["contents"]
    evicted = [answer["evicted_id"] for answer in answers if answer["evicted_id"] is not None]
    assert len(kept) == 10
    assert len(evicted) == len(set(evicted)) == CLIENTS - 10
    assert kept | set(evicted) == {answer["added_id"] for answer in answers}
    assert len({item["original_content"] for item in stale}) == len(stale) == CLIENTS - 10
    assert {item["id"] for item in stale} == {answer["archived_id"] for answer in answers} - {None}


def test_the_same_edge_is_made_once(client: McpClient, url: str) -> None:
    edge = {"source_name": "Ann", "target_name": "Bees", "relation": "KEEPS"}
    answers = at_once(client, url, "graph_add_edge", [edge] * CLIENTS)
    assert len({answer["edge_id"] for answer in answers}) == 1
    assert sum(answer["source_created"] for answer in answers) == 1
    assert sum(answer["target_created"] for answer in answers) == 1
    assert client.ok("graph_query_neighbors", node_name="Ann")["total_neighbors"] == 1
