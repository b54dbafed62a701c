"""Keys on one server, through every route: what one namespace stores is not there for another, and roles hold."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi.routing import APIRoute

from recollect.doors.rest.route_modules import ROUTE_MODULES
from recollect.engine import Engine
from recollect.memory.index.held import NewlyHeld
from recollect.origin import Limits, Role
from tests.rest_servers import listening
from tests.stored_rows import stored_rows

WORD = "zanzibar"
SESSION, USER, CHAT = f"session-{WORD}", f"user-{WORD}", f"chat:{WORD}"
AGENT = {"agent": "claude-code", "session_id": SESSION, "project": f"/home/{WORD}", "user_id": USER}
RECORD: dict[str, Any] = {"path": ["users", USER], "key": WORD}
PACKED = {"type": "bytes", "body": "AAEC"}
CHECKPOINT: dict[str, Any] = {
    "checkpoint_id": "1",
    "checkpoint": PACKED,
    "versions": {"c": "1"},
    "values": {"c": PACKED},
    "metadata": {"run_id": WORD},
}
SCOPES = ["current_chat", "resources", "all_user_memory"]

ROUTES = {
    (method, route.path_format)
    for door in ROUTE_MODULES
    for route in door.router.routes
    if isinstance(route, APIRoute)
    for method in route.methods or ()
}


class Asked:
    """A client that keeps a list of the routes it has asked, so that none is left out."""

    def __init__(self, http: httpx.AsyncClient, key_id: str) -> None:
        self._http = http
        self.key_id = key_id
        self.routes: set[tuple[str, str]] = set()

    async def ask(self, method: str, pattern: str, body: Any = None, **names: str) -> httpx.Response:
        self.routes.add((method, pattern.partition("?")[0]))
        return await self._http.request(method, pattern.format(**names), json=body)

    async def ok(self, method: str, pattern: str, body: Any = None, **names: str) -> Any:
        answer = await self.ask(method, pattern, body, **names)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()


@asynccontextmanager
async def with_key(
    engine: Engine, url: str, namespace: str, role: Role = "admin", limits: Limits | None = None
) -> AsyncIterator[Asked]:
    label = None if limits is None else str(limits)
    key = await engine.access.create_key(namespace, label, role, limits=limits)
    headers = {"Authorization": f"Bearer {key.secret}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as http:
        yield Asked(http, key.id)


async def hold(engine: Engine, namespace: str) -> str:
    """A document that screening held back; returns its id."""
    item = str(uuid4())
    noted = NewlyHeld("document", item, "held", ["it gives the model an order"], "document", b"", None, "rest")
    async with engine.database.transaction(namespace) as tx:
        await engine.capabilities.held.put(tx, [noted])
    return item


async def fill(owner: Asked) -> dict[str, str]:
    """One of everything; returns the ids and the user's key."""
    said = [{"role": "user", "content": WORD}]
    await owner.ok("POST", "/sessions", {"id": SESSION, "user_id": USER})
    stored = await owner.ok("POST", "/stm/{session_id}/messages", {"messages": said}, session_id=SESSION)
    memory = {"messages": f"All about {WORD}", "category": "fact", "user_id": USER, "key": WORD, "pinned": True}
    memory_id = (await owner.ok("POST", "/ltm/memories", memory))["id"]
    key = (await owner.ok("POST", "/users", {"user_id": USER}))["user_key"]
    identity = {"user_id": USER, "user_key": key}
    chat = [{"sender_id": USER, "role": "user", "timestamp": 1, "content": WORD}]
    await owner.ok("POST", "/memories/add", {**identity, "session_id": CHAT, "messages": chat})
    await owner.ok("POST", "/memories/flush", identity | {"session_id": CHAT})
    await owner.ok("POST", "/resources", identity | {"resource_uri": f"file:{WORD}", "text": WORD})
    await owner.ok("POST", "/coding/turns", AGENT | {"key": "1", "prompt": f"All about {WORD}"})
    await owner.ok("POST", "/records/batch", {"operations": [{"op": "put", "value": {"text": WORD}} | RECORD]})
    await owner.ok("PUT", "/checkpoints/{thread_id}", CHECKPOINT, thread_id=WORD)
    store = (await owner.ok("POST", "/v1/memory_stores", {"name": WORD, "metadata": {"user_id": USER}}))["id"]
    path = f"/v1/memory_stores/{store}/memories"
    file = await owner.ok("POST", path, {"path": f"/{WORD}.md", "content": WORD})
    await owner.ok("POST", f"{path}/{file['id']}", {"content": f"All about {WORD}"})
    names = {"memory_store_id": store, "memory_id": file["id"], "memory_version_id": file["memory_version_id"]}
    return {"memory": memory_id, "key": key, "message": stored["messages"][0]["id"], **names}


