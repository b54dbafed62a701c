"""Recall of several namespaces over HTTP: a key reads its own and what it is granted, and is refused the rest."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from recollect.engine import Engine
from recollect.flows.search.recall import MAX_NAMESPACES
from recollect.memory.memories import MemoryScope
from tests.flows.talk import say
from tests.rest_servers import listening, serving

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

QUESTION = "Where is the spare key?"


@asynccontextmanager
async def over_mcp(engine: Engine, secret: str) -> AsyncIterator[Client]:
    async with (
        listening(engine) as url,
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        yield client


async def recalled(client: httpx.AsyncClient, secret: str, *namespaces: str, path: str = "/recall") -> httpx.Response:
    asked: dict[str, Any] = {"query": QUESTION, "namespaces": namespaces, "user_id": "ann"}
    return await client.post(path, json=asked, headers={"Authorization": f"Bearer {secret}"})


async def test_a_key_recalls_from_its_own_and_granted_namespaces_until_a_grant_ends(
    engine: Engine, namespace: str
) -> None:
    team, other = f"{namespace}-team", f"{namespace}-other"
    for place in (namespace, team, other):
        await say(engine, place, "ann", f"The spare key of {place} is under the flowerpot.")
        text = f"The spare key of {place} is blue."
        await engine.memories.add(place, text, "fact", MemoryScope(user_id="ann"))
    key = await engine.access.create_key(namespace, role="read")
    await engine.grants.grant(team, namespace, key.id)
    async with serving(engine) as client:
        found = (await recalled(client, key.secret, namespace, team)).json()
        assert {(each["namespace"], each["kind"]) for each in found["memories"]} == {
            (place, kind) for place in (namespace, team) for kind in ("message", "memory")
        }
        assert all(each["namespace"] in each["text"] for each in found["memories"])
        hits = (await recalled(client, key.secret, namespace, team, path="/ltm/memories/search")).json()["results"]
        assert {each["namespace"] for each in hits} == {namespace, team}
        plain = {"query": QUESTION, "user_id": "ann"}
        headers = {"Authorization": f"Bearer {key.secret}"}
        own = (await client.post("/recall", json=plain, headers=headers)).json()
        assert all("namespace" not in each and namespace in each["text"] for each in own["memories"])
        for path in ("/recall", "/ltm/memories/search"):
            for refused in (other, f"{namespace}-unknown"):
                answer = await recalled(client, key.secret, namespace, refused, path=path)
                assert answer.status_code == 403
                assert answer.json()["detail"].startswith(f"Namespace {refused} is not open to this key")
            assert (await recalled(client, key.secret, path=path)).status_code == 422
            many = [f"n{number}" for number in range(MAX_NAMESPACES + 1)]
            assert (await recalled(client, key.secret, *many, path=path)).status_code == 422
        await engine.grants.end(team, namespace, key.id)
        assert (await recalled(client, key.secret, namespace, team)).status_code == 403


async def test_an_open_namespace_over_http_reaches_no_other(engine: Engine, namespace: str) -> None:
    for place in (namespace, f"{namespace}-team"):
        await say(engine, place, "ann", "The spare key is under the flowerpot.")
    async with serving(engine) as client:
        asked = {"query": QUESTION, "namespaces": [namespace]}
        assert (await client.post("/recall", json=asked)).json()["memories"][0]["namespace"] == namespace
        asked = {"query": QUESTION, "namespaces": [f"{namespace}-team"]}
        assert (await client.post("/recall", json=asked)).status_code == 403


async def test_the_tool_takes_namespaces_and_the_least_trust(engine: Engine, namespace: str) -> None:
    team, other = f"{namespace}-team", f"{namespace}-other"
    for place in (namespace, team, other):
        await say(engine, place, "ann", f"The spare key of {place} is under the flowerpot.")
        await engine.remember.text(place, f"A spare key of {place} is in a document.")
    key = await engine.access.create_key(namespace)
    await engine.grants.grant(team, namespace, key.id)
    async with over_mcp(engine, key.secret) as client:

        async def call(**arguments: Any) -> CallToolResult:
            return await client.call_tool("recall", {"query": QUESTION} | arguments)

        found = (await call(namespaces=[namespace, team])).structured_content
        assert found is not None
        assert {each["namespace"] for each in found["memories"]} == {namespace, team}
        said = (await call(namespaces=[team], min_trust="user")).structured_content
        assert said is not None
        assert [(each["id"].partition(":")[0], each["trust"]) for each in said["memories"]] == [("message", "user")]
        plain = (await call()).structured_content
        assert plain is not None
        assert {each["id"].partition(":")[0] for each in plain["memories"]} == {"message", "document"}
        assert all("namespace" not in each for each in plain["memories"])
        refused = await call(namespaces=[other])
        assert refused.is_error
        assert isinstance(refused.content[0], TextContent)
        assert f"Namespace {other} is not open to this key" in refused.content[0].text
        assert (await call(min_trust="gossip")).is_error
