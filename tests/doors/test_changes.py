"""The feed of changes through every door: pages, streams, subscriptions, and who is said to have written what."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from mcp.types import ResourceUpdatedNotification, TextResourceContents

from recollect import MemoryManager, origin
from recollect.doors import changes
from recollect.engine import Engine
from recollect.flows.long_term.memory_requests import Options
from recollect.memory.memories import MemoryScope
from recollect.settings import Settings
from recollect.storage import embedded
from recollect.storage.sql import Query
from recollect.tasks import in_thread
from tests.commands import RECOLLECT, recollect
from tests.mcp_servers import environment, over_stdio
from tests.rest_servers import listening
from tests.rest_servers import serving as serving_rest

EVENTS = {"Accept": "text/event-stream"}
EXPIRE = Query.named(
    "test.changes.expire", "update memories set expires_at = now() - interval '1 second' where namespace = :namespace"
)


@asynccontextmanager
async def stream(http: httpx.AsyncClient, **options: Any) -> AsyncIterator[AsyncIterator[str]]:
    """The events of a stream, each as its lines."""
    headers = EVENTS | options.pop("headers", {})
    async with http.stream("GET", "/changes", headers=headers, **options) as answer:
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("text/event-stream")

        async def events() -> AsyncGenerator[str, None]:
            lines: list[str] = []
            async for line in answer.aiter_lines():
                if line:
                    lines.append(line)
                else:
                    yield "\n".join(lines)
                    lines = []

        async with aclosing(events()) as found:
            yield found


def number(event: str) -> int:
    """The id of an event, which is the number of the change in its data."""
    name, data = event.split("\n")
    change = json.loads(data.removeprefix("data: "))
    assert name == f"id: {change['number']}"
    return int(change["number"])


async def test_pages_over_rest(engine: Engine) -> None:
    async with serving_rest(engine) as http:
        assert (await http.get("/changes")).json() == {"changes": [], "next": 0}
        for text in ("One.", "Two."):
            body = {"messages": [{"role": "user", "content": text}]}
            (await http.post("/stm/talk/messages", json=body)).raise_for_status()
        first = (await http.get("/changes?limit=1")).json()
        assert first["next"] == 1
        (change,) = first["changes"]
        assert change | {"at": "", "content": {}} == {
            "number": 1,
            "at": "",
            "event": "add",
            "kind": "message",
            "item_id": "talk",
            "author": None,
            "door": "rest",
            "detail": {"first": 0, "count": 1},
            "content": {},
        }
        assert [message["text"] for message in change["content"]["messages"]] == ["One."]
        assert [each["number"] for each in (await http.get("/changes?since=1")).json()["changes"]] == [2]
        assert (await http.get("/changes?since=2")).json() == {"changes": [], "next": 2}
        assert (await http.get("/changes?since=3")).status_code == 409
        for wrong in ("since=-1", "since=x", "limit=0", "limit=501", "before=1"):
            assert (await http.get(f"/changes?{wrong}")).status_code == 422, wrong


async def test_a_stream_goes_on_and_is_resumed(engine: Engine, namespace: str) -> None:
    async with serving_rest(engine) as http:
        await engine.remember.text(namespace, "One.")
        async with stream(http) as events:
            assert number(await anext(events)) == 1
            for expected in (2, 3):
                await engine.remember.text(namespace, f"Text {expected}.")
                assert number(await anext(events)) == expected
        async with stream(http, headers={"Last-Event-ID": "1"}, params={"since": 0}) as events:
            assert [number(await anext(events)) for _ in range(2)] == [2, 3]
        answer = await http.get("/changes", headers=EVENTS | {"Last-Event-ID": "no number"})
        assert answer.status_code == 422


async def test_a_quiet_stream_has_a_heartbeat(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "HEARTBEAT_SECONDS", 0.01)
    async with serving_rest(engine) as http, stream(http) as events:
        assert [await anext(events) for _ in range(3)] == [": nothing new"] * 3


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_stream_ends_with_the_key_that_opened_it(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "HEARTBEAT_SECONDS", 0.01)
    key = await engine.access.create_key(namespace)
    headers = {"Authorization": f"Bearer {key.secret}"}
    async with serving_rest(engine) as http:
        async with stream(http, headers=headers) as events:
            assert await anext(events) == ": nothing new"
            await engine.access.revoke(namespace, key.id)
            async with asyncio.timeout(30):
                assert {each async for each in events} <= {": nothing new"}
        assert (await http.get("/changes", headers=headers)).status_code == 401


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_stream_of_an_open_namespace_ends_when_it_needs_a_key(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "HEARTBEAT_SECONDS", 0.01)
    async with serving_rest(engine) as http, stream(http) as events:
        assert await anext(events) == ": nothing new"
        await engine.access.create_key(namespace)
        async with asyncio.timeout(30):
            assert {each async for each in events} <= {": nothing new"}


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_no_connection_is_held_while_streams_wait(settings: Settings, namespace: str) -> None:
    engine = await Engine.open(settings.model_copy(update={"database_connections": 2, "indexer": False}))
    async with serving_rest(engine) as http:
        opened = [stream(http) for _ in range(8)]
        waiting = [await each.__aenter__() for each in opened]
        assert {await anext(events) for events in waiting} == {": nothing new"}
        await engine.remember.text(namespace, "One.")
        assert [number(await anext(events)) for events in waiting] == [1] * 8
        for each in opened:
            await each.__aexit__(None, None, None)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_label_of_a_key_is_the_author(engine: Engine, namespace: str, mode: str) -> None:
    labelled = await engine.access.create_key(namespace, "the night shift")
    bare = await engine.access.create_key(namespace)
    async with listening(engine) as url:
        for key in (labelled, bare):
            headers = {"Authorization": f"Bearer {key.secret}"}
            async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as http:
                body = {"messages": [{"role": "user", "content": "Hello."}]}
                (await http.post("/stm/talk/messages", json=body)).raise_for_status()
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60) as http2,
                Client(streamable_http_client(f"{url}/mcp", http_client=http2), mode=mode) as client,
            ):
                await client.call_tool("remember", {"text": f"By {key.id}"})
        found = (await engine.feed.page(namespace)).entries
    assert [(entry.change.door, entry.change.author) for entry in found] == [
        ("rest", "the night shift"),
        ("mcp", "the night shift"),
        ("rest", bare.id),
        ("mcp", bare.id),
    ]


async def test_the_author_of_a_turn_of_the_gateway_is_its_user(engine: Engine, namespace: str) -> None:
    async with serving_rest(engine) as http:
        user = (await http.post("/users", json={"user_id": "anna"})).json()
        identity = {"user_id": "anna", "user_key": user["user_key"]}
        messages = [{"sender_id": "anna", "role": "user", "timestamp": 1, "content": "Hello."}]
        body = identity | {"session_id": "chat:1", "messages": messages}
        (await http.post("/memories/add", json=body)).raise_for_status()
        (await http.post("/resources", json=identity | {"resource_uri": "x", "text": "y"})).raise_for_status()
        found = (await engine.feed.page(namespace)).entries
    assert [(entry.change.kind, entry.change.door, entry.change.author) for entry in found] == [
        ("message", "gateway", "anna"),
        ("resource", "gateway", "anna"),
    ]


async def test_two_streams_of_two_namespaces_never_mix(engine: Engine, namespace: str) -> None:
    keys = [await engine.access.create_key(f"{namespace}-{name}") for name in ("one", "two")]
    async with listening(engine) as url:
        for key, name in zip(keys, ("one", "two"), strict=True):
            headers = {"Authorization": f"Bearer {key.secret}"}
            async with (
                httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as http,
                stream(http) as events,
            ):
                assert await anext(events) == ": nothing new"
                other = "two" if name == "one" else "one"
                await engine.remember.text(f"{namespace}-{other}-more", "Elsewhere.")
                await engine.remember.text(f"{namespace}-{name}", f"Of {name}.")
                assert f"Of {name}." in await anext(events)


async def listened(client: Client, uri: str, change: Any) -> str:
    """The address that a client is told to read again after a change."""
    async with client.listen(resource_subscriptions=[uri]) as subscription:
        await change()
        async for event in subscription:
            assert isinstance(event, ResourceUpdated)
            return event.uri
    raise AssertionError("the stream ended")


async def contents(client: Client, uri: str) -> list[dict[str, Any]]:
    (read,) = (await client.read_resource(uri)).contents
    assert isinstance(read, TextResourceContents)
    found: list[dict[str, Any]] = json.loads(read.text)["contents"]
    return found


async def test_a_client_of_mcp_subscribes_over_http(engine: Engine, namespace: str) -> None:
    async with listening(engine) as url, Client(f"{url}/mcp") as client:
        assert client.server_capabilities.resources is not None
        assert client.server_capabilities.resources.subscribe
        await engine.remember.text(f"{namespace}-other", "Elsewhere.")
        told = await listened(client, "memory://changes", lambda: engine.remember.text(namespace, "One."))
        assert told == "memory://changes"
        assert [each["content"] for each in await contents(client, "memory://changes")] == [{"text": "One."}]
        assert await contents(client, "memory://changes?since=1") == []

        async def think() -> None:
            await engine.remember.text(namespace, "No working memory.")
            await engine.cognition.update_working(namespace, "Feed the owls.")

        assert await listened(client, "memory://working-memory", think) == "memory://working-memory"


def test_a_client_of_mcp_subscribes_over_stdio(server: embedded.Lease, namespace: str, tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log, over_stdio(namespace, log) as mcp:

        async def remember() -> None:
            await mcp.sdk.call_tool("remember", {"text": "One."})

        assert mcp.do(listened, mcp.sdk, "memory://changes?since=0", remember) == "memory://changes?since=0"
        (change,) = mcp.read("memory://changes")["contents"]
        assert (change["door"], change["author"], change["content"]) == ("mcp", None, {"text": "One."})
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning")
async def test_a_client_of_the_last_revision_subscribes_over_stdio(
    server: embedded.Lease, namespace: str, tmp_path: Path
) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            await told.put(message.params.uri)

    parameters = StdioServerParameters(command=str(RECOLLECT), args=["mcp"], env=environment(namespace))
    with (tmp_path / "log").open("w") as log:
        async with Client(stdio_client(parameters, log), mode="legacy", message_handler=hear) as client:
            with pytest.raises(MCPError, match="Unknown resource memory://nothing"):
                await client.subscribe_resource("memory://nothing")
            await client.subscribe_resource("memory://changes")
            await client.call_tool("remember", {"text": "One."})
            assert await told.get() == "memory://changes"
            await client.unsubscribe_resource("memory://changes")
            await client.subscribe_resource("memory://episode-memory")
            await client.call_tool("store_episode", {"query": "How?", "reward": 1.0, "reflection": "So."})
            assert await told.get() == "memory://episode-memory"
    assert "Traceback" not in (tmp_path / "log").read_text()


async def test_the_library_pages_through_changes(settings: Settings) -> None:
    async with MemoryManager(settings) as memory:
        await memory.store_document("One.")
        await memory.store_document("Two.")
        page = await memory.changes(limit=1)
        assert ([change.content for change in page.changes], page.next) == ([{"text": "One."}], 1)
        assert [change.door for change in (await memory.changes(page.next)).changes] == ["library"]


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
def test_watch_prints_what_there_is_and_what_comes(settings: Settings) -> None:
    assert recollect("watch", "--once").stdout == ""
    recollect("remember", "The ferry\nleaves at noon.")
    shown = recollect("watch", "--once").stdout
    assert "add     document:" in shown
    assert "by cli" in shown
    assert "The ferry leaves at noon." in shown
    (change,) = map(json.loads, recollect("watch", "--once", "--json").stdout.splitlines())
    assert (change["number"], change["content"]) == (1, {"text": "The ferry\nleaves at noon."})
    assert recollect("watch", "--once", "--since", "1").stdout == ""
    with subprocess.Popen([RECOLLECT, "watch", "--since", "1", "--json"], stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        recollect("remember", "It is late.")
        assert json.loads(watch.stdout.readline())["content"] == {"text": "It is late."}
        watch.send_signal(signal.SIGINT)
        assert watch.wait(30) == 130


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_watch_says_what_became_of_a_memory(engine: Engine, namespace: str) -> None:
    home = (MemoryScope("ann"), None, (), None, Options(key="home"))
    with origin.acting("rest", "the day shift"):
        old = (await engine.memories.add(namespace, "Ann lives in Rome.", "fact", *home)).memory
        new = (await engine.memories.add(namespace, "Ann lives in Bonn.", "fact", *home)).memory
        await engine.memories.undo(namespace, str(old.id))
        async with engine.database.transaction(namespace) as tx:
            await tx.all(EXPIRE)
        await engine.memories.sweep(namespace)
    shown = (await in_thread(recollect, "watch", "--once")).stdout
    assert f"update  memory:{old.id}  superseded by memory:{new.id}  by the day shift (rest)\n" in shown
    assert f"update  memory:{old.id}  restored  by the day shift (rest)\n" in shown
    assert f"delete  memory:{old.id}  expired\n" in shown


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_server_that_stops_ends_its_streams_at_once(settings: Settings, namespace: str) -> None:
    process = await asyncio.create_subprocess_exec(
        RECOLLECT,
        "serve",
        "--port",
        "0",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | environment(namespace),
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().split()[-1]
    async with httpx.AsyncClient(base_url=url, timeout=60) as http, stream(http) as events:
        assert await anext(events) == ": nothing new"
        process.send_signal(signal.SIGTERM)
        assert [event async for event in events] == []
    _, log = await process.communicate()
    assert b"Cancel" not in log, "the server waited for the stream, and cut it off"