async def test_nothing_of_one_key_is_there_for_another(engine: Engine, namespace: str) -> None:
    async with (
        listening(engine) as url,
        with_key(engine, url, f"{namespace}-one") as owner,
        with_key(engine, url, f"{namespace}-two") as stranger,
    ):
        ids = await fill(owner) | {"held": await hold(engine, f"{namespace}-one")}
        # A grant opens what is asked of a namespace by its name, and nothing else.
        named = {"query": WORD, "user_id": USER, "namespaces": [f"{namespace}-one"]}
        searches = {"/recall": "memories", "/ltm/memories/search": "results"}
        for path in searches:
            assert (await stranger.ask("POST", path, named)).status_code == 403
        await engine.grants.grant(f"{namespace}-one", f"{namespace}-two", stranger.key_id)
        for path, found in searches.items():
            assert {each["namespace"] for each in (await stranger.ok("POST", path, named))[found]} == {
                f"{namespace}-one"
            }
        assert await stranger.ok("GET", "/health") == {"status": "ok"}
        assert (await stranger.ask("HEAD", "/health")).status_code == 200
        assert (await stranger.ok("GET", "/ready"))["namespace"] == f"{namespace}-two"
        assert await stranger.ok("GET", "/changes") == {"changes": [], "next": 0}
        await check_short_term(stranger)
        await check_sessions(stranger, ids["message"])
        await check_coding(stranger)
        await check_long_term(stranger, ids["memory"])
        assert WORD in (await owner.ok("POST", "/coding/context", AGENT | {"session_id": "another"}))["context"]
        await check_records(stranger)
        await check_checkpoints(stranger)
        await check_gateway(stranger, ids["key"])
        await check_stores(stranger, ids)
        await check_forgetting(stranger)
        assert await stranger.ok("GET", "/audit") == {"lines": [], "next": None}
        await check_review(owner, stranger, f"document:{ids['held']}")
        (found,) = (await owner.ok("POST", "/records/batch", {"operations": [{"op": "get"} | RECORD]}))["answers"]
        assert found["record"]["value"] == {"text": WORD}
        (kept_state,) = (await owner.ok("POST", "/checkpoints/list", {}))["checkpoints"]
        assert (kept_state["thread_id"], kept_state["writes"]) == (WORD, [])
        search = {"user_id": USER, "user_key": ids["key"], "query": WORD, "scope": ["all_user_memory"]}
        assert (await owner.ok("POST", "/memories/search", search))["results"]
        assert (await owner.ok("GET", "/stm/{session_id}/messages", session_id=SESSION))["messages"]
        kept = await owner.ok("GET", "/ltm/memories/{memory_id}", memory_id=ids["memory"])
        assert (kept["key"], "superseded_by" in kept["metadata"]) == (WORD, False)
        seen = (await stranger.ok("GET", "/changes"))["changes"]
        assert len({change["author"] for change in seen}) == 1
        assert WORD not in str([change["content"] for change in seen])
        assert {change["kind"] for change in (await owner.ok("GET", "/changes"))["changes"]} >= {"message", "resource"}
        kept = await owner.ok("GET", "/v1/memory_stores/{memory_store_id}/memories/{memory_id}", **ids)
        assert kept["content"] == f"All about {WORD}"
        assert stranger.routes >= ROUTES - {("GET", "/metrics")}


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_no_route_serves_a_malformed_key_from_the_open_namespace(engine: Engine) -> None:
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        assert (await http.get("/stm/s/messages")).status_code == 200
        guarded = ROUTES - {("GET", "/health")} | {("POST", "/mcp")}
        for method, pattern in sorted(guarded):
            for headers in ({"Authorization": "rk_1"}, {"Authorization": "Bearer rk_1"}, {"X-API-Key": "rk_1"}):
                answer = await http.request(method, pattern.replace("{", "").replace("}", ""), headers=headers)
                assert answer.status_code == 401, (method, pattern, headers)


