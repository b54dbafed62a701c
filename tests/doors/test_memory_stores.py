"""`/v1/memory_stores` as the Anthropic SDK calls it: keys, errors, pages and views."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import anthropic
import httpx
import pytest
from anthropic import AsyncAnthropic
from mcp import Client

from recollect.engine import Engine
from tests.mcp_servers import text_of
from tests.rest_servers import listening

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

ROUTE = "/v1/memory_stores"


@asynccontextmanager
async def sdk(engine: Engine, key: str = "local") -> AsyncIterator[AsyncAnthropic]:
    async with listening(engine) as url, AsyncAnthropic(base_url=url, api_key=key, max_retries=0) as client:
        yield client


def digest(content: str) -> str:
    return sha256(content.encode()).hexdigest()


async def failure(call: Any) -> anthropic.APIStatusError:
    with pytest.raises(anthropic.APIStatusError) as raised:
        await call
    return raised.value


async def test_a_memory_has_a_hash_a_size_and_a_version_and_its_content_where_it_is_asked_for(engine: Engine) -> None:
    async with sdk(engine) as client:
        stores = client.beta.memory_stores
        store = await stores.create(name="Notes", description="Of a test", metadata={"team": "a", "place": "b"})
        assert store.id.startswith("memstore_")
        changed = await stores.update(store.id, description="", metadata={"team": None, "more": "c"})
        assert (changed.name, changed.description) == ("Notes", "")
        assert changed.metadata == {"place": "b", "more": "c"}
        assert changed.updated_at > store.updated_at
        memory = await stores.memories.create(store.id, path="/grüße.md", content="Grüße")
        assert (memory.content, memory.content_size_bytes, memory.content_sha256) == (None, 7, digest("Grüße"))
        assert memory.id.startswith("mem_")
        full = await stores.memories.retrieve(memory.id, memory_store_id=store.id)
        assert full.content == "Grüße"
        assert (await stores.memories.retrieve(memory.id, memory_store_id=store.id, view="basic")).content is None
        version = await stores.memory_versions.retrieve(memory.memory_version_id, memory_store_id=store.id)
        assert (version.operation, version.content, version.memory_id) == ("created", "Grüße", memory.id)
        assert version.id.startswith("memver_")
        renamed = await stores.memories.update(memory.id, memory_store_id=store.id, path="/b.md", view="full")
        assert (renamed.id, renamed.path, renamed.content) == (memory.id, "/b.md", "Grüße")


async def test_errors_have_the_classes_and_types_that_clients_look_for(engine: Engine) -> None:
    async with sdk(engine) as client:
        stores = client.beta.memory_stores
        store = (await stores.create(name="Notes")).id
        memory = await stores.memories.create(store, path="/a", content="one")
        taken = await failure(stores.memories.create(store, path="/a/b", content="two"))
        assert (taken.status_code, taken.type) == (409, "memory_path_conflict_error")
        assert isinstance(taken.body, dict)
        assert taken.body["error"]["conflicting_memory_id"] == memory.id
        assert taken.body["error"]["conflicting_path"] == "/a"
        assert taken.response.headers["x-should-retry"] == "false"
        wrong = {"type": "content_sha256", "content_sha256": digest("two")}
        call = stores.memories.update(memory.id, memory_store_id=store, content="three", precondition=wrong)  # type: ignore[arg-type]
        stale = await failure(call)
        assert (stale.status_code, stale.type) == (409, "memory_precondition_failed_error")
        head = await failure(stores.memory_versions.redact(memory.memory_version_id, memory_store_id=store))
        assert (head.status_code, head.type) == (409, "conflict_error")
        for missing in (
            stores.retrieve("memstore_nothing"),
            stores.memories.retrieve(memory.id, memory_store_id=memory.id),
            stores.memories.retrieve("mem_" + "0" * 32, memory_store_id=store),
            stores.memory_versions.retrieve(memory.id, memory_store_id=store),
            stores.memories.list("memstore_" + "0" * 32),
            stores.memory_versions.list("nothing", session_id="sesn_1"),
        ):
            unknown = await failure(missing)
            assert (type(unknown), unknown.type) == (anthropic.NotFoundError, "not_found_error")
        for invalid in (
            stores.create(name=""),
            stores.list(limit=101),
            stores.list(page="page"),
            stores.memories.list(store, path_prefix="/notes"),
            stores.memories.list(store, depth=21),
            stores.memories.create(store, path="/b", content="x" * 102_401),
            stores.memories.create(store, path="/b", content="x", extra_body={"unknown": 1}),
            stores.memories.delete(memory.id, memory_store_id=store, expected_content_sha256="wrong"),
        ):
            refused = await failure(invalid)
            assert (type(refused), refused.type) == (anthropic.BadRequestError, "invalid_request_error")
            assert refused.api_message == refused.body["detail"]  # type: ignore[index]


async def test_lists_go_on_from_page_to_page_without_gaps(engine: Engine) -> None:
    async with sdk(engine) as client:
        stores = client.beta.memory_stores
        made = [(await stores.create(name=str(number))).id for number in range(5)]
        await stores.archive(made[2])
        assert [store.id async for store in stores.list(limit=2)] == [made[number] for number in (4, 3, 1, 0)]
        everything = stores.list(limit=3, include_archived=True)
        assert [store.id async for store in everything] == list(reversed(made))
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        assert (await stores.list(created_at_gte=tomorrow)).data == []
        assert len((await stores.list(created_at_lte=tomorrow)).data) == 4
        paths = ["/b/c/d.md", "/a.md", "/b/e.md", "/b-c.md", "/b/c/f.md"]
        for path in paths:
            await stores.memories.create(made[0], path=path, content=path)
        assert [memory.path async for memory in stores.memories.list(made[0], limit=2)] == sorted(paths)
        top = [(entry.type, entry.path) async for entry in stores.memories.list(made[0], depth=1, limit=1)]
        assert top == [("memory", "/a.md"), ("memory", "/b-c.md"), ("memory_prefix", "/b/")]
        below = stores.memories.list(made[0], path_prefix="/b/", depth=1)
        assert [entry.path async for entry in below] == ["/b/c/", "/b/e.md"]
        full = await stores.memories.list(made[0], view="full", limit=100)
        assert [entry.content for entry in full.data if entry.type == "memory"] == sorted(paths)
        versions = stores.memory_versions.list(made[0], limit=2)
        assert [version.path async for version in versions] == list(reversed(paths))
        assert (await stores.memory_versions.list(made[0], operation="deleted")).data == []
        assert (await stores.memory_versions.list(made[0], service_account_id="svac_1")).data == []


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("created_at[gte]=2026-01-01T00:00:00", 200),
        ("created_at[lte]=0001-01-01T00:00:00%2B14:00", 400),
        ("created_at[gte]=yesterday", 400),
        ("name=a%00", 400),
        ("user_id=a%00", 400),
        ("api_key_id=a%00", 400),
        ("path=a%00", 400),
        ("path_prefix=/a%00/", 400),
        ("page=AA", 400),
        ("page=" + quote(base64.urlsafe_b64encode(b'["0001-01-01T00:00:00+14:00", "00"]').decode()), 400),
        ("page=" + "A" * 3000, 400),
        ("limit=1&limit=2", 400),
        ("unknown=1", 400),
    ],
)
async def test_a_strange_query_is_answered_or_refused_in_a_sentence(engine: Engine, query: str, status: int) -> None:
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        store = (await http.post(ROUTE, json={"name": "Notes"})).json()["id"]
        lists = (ROUTE, f"{ROUTE}/{store}/memories", f"{ROUTE}/{store}/memory_versions")
        answers = [await http.get(f"{path}?{query}") for path in lists]
        assert all(answer.status_code in (200, 400) for answer in answers), [answer.text for answer in answers]
        assert status in {answer.status_code for answer in answers}
        assert all(answer.json().get("detail") for answer in answers if answer.status_code == 400)


async def test_a_page_with_contents_has_twenty_of_them(engine: Engine) -> None:
    async with sdk(engine) as client:
        stores = client.beta.memory_stores
        store = (await stores.create(name="Notes")).id
        for number in range(21):
            await stores.memories.create(store, path=f"/{number:02}", content="")
        page = await stores.memories.list(store, view="full", limit=100)
        assert (len(page.data), page.has_next_page()) == (20, True)
        assert len((await stores.memories.list(store, limit=100)).data) == 21
        versions = await stores.memory_versions.list(store, view="full", limit=100)
        assert (len(versions.data), versions.has_next_page()) == (20, True)


async def test_versions_name_the_key_that_was_used(engine: Engine, namespace: str) -> None:
    night = await engine.access.create_key(namespace, "the night shift")
    day = await engine.access.create_key(namespace, "the day shift")
    async with sdk(engine, night.secret) as client:
        stores = client.beta.memory_stores
        store = (await stores.create(name="Notes")).id
        memory = await stores.memories.create(store, path="/a", content="one")
        others = client.with_options(api_key=day.secret).beta.memory_stores
        await others.memories.update(memory.id, memory_store_id=store, content="two")
        written = await stores.memory_versions.list(store, api_key_id="the night shift", memory_id=memory.id)
        (version,) = written.data
        assert version.created_by is not None
        assert version.created_by.to_dict() == {"type": "api_actor", "api_key_id": "the night shift"}
        redacted = await others.memory_versions.redact(version.id, memory_store_id=store)
        assert redacted.redacted_by is not None
        assert redacted.redacted_by.to_dict()["api_key_id"] == "the day shift"


async def test_these_routes_take_the_key_in_the_header_of_that_api_and_no_other_route_does(
    engine: Engine, namespace: str
) -> None:
    key = (await engine.access.create_key(f"{namespace}-other")).secret
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        made = await http.post(ROUTE, json={"name": "Notes"}, headers={"X-API-Key": key})
        assert made.status_code == 200
        assert (await http.get(ROUTE, headers={"Authorization": f"Bearer {key}"})).json()["data"] == [made.json()]
        assert (await http.get(ROUTE)).json()["data"] == []
        for path in ("/changes", "/v1/memory_storesx", "/v1/other"):
            assert (await http.get(path, headers={"X-API-Key": key})).status_code == 401
        for wrong in ({"X-API-Key": key[:-1]}, {"X-API-Key": ""}, {"Api-Key": key}, {"X-API-Key": "rk_1"}):
            refused = await http.get(ROUTE, headers=wrong)
            assert (refused.status_code, refused.json()["error"]["type"]) == (401, "authentication_error")
            assert key[:-1] not in refused.text
        both = [("X-API-Key", key), ("X-API-Key", key)]
        assert (await http.get(ROUTE, headers=both)).status_code == 401


async def test_a_key_that_is_none_of_ours_counts_as_none(engine: Engine, namespace: str) -> None:
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        for headers in ({"X-API-Key": "sk-ant-1"}, {"Authorization": "Bearer sk-ant-1"}):
            assert (await http.get(ROUTE, headers=headers)).status_code == 200
            assert (await http.get(ROUTE, headers=headers | {"Host": "example.org"})).status_code == 421
            assert (await http.get(ROUTE, headers=headers | {"Origin": "https://example.org"})).status_code == 403
        await engine.access.create_key(namespace)
        for headers in ({"X-API-Key": "sk-ant-1"}, {"Authorization": "Bearer sk-ant-1"}):
            assert (await http.get(ROUTE, headers=headers)).status_code == 401


async def test_a_file_is_recalled_over_rest_and_mcp(engine: Engine, namespace: str) -> None:
    async with sdk(engine) as client:
        stores = client.beta.memory_stores
        store = (await stores.create(name="Notes", metadata={"user_id": "anna"})).id
        await stores.memories.create(store, path="/sleep.md", content="My physician told me to sleep more.")
        question = {"query": "What did the doctor advise?", "user_id": "anna"}
        async with httpx.AsyncClient(base_url=str(client.base_url), timeout=60) as http:
            (found,) = (await http.post("/recall", json=question)).raise_for_status().json()["memories"]
        assert (found["kind"], found["text"]) == ("file", "My physician told me to sleep more.")
        assert found["metadata"]["memory_store_id"] == store
        async with Client(f"{str(client.base_url).rstrip('/')}/mcp") as mcp:
            assert "sleep more" in text_of(await mcp.call_tool("recall", question))
