"""Quotas at the doors: each says in its own form which quota is used up, and when it starts again."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from recollect.engine import Engine
from recollect.quotas import Quota
from recollect.settings import Settings
from tests.console_visits import Browser, token_of, words
from tests.ended_jobs import ended
from tests.gateway_clients import GatewayUser
from tests.rest_servers import listening, serving
from tests.stored_rows import stored_rows

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

MEMORY = {"category": "fact", "user_id": "anna"}


@asynccontextmanager
async def client(engine: Engine, namespace: str, quota: Quota) -> AsyncIterator[httpx.AsyncClient]:
    key = await engine.access.create_key(namespace, "app", "write", quota=quota)
    async with serving(engine, headers={"Authorization": f"Bearer {key.secret}"}) as http:
        yield http


def refusal(answer: httpx.Response) -> str:
    assert answer.status_code == 429, answer.text
    assert int(answer.headers["retry-after"]) >= 1
    return str(answer.json()["detail"])


async def test_a_write_beyond_the_quota_is_a_429_and_stores_nothing(engine: Engine, namespace: str) -> None:
    async with client(engine, namespace, Quota(rows_per_day=2)) as http:
        assert (await http.post("/ltm/memories", json=MEMORY | {"messages": "The ferry leaves at nine."})).is_success
        before = await stored_rows(engine, namespace)
        # Two of the three would fit; a batch is stored whole or not at all.
        operations = [{"op": "put", "path": ["p"], "key": str(each), "value": {"n": each}} for each in range(2)]
        told = refusal(await http.post("/records/batch", json={"operations": operations}))
        assert "may store 2 rows per day and has used 1; this needs 2 more. The quota resets in" in told
        said = [{"role": "user", "content": text} for text in ("One.", "Two.")]
        refusal(await http.post("/stm/s/messages", json={"messages": said}))
        assert await stored_rows(engine, namespace) == before
        store = await http.post("/v1/memory_stores", json={"name": "notes"})
        assert store.is_success
        refused = await http.post("/v1/memory_stores", json={"name": "more"})
        refusal(refused)
        assert refused.json()["error"]["type"] == "rate_limit_error"
        assert (await http.get("/ltm/memories?user_id=anna")).is_success


async def test_a_request_beyond_the_quota_is_a_429_at_rest_mcp_and_console(engine: Engine, namespace: str) -> None:
    engine.quotas.now = lambda: 6000.0
    async with client(engine, namespace, Quota(requests_per_minute=2)) as http:
        answers = [await http.get("/ltm/memories?user_id=anna") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert "may make 2 requests per minute and has used 2. The quota resets in" in refusal(answers[2])
        refusal(await http.post("/mcp", json={}))
        key = await engine.access.create_key(namespace, quota=Quota(requests_per_minute=2))
        browser = Browser(httpx.AsyncClient(base_url=http.base_url))
        await browser.sign_in(key.secret)
        pages = [await browser.open("/console") for _ in range(3)]
        assert [page.status_code for page in pages] == [200, 200, 429]
        assert int(pages[2].headers["retry-after"]) >= 1
        assert "may make 2 requests per minute" in pages[2].text


async def test_a_tool_says_which_quota_is_used_up(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace, quota=Quota(rows_per_day=1))
    headers = {"Authorization": f"Bearer {key.secret}"}
    async with (
        listening(engine) as url,
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as mcp,
    ):
        asked = {"query": "ferry", "reward": 1.0, "reflection": "Ask at the pier."}
        assert not (await mcp.call_tool("store_episode", asked)).is_error
        refused = await mcp.call_tool("store_episode", asked)
        assert refused.is_error
        assert isinstance(refused.content[0], TextContent)
        told = json.loads(refused.content[0].text)["details"]
        assert told.startswith(f"The key {key.id} may store 1 row per day and has used 1; this needs 1 more.")


async def test_a_user_of_the_gateway_has_the_quota_of_users(settings: Settings, namespace: str) -> None:
    quota = Quota(requests_per_minute=3, bytes_per_day=20)
    engine = await Engine.open(settings.model_copy(update={"user_quota": quota}))
    engine.quotas.now = lambda: 6000.0
    async with serving(engine) as http:
        users = [(await engine.access.create_user_key(namespace, name)).secret for name in ("anna", "bob")]
        anna, bob = GatewayUser(http, "anna", users[0]), GatewayUser(http, "bob", users[1])
        said = {"session_id": "chat:1", "messages": [message("anna", "The ferry is late.")]}
        await anna.ok("/memories/add", **said)
        assert "User anna may store 20 bytes per day and has used 18" in await anna.refused(
            429, "/memories/add", session_id="chat:1", messages=[message("anna", "Very late.")]
        )
        search = {"query": "ferry", "scope": ["all_user_memory"]}
        await anna.ok("/memories/search", **search)
        assert "User anna may make 3 requests per minute" in await anna.refused(429, "/memories/search", **search)
        await bob.ok("/memories/search", **search)


def message(sender: str, text: str) -> dict[str, object]:
    return {"sender_id": sender, "role": "user", "timestamp": 1, "content": text}


async def test_a_key_with_a_quota_cannot_give_itself_more(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace, quota=Quota(rows_per_day=10))
    async with serving(engine) as http:
        browser = Browser(http)
        await browser.sign_in(key.secret)
        for path, fields in (
            ("keys", {"label": "more", "role": "admin"}),
            ("rotate", {"id": key.id, "hours": "0"}),
            ("users", {"user_id": "anna"}),
            ("quota", {"id": key.id, "rows_per_day": "1000"}),
        ):
            answer = await browser.send("/console/access", f"/console/access/{path}", **fields)
            assert answer.status_code == 403
            assert "This key has a quota" in answer.text
        headers = {"Authorization": f"Bearer {key.secret}"}
        assert (await http.post("/users", json={"user_id": "anna"}, headers=headers)).status_code == 403
        assert [each.quota for each in await engine.access.keys(namespace)] == [Quota(rows_per_day=10)]


async def test_an_import_that_does_not_fit_is_refused_whole_and_one_that_fits_counts(
    engine: Engine, namespace: str
) -> None:
    source = f"{namespace}-source"
    for number in range(5):
        await engine.remember.text(source, f"Note {number}.")
    file = b"\n".join([line.encode() async for line in engine.exporting.lines(source)])
    key = await engine.access.create_key(namespace, quota=Quota(rows_per_day=4))
    async with serving(engine) as http:
        browser = Browser(http)
        await browser.sign_in(key.secret)
        told = words(await imported(browser, engine, namespace, file))
        assert "may store 4 rows per day, and this needs 5" in told
        assert (await stored_rows(engine, namespace))["documents"] is None
        await engine.quotas.change(namespace, key.id, {"rows_per_day": 6})
        assert "may store" not in words(await imported(browser, engine, namespace, file))
        (stored,) = await engine.access.keys(namespace)
        assert (await engine.quotas.used(namespace, [stored]))[key.id].rows == 5


async def imported(browser: Browser, engine: Engine, namespace: str, file: bytes) -> str:
    """The page of an import that was started by the console's form, once it has ended."""
    fields = {"csrf": token_of(await browser.text("/console/jobs"))}
    answer = await browser.http.post("/console/jobs/import", data=fields, files={"file": ("export.jsonl", file)})
    assert answer.status_code == 303, answer.text
    await ended(engine, namespace, answer.headers["location"].partition("id=")[2])
    return await browser.text(answer.headers["location"])