def requests_of_each_role(ids: dict[str, str]) -> list[tuple[Role, str, str, Any]]:
    """One request to every route, with the role it needs. Those that a writer may make can be made in this order."""
    identity = {"user_id": USER, "user_key": ids["key"]}
    said = {"messages": [{"role": "user", "content": "more"}]}
    chat = [{"sender_id": USER, "role": "user", "timestamp": 2, "content": "more"}]
    own = {"checkpoint_id": "1", "task_id": "t", "writes": [{"idx": 0, "channel": "c", "value": PACKED}]}
    store = "/v1/memory_stores/{memory_store_id}"
    file, version = f"{store}/memories/{{file_id}}", f"{store}/memory_versions/{{memory_version_id}}"
    get, delete = {"op": "get", "refresh": True} | RECORD, {"op": "delete"} | RECORD
    return [
        ("read", "GET", "/health", None),
        ("read", "GET", "/ready", None),
        ("read", "GET", "/changes", None),
        ("read", "GET", "/stm/{session_id}/messages", None),
        ("read", "GET", "/stm/{session_id}/context", None),
        ("read", "GET", "/sessions", None),
        ("read", "GET", "/sessions/{session_id}", None),
        ("read", "GET", "/sessions/{session_id}/messages", None),
        ("read", "GET", "/messages/{message_id}", None),
        ("read", "POST", "/recall", {"query": WORD}),
        ("read", "POST", "/ltm/memories/search", {"query": WORD, "user_id": USER}),
        ("read", "GET", "/ltm/memories", None),
        ("read", "GET", f"/ltm/memories/pinned?user_id={USER}", None),
        ("read", "GET", "/ltm/memories/{memory_id}", None),
        ("read", "GET", "/ltm/memories/{memory_id}/history", None),
        ("read", "GET", "/ltm/memories/{memory_id}/lineage", None),
        ("read", "GET", "/lineage/memory:{memory_id}", None),
        ("read", "POST", "/coding/context", AGENT | {"session_id": "another", "prompt": WORD}),
        ("read", "POST", "/records/batch", {"operations": [get, {"op": "search", "query": WORD}, {"op": "paths"}]}),
        ("read", "POST", "/checkpoints/list", {}),
        ("read", "POST", "/memories/search", {"query": WORD, "scope": ["all_user_memory"], **identity}),
        ("read", "POST", "/memories/flush", {"session_id": CHAT, **identity}),
        ("read", "GET", "/v1/memory_stores", None),
        ("read", "GET", store, None),
        ("read", "GET", f"{store}/memories", None),
        ("read", "GET", file, None),
        ("read", "GET", f"{store}/memory_versions", None),
        ("read", "GET", version, None),
        ("write", "POST", "/stm/{session_id}/messages", said),
        ("write", "PUT", "/stm/{session_id}/config", {"max_messages": 5}),
        ("write", "POST", "/sessions", {"title": "new"}),
        ("write", "PUT", "/sessions/{session_id}", {"user_id": USER}),
        ("write", "PATCH", "/sessions/{session_id}", {"title": "mine"}),
        (
            "write",
            "POST",
            "/sessions/{session_id}/messages",
            {"messages": [{"role": "user", "text": "m", "payload": 1}]},
        ),
        ("write", "POST", "/ltm/memories", {"messages": "mine", "category": "fact", "user_id": USER}),
        ("write", "POST", "/ltm/memories/facts", {**said, "user_id": USER}),
        ("write", "PATCH", "/ltm/memories/{memory_id}", {"category": "semantic"}),
        ("write", "PUT", "/ltm/memories/{memory_id}", {"data": "mine now"}),
        ("write", "POST", "/ltm/memories/{superseded_id}/undo", None),
        ("write", "POST", "/coding/turns", AGENT | {"key": "2", "prompt": "more"}),
        ("write", "POST", "/records/batch", {"operations": [{"op": "put", "value": {"text": "mine"}} | RECORD]}),
        ("write", "PUT", "/checkpoints/{thread_id}", CHECKPOINT | {"metadata": {"run_id": "another"}}),
        ("write", "POST", "/checkpoints/{thread_id}/writes", own),
        ("write", "POST", "/checkpoints/{thread_id}/copy", {"target_thread_id": "mine"}),
        ("write", "POST", "/memories/add", {"session_id": CHAT, "messages": chat, **identity}),
        ("write", "POST", "/resources", {"resource_uri": f"file:{WORD}", "text": "mine", **identity}),
        ("write", "POST", "/v1/memory_stores", {"name": "mine"}),
        ("write", "POST", store, {"name": "mine"}),
        ("write", "POST", f"{store}/memories", {"path": "/mine", "content": "mine"}),
        ("write", "POST", file, {"content": "mine"}),
        ("write", "POST", f"{store}/archive", None),
        ("admin", "DELETE", "/stm/{session_id}", None),
        ("admin", "DELETE", "/sessions/{session_id}/messages/last", None),
        ("admin", "DELETE", "/sessions/{session_id}/messages/{message_id}", None),
        ("admin", "DELETE", "/sessions/{session_id}/messages", None),
        ("admin", "DELETE", "/sessions/{session_id}", None),
        ("admin", "DELETE", "/ltm/memories/{memory_id}", None),
        ("admin", "DELETE", f"/ltm/memories?user_id={USER}", None),
        ("admin", "POST", "/records/batch", {"operations": [delete]}),
        ("admin", "POST", "/checkpoints/delete-runs", {"run_ids": [WORD]}),
        ("admin", "POST", "/checkpoints/prune", {"thread_ids": [WORD]}),
        ("admin", "DELETE", "/checkpoints/{thread_id}", None),
        ("admin", "POST", "/users", {"user_id": "another"}),
        ("admin", "DELETE", "/users/{user_id}", None),
        ("admin", "POST", f"{version}/redact", None),
        ("admin", "GET", "/audit", None),
        ("admin", "GET", "/review", None),
        ("admin", "POST", "/review/release", {"item": f"document:{ids['held']}"}),
        ("admin", "POST", "/review/forget", {"item": f"document:{ids['held']}"}),
        ("admin", "DELETE", file, None),
        ("admin", "DELETE", store, None),
    ]


def requests_beyond_a_writer() -> list[tuple[Role, str, str, Any]]:
    """To routes that are open to a writer, with bodies that are not: to end is to delete, only later."""
    put, delete = {"op": "put", "value": {"text": WORD}} | RECORD, {"op": "delete"} | RECORD
    memory = {"messages": "ours", "category": "fact", "user_id": USER}
    return [
        ("admin", "PATCH", "/ltm/memories/{memory_id}", {"expires_at": "2999-01-01T00:00:00Z"}),
        ("admin", "PATCH", "/ltm/memories/{memory_id}", {"category": "semantic", "expires_in": 60}),
        ("admin", "POST", "/ltm/memories", memory | {"trust": "operator"}),
        ("admin", "POST", "/records/batch", {"operations": [put | {"ttl_minutes": 0.001}]}),
        ("admin", "POST", "/records/batch", {"operations": [put | {"key": "new"}, delete]}),
    ]


async def filled_with_requests(owner: Asked, held: str) -> tuple[dict[str, str], list[tuple[Role, str, str, Any]]]:
    """The names in the patterns of the requests, and the requests."""
    ids = await fill(owner) | {"held": held}
    again = {"messages": f"No more about {WORD}", "category": "fact", "user_id": USER, "key": WORD}
    newer = (await owner.ok("POST", "/ltm/memories", again))["id"]
    names = {"session_id": SESSION, "user_id": USER, "thread_id": WORD, "file_id": ids["memory_id"]}
    names |= {"memory_id": newer, "superseded_id": ids["memory"], "message_id": ids["message"]}
    names |= {name: ids[name] for name in ("memory_store_id", "memory_version_id")}
    return names, requests_of_each_role(ids)


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_key_does_what_its_role_may_and_changes_nothing_else(engine: Engine, namespace: str) -> None:
    async with (
        listening(engine) as url,
        with_key(engine, url, namespace) as owner,
        with_key(engine, url, namespace, "read") as reader,
        with_key(engine, url, namespace, "write") as writer,
    ):
        names, requests = await filled_with_requests(owner, await hold(engine, namespace))
        before = await stored_rows(engine, namespace)
        for asked, refused in ((reader, ("write", "admin")), (writer, ("admin",))):
            for role, method, pattern, body in requests + requests_beyond_a_writer():
                if role in refused or role == "read":
                    answer = await asked.ask(method, pattern, body, **names)
                    assert answer.status_code == (403 if role in refused else 200), (method, pattern, answer.text)
                    assert role == "read" or role in answer.text.partition("key with role")[2]
        after = await stored_rows(engine, namespace)
        assert after == before
        for role, method, pattern, body in requests:
            if role == "write":
                await writer.ok(method, pattern, body, **names)
        (change,) = [
            each for each in (await reader.ok("GET", "/changes?since=0"))["changes"] if each["kind"] == "store"
        ][-1:]
        assert change["author"] == writer.key_id
    asked_of = {(method, pattern.partition("?")[0]) for _, method, pattern, _ in requests}
    for written, known in (("file_id", "memory_id"), ("superseded_id", "memory_id"), ("memory:{memory_id}", "{name}")):
        asked_of = {(method, pattern.replace(written, known)) for method, pattern in asked_of}
    assert asked_of == ROUTES - {("GET", "/metrics")}


# What a key may do that is limited to a user, with what is the user's. All else is refused.
OF_ONE_USER = {
    ("GET", "/health"),
    ("GET", "/stm/{session_id}/messages"),
    ("POST", "/stm/{session_id}/messages"),
    ("GET", "/stm/{session_id}/context"),
    ("PUT", "/stm/{session_id}/config"),
    ("GET", "/sessions"),
    ("POST", "/sessions"),
    ("GET", "/sessions/{session_id}"),
    ("PUT", "/sessions/{session_id}"),
    ("PATCH", "/sessions/{session_id}"),
    ("GET", "/sessions/{session_id}/messages"),
    ("POST", "/sessions/{session_id}/messages"),
    ("GET", "/messages/{message_id}"),
    ("POST", "/recall"),
    ("GET", "/ltm/memories"),
    ("POST", "/ltm/memories"),
    ("POST", "/ltm/memories/facts"),
    ("POST", "/ltm/memories/search"),
    ("GET", f"/ltm/memories/pinned?user_id={USER}"),
    ("GET", "/ltm/memories/{memory_id}"),
    ("PUT", "/ltm/memories/{memory_id}"),
    ("PATCH", "/ltm/memories/{memory_id}"),
    ("GET", "/ltm/memories/{memory_id}/history"),
    ("POST", "/ltm/memories/{superseded_id}/undo"),
    ("DELETE", "/ltm/memories/{memory_id}"),
    ("DELETE", f"/ltm/memories?user_id={USER}"),
    ("POST", "/coding/context"),
    ("POST", "/coding/turns"),
    ("POST", "/memories/add"),
}


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_key_for_one_user_sees_and_changes_nothing_of_others(engine: Engine, namespace: str) -> None:
    async with (
        listening(engine) as url,
        with_key(engine, url, namespace) as owner,
        with_key(engine, url, namespace, limits=Limits(USER)) as own,
        with_key(engine, url, namespace, limits=Limits("anna")) as another,
        with_key(engine, url, namespace, limits=Limits(None, "anna")) as agent,
    ):
        names, requests = await filled_with_requests(owner, await hold(engine, namespace))
        before = await stored_rows(engine, namespace, "anna")
        for asked in (another, agent):
            for _, method, pattern, body in requests:
                answer = await asked.ask(method, pattern, body, **names)
                seen = answer.text.replace(USER, "")
                assert answer.status_code in (403, 404) or WORD not in seen, (method, pattern, seen)
        assert await stored_rows(engine, namespace, "anna") == before
        allowed = set()
        for _, method, pattern, body in requests:
            answer = await own.ask(method, pattern, body, **names)
            if answer.status_code != 403:
                assert answer.status_code in (200, 201), (method, pattern, answer.text)
                allowed.add((method, pattern))
        assert allowed == OF_ONE_USER


async def check_review(owner: Asked, stranger: Asked, held: str) -> None:
    assert (await stranger.ok("GET", "/review"))["items"] == []
    for decide in ("/review/release", "/review/forget"):
        assert (await stranger.ask("POST", decide, {"item": held})).status_code == 404
    assert [each["item"] for each in (await owner.ok("GET", "/review"))["items"]] == [held]


async def check_short_term(stranger: Asked) -> None:
    for route in ("messages", "context"):
        seen = await stranger.ok("GET", "/stm/{session_id}/" + route, session_id=SESSION)
        assert seen["messages"] == []
    await stranger.ok("PUT", "/stm/{session_id}/config", {"max_messages": 1}, session_id=SESSION)
    said = [{"role": "user", "content": "mine"}]
    await stranger.ok("POST", "/stm/{session_id}/messages", {"messages": said}, session_id=SESSION)
    seen = await stranger.ok("GET", "/stm/{session_id}/messages", session_id=SESSION)
    assert [message["content"] for message in seen["messages"]] == ["mine"]
    await stranger.ok("DELETE", "/stm/{session_id}", session_id=SESSION)


async def check_sessions(stranger: Asked, message_id: str) -> None:
    """The owner's session has the same id: none of these sees it, changes it or takes anything from it."""
    name = {"session_id": SESSION}
    assert (await stranger.ok("GET", "/sessions"))["sessions"] == []
    assert (await stranger.ask("GET", "/sessions/{session_id}", **name)).status_code == 404
    assert (await stranger.ask("PATCH", "/sessions/{session_id}", {"title": "mine"}, **name)).status_code == 404
    assert (await stranger.ok("GET", "/sessions/{session_id}/messages", **name))["messages"] == []
    assert (await stranger.ok("DELETE", "/sessions/{session_id}/messages/last", **name))["message"] is None
    nowhere = {**name, "message_id": str(uuid4())}
    assert (await stranger.ask("DELETE", "/sessions/{session_id}/messages/{message_id}", **nowhere)).status_code == 404
    assert (await stranger.ok("DELETE", "/sessions/{session_id}/messages", **name))["removed"] == 0
    assert not (await stranger.ok("DELETE", "/sessions/{session_id}", **name))["deleted"]
    await stranger.ok("POST", "/sessions", {"id": SESSION})
    await stranger.ok("PUT", "/sessions/{session_id}", {"user_id": "anonymous"}, **name)
    said = {"messages": [{"role": "user", "text": "mine", "payload": 1}]}
    (own,) = (await stranger.ok("POST", "/sessions/{session_id}/messages", said, **name))["messages"]
    assert (await stranger.ok("GET", "/messages/{message_id}", message_id=own["id"]))["session_id"] == SESSION
    assert (await stranger.ask("GET", "/messages/{message_id}", message_id=message_id)).status_code == 404
    assert (await stranger.ok("DELETE", "/sessions/{session_id}", **name))["deleted"]


async def check_long_term(stranger: Asked, memory_id: str) -> None:
    for filters in (
        {},
        {"user_id": USER},
        {"session_id": SESSION},
        {"exclude_session": "another"},
        {"roles": ["user"]},
    ):
        assert (await stranger.ok("POST", "/recall", {"query": WORD} | filters))["memories"] == []
    assert (await stranger.ok("POST", "/ltm/memories/search", {"query": WORD, "user_id": USER}))["results"] == []
    now = datetime.now(UTC).isoformat().replace("+", "%2B")
    for query in ("", f"?key={WORD}", "?pinned=true", f"?as_of={now}", f"?valid_at={now}"):
        assert (await stranger.ok("GET", "/ltm/memories" + query))["results"] == []
    assert (await stranger.ok("GET", f"/ltm/memories/pinned?user_id={USER}"))["results"] == []
    asked = {"query": WORD, "user_id": USER, "include_pinned": True}
    assert (await stranger.ok("POST", "/recall", asked))["pinned"]["memories"] == []
    at_that_time = {"query": WORD, "user_id": USER, "as_of": datetime.now(UTC).isoformat()}
    assert (await stranger.ok("POST", "/ltm/memories/search", at_that_time))["results"] == []
    assert (await stranger.ok("POST", "/recall", at_that_time))["memories"] == []
    assert (await stranger.ok("GET", "/ltm/memories"))["results"] == []
    for method, pattern, body in (
        ("GET", "/ltm/memories/{memory_id}", None),
        ("PUT", "/ltm/memories/{memory_id}", {"data": "mine now"}),
        ("PATCH", "/ltm/memories/{memory_id}", {"category": "semantic"}),
        ("POST", "/ltm/memories/{memory_id}/undo", None),
        ("DELETE", "/ltm/memories/{memory_id}", None),
        ("GET", "/ltm/memories/{memory_id}/history", None),
        ("GET", "/ltm/memories/{memory_id}/lineage", None),
        ("GET", "/lineage/{name}", None),
    ):
        answer = await stranger.ask(method, pattern, body, memory_id=memory_id, name=f"memory:{memory_id}")
        assert answer.status_code == 404
        assert WORD not in answer.text
    anything = {"query": WORD, "user_id": USER, "where": {"nothing": {"ne": 1}}}
    assert (await stranger.ok("POST", "/ltm/memories/search", anything))["results"] == []
    assert (await stranger.ok("GET", '/ltm/memories?where={{"nothing":{{"ne":1}}}}'))["results"] == []
    for query in (f"?user_id={USER}", "?everybody=true"):
        assert await stranger.ok("DELETE", "/ltm/memories" + query) == {"deleted": 0}
    said = {"messages": [{"role": "user", "content": f"All about {WORD}"}], "user_id": USER}
    (fact,) = (await stranger.ok("POST", "/ltm/memories/facts", said))["results"]
    assert (fact["outcome"], fact["id"] == memory_id) == ("created", False)
    assert (await stranger.ask("DELETE", "/ltm/memories", None)).status_code == 422
    assert await stranger.ok("DELETE", f"/ltm/memories?user_id={USER}") == {"deleted": 1}
    own = {"messages": f"All about {WORD}", "category": "fact", "user_id": USER, "key": WORD}
    replacing = await stranger.ask("POST", "/ltm/memories", own | {"supersedes": [memory_id]})
    assert replacing.status_code == 404
    assert (await stranger.ok("POST", "/ltm/memories", own))["id"] != memory_id


async def check_coding(stranger: Asked) -> None:
    another = AGENT | {"session_id": "another"}
    for body in (another, another | {"prompt": f"What about {WORD}?"}):
        assert (await stranger.ok("POST", "/coding/context", body))["context"] is None
    await stranger.ok("POST", "/coding/turns", AGENT | {"key": "1", "prompt": "mine"})
    seen = await stranger.ok("GET", "/stm/{session_id}/messages", session_id=f"claude-code:{SESSION}")
    assert [message["content"] for message in seen["messages"]] == ["mine"]
    await stranger.ok("DELETE", "/stm/{session_id}", session_id=f"claude-code:{SESSION}")


async def check_records(stranger: Asked) -> None:
    """The same path and key in another namespace is another record."""
    operations: list[dict[str, Any]] = [
        {"op": "get"} | RECORD,
        {"op": "search", "query": WORD},
        {"op": "search", "filter": {"text": WORD}},
        {"op": "search", "vector": [1.0]},
        {"op": "paths"},
        {"op": "delete"} | RECORD,
    ]
    answers = (await stranger.ok("POST", "/records/batch", {"operations": operations}))["answers"]
    assert answers[0]["record"] is None
    assert [answer["records"] for answer in answers[1:4]] == [[], [], []]
    assert (answers[4]["paths"], answers[5]["deleted"]) == ([], False)
    for own in ({"op": "put", "value": "mine"}, {"op": "delete"}):
        await stranger.ok("POST", "/records/batch", {"operations": [own | RECORD]})


async def check_checkpoints(stranger: Asked) -> None:
    """The same thread in another namespace is another thread."""
    mine = {"target_thread_id": "mine"}
    assert await stranger.ok("POST", "/checkpoints/{thread_id}/copy", mine, thread_id=WORD) == {"copied": 0}
    assert await stranger.ok("POST", "/checkpoints/list", {}) == {"checkpoints": []}
    own = {"checkpoint_id": "1", "task_id": "t", "writes": [{"idx": 0, "channel": "c", "value": PACKED}]}
    await stranger.ok("POST", "/checkpoints/{thread_id}/writes", own, thread_id=WORD)
    assert await stranger.ok("POST", "/checkpoints/delete-runs", {"run_ids": [WORD]}) == {"deleted": 0}
    await stranger.ok("POST", "/checkpoints/prune", {"thread_ids": [WORD], "strategy": "delete"})
    await stranger.ok("PUT", "/checkpoints/{thread_id}", CHECKPOINT | {"values": {}}, thread_id=WORD)
    (found,) = (await stranger.ok("POST", "/checkpoints/list", {"thread_id": WORD}))["checkpoints"]
    assert found["values"] == {}
    await stranger.ok("DELETE", "/checkpoints/{thread_id}", thread_id=WORD)


async def check_gateway(stranger: Asked, key_of_owner: str) -> None:
    """A user's key with a namespace key of another: refused. The same user id in another namespace: another user."""
    own_key = (await stranger.ok("POST", "/users", {"user_id": USER}))["user_key"]
    said = [{"sender_id": "x", "role": "user", "timestamp": 1, "content": "x"}]
    search = {"query": WORD, "scope": SCOPES, "conversation_id": WORD}
    requests: dict[str, dict[str, Any]] = {
        "/memories/search": search,
        "/memories/add": {"session_id": CHAT, "messages": said},
        "/memories/flush": {"session_id": CHAT},
        "/resources": {"resource_uri": f"file:{WORD}", "text": "x"},
    }
    for path, body in requests.items():
        for wrong in (key_of_owner, own_key[:-1], "uk_unknown", WORD):
            answer = await stranger.ask("POST", path, body | {"user_id": USER, "user_key": wrong})
            assert answer.status_code == 401, path
            assert wrong not in answer.text
    found = await stranger.ok("POST", "/memories/search", search | {"user_id": USER, "user_key": own_key})
    assert [result for result in found["results"] if result["source_scope"] != "all_user_memory"] == []
    assert all("All about" in result["text"] for result in found["results"])


async def check_stores(stranger: Asked, ids: dict[str, str]) -> None:
    """A store, a file or a version of somebody else is not there, in a store of one's own neither."""
    one = "/v1/memory_stores/{memory_store_id}"
    file, version = f"{one}/memories/{{memory_id}}", f"{one}/memory_versions/{{memory_version_id}}"
    assert (await stranger.ok("GET", "/v1/memory_stores"))["data"] == []
    own = (await stranger.ok("POST", "/v1/memory_stores", {"name": "mine"}))["id"]
    for method, pattern, body in (
        ("GET", one, None),
        ("POST", one, {"name": "mine"}),
        ("POST", f"{one}/archive", None),
        ("GET", f"{one}/memories", None),
        ("POST", f"{one}/memories", {"path": "/mine", "content": "mine"}),
        ("GET", f"{one}/memory_versions", None),
        ("DELETE", one, None),
        ("GET", file, None),
        ("POST", file, {"content": "mine"}),
        ("DELETE", file, None),
        ("GET", version, None),
        ("POST", f"{version}/redact", None),
    ):
        stores = [own] if pattern in (file, version, f"{version}/redact") else []
        for store in (ids["memory_store_id"], *stores):
            answer = await stranger.ask(method, pattern, body, **ids | {"memory_store_id": store})
            assert answer.status_code == 404, (method, pattern)
            assert WORD not in answer.text
    assert (await stranger.ok("GET", f"{one}/memories", memory_store_id=own))["data"] == []
    versions = f"{one}/memory_versions?memory_id={ids['memory_id']}"
    assert (await stranger.ok("GET", versions, memory_store_id=own))["data"] == []


async def check_forgetting(stranger: Asked) -> None:
    """The same user id in another namespace: what is forgotten there is that namespace's."""
    receipt = await stranger.ok("DELETE", "/users/{user_id}", user_id=USER)
    assert receipt["rows"]["api_keys"] == 1
    assert (await stranger.ask("DELETE", "/users/{user_id}", user_id=USER)).status_code == 404


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
@pytest.mark.parametrize(
    "strange",
    ["a' or '1'='1", "..", "%2e%2e%2f", "a;drop table sessions", "x" * 300, "ñ/é", "%00", "a\\b", "日本", "{id}"],
)
async def test_a_strange_id_is_an_id_or_a_clear_refusal(engine: Engine, strange: str) -> None:
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        for path in (f"/stm/{strange}/messages", f"/stm/{strange}/context", f"/ltm/memories/{strange}"):
            answer = await http.get(path)
            assert answer.status_code in (200, 307, 404, 422), (path, answer.text)
            assert "Traceback" not in answer.text
        said = {"messages": [{"role": "user", "content": "x"}]}
        answer = await http.post(f"/stm/{strange}/messages", json=said)
        assert answer.status_code in (200, 404, 405, 422)


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 422),
        (b"", 422),
        (b"\xff\xfe", 422),
        (b'{"messages": "\xff", "category": "fact", "user_id": "u"}', 422),
        (b'{"messages": "\\ud800", "category": "fact", "user_id": "u"}', 422),
        (b'{"messages": "a\\u0000b", "category": "fact", "user_id": "u"}', 422),
        (b'{"messages": 7, "category": "fact", "user_id": "u"}', 422),
        (b"[" * 5000, 422),
        (b'{"messages": "x", "category": "fact", "user_id": "u", "metadata": {"a": NaN}}', 422),
    ],
    ids=["half", "empty", "no UTF-8", "UTF-8 inside", "surrogate", "NUL", "a number", "deep", "NaN"],
)
async def test_a_body_that_cannot_be_read_is_refused_in_a_sentence(engine: Engine, body: bytes, status: int) -> None:
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        answer = await http.post("/ltm/memories", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == status, answer.text
        assert answer.json()["detail"]


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/memories/search", {"query": "x", "scope": [0] * 100_000}),
        ("/stm/s/messages", {"messages": [0] * 100_000}),
        ("/ltm/memories", {"messages": [0] * 100_000, "category": "fact", "user_id": "u"}),
        ("/ltm/memories/search", {"query": "x", "user_id": "u", "categories": [0] * 100_000}),
    ],
    ids=["scope", "messages", "memory", "categories"],
)
async def test_a_list_of_faults_is_answered_in_short(engine: Engine, path: str, body: dict[str, Any]) -> None:
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        if path.startswith("/memories"):
            key = (await http.post("/users", json={"user_id": "u"})).json()["user_key"]
            body = {"user_id": "u", "user_key": key, **body}
        answer = await http.post(path, json=body)
        assert answer.status_code == 422
        assert len(answer.content) < 2000


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_metadata_that_no_answer_could_hold_is_refused(engine: Engine) -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"a": deep}
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        said = [{"role": "user", "content": "x", "metadata": deep}]
        assert (await http.post("/stm/s/messages", json={"messages": said})).status_code == 422
        memory = {"messages": "x", "category": "fact", "user_id": "u", "metadata": deep}
        assert (await http.post("/ltm/memories", json=memory)).status_code == 422
        assert (await http.get("/stm/s/messages")).json()["messages"] == []


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_nobody_can_become_the_owner_of_sessions_without_one(engine: Engine) -> None:
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        answer = await http.post("/users", json={"user_id": "anonymous"})
        assert answer.status_code == 422
        assert "anonymous" in answer.json()["detail"]
