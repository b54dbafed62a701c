"""Where an item comes from, told through every door, and citations of the words that matched."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextResourceContents

from recollect import MemoryManager
from recollect.engine import Engine
from recollect.errors import Invalid, NotFound
from recollect.settings import Settings
from tests.commands import recollect
from tests.rest_servers import listening, serving

HOME = {"category": "fact", "user_id": "ann", "key": "home city"}


async def ok(http: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    answer = await http.request(method, path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


async def test_rest_tells_of_authors_doors_and_sources(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace, "the night shift")
    headers = {"Authorization": f"Bearer {key.secret}"}
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as http:
        said = {"messages": [{"role": "user", "content": "I moved to Rome.", "speaker": "Ann"}]}
        await ok(http, "POST", "/stm/talk/messages", said)
        ((message),) = (await ok(http, "POST", "/recall", {"query": "Rome"}))["memories"]
        source = f"message:{message['id']}"
        paris = await ok(http, "POST", "/ltm/memories", HOME | {"messages": "Ann lives in Paris."})
        rome = await ok(http, "POST", "/ltm/memories", HOME | {"messages": "Ann lives in Rome.", "sources": [source]})
        story = await ok(http, "GET", f"/ltm/memories/{rome['id']}/lineage")
        assert story == await ok(http, "GET", f"/lineage/memory:{rome['id']}")
        assert story == await ok(http, "GET", f"/lineage/{rome['id']}")
        assert (story["state"], story["text"], story["key"]) == ("in_force", "Ann lives in Rome.", "home city")
        ((event),) = story["events"]
        assert (event["event"], event["author"], event["door"]) == ("stored", "the night shift", "rest")
        (told,) = story["sources"]
        expected = {"name": source, "text": "I moved to Rome.", "speaker": "Ann", "author": "the night shift"}
        assert told | expected == told
        (replaced,) = story["superseded"]
        assert (replaced["memory"]["text"], replaced["because"]) == ("Ann lives in Paris.", "key")
        old = await ok(http, "GET", f"/ltm/memories/{paris['id']}/lineage")
        assert old["superseded_by"]["name"] == f"memory:{rome['id']}"
        assert [event["event"] for event in old["events"]] == ["stored", "superseded"]


async def test_rest_refuses_unknown_items_and_unknown_sources(engine: Engine) -> None:
    async with serving(engine) as http:
        for path in (f"/lineage/{uuid4()}", "/lineage/insight:1", "/ltm/memories/nothing/lineage"):
            assert (await http.get(path)).status_code == 404, path
        for name in ("nothing:1", "user:ann"):
            assert (await http.get(f"/lineage/{name}")).status_code == 422, name
        unknown = f"document:{uuid4()}"
        answer = await http.post("/ltm/memories", json=HOME | {"messages": "Ann moved.", "sources": [unknown]})
        assert answer.status_code == 422
        assert f"Unknown source {unknown}: store it before what is made from it" in answer.text


async def test_the_mcp_resource_tells_the_same(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace, "an assistant")
    headers = {"Authorization": f"Bearer {key.secret}"}
    async with (
        listening(engine) as url,
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        stored = await client.call_tool("remember", {"text": "The ferry leaves at noon."})
        name = (stored.structured_content or {})["id"]
        (contents,) = (await client.read_resource(f"memory://lineage?id={name}")).contents
        assert isinstance(contents, TextResourceContents)
        (story,) = json.loads(contents.text)["contents"]
        assert (story["name"], story["text"]) == (name, "The ferry leaves at noon.")
        assert [(event["door"], event["author"]) for event in story["events"]] == [("mcp", "an assistant")]
        for wrong in ("memory://lineage", "memory://lineage?id=insight:1", "memory://lineage?id=nothing:1"):
            with pytest.raises(MCPError):
                await client.read_resource(wrong)


async def test_the_library_tells_of_an_insight_and_its_messages(settings: Settings, engine: Engine) -> None:
    async with MemoryManager(settings) as memory:
        session = await memory.create_session("ann")
        said = await memory.store_message(session, "user", "I moved to Rome.", speaker="Ann")
        story = await memory.lineage(said)
        assert (story.name, story.speaker, story.events[0].door) == (f"message:{said}", "Ann", "library")
        scope = engine.settings.namespace
        async with engine.database.reading(scope) as db:
            seq = (await engine.capabilities.log.by_ids(db, [said]))[said].seq
        insight = (await engine.cognition.compress(scope, "Ann moved to Rome.", [seq])).insight.id
        (source,) = (await memory.lineage(f"insight:{insight}")).sources
        assert (source.name, source.text) == (story.name, "I moved to Rome.")
        with pytest.raises(NotFound):
            await memory.lineage(uuid4())
        wrong: Any = 12
        with pytest.raises(Invalid, match="not a int"):
            await memory.lineage(wrong)


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_why_tells_a_story_that_one_can_read(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace, "the night shift")
    headers = {"Authorization": f"Bearer {key.secret}"}
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as http:
        talk = {"messages": [{"role": "user", "speaker": "Ann", "content": "I moved."}]}
        said = (await ok(http, "POST", "/stm/talk/messages", talk))["messages"][0]["id"]
        given = HOME | {"messages": "Ann lives in Paris.", "sources": [f"message:{said}"]}
        paris = (await ok(http, "POST", "/ltm/memories", given))["id"]
        await ok(http, "PUT", f"/ltm/memories/{paris}", {"data": "Ann lives in Paris, France."})
        rome = (await ok(http, "POST", "/ltm/memories", HOME | {"messages": "Ann lives in Rome."}))["id"]
        assert recollect("memories", "undo", paris).returncode == 0
        ends = (datetime.now(UTC) + timedelta(days=30)).replace(microsecond=0)
        await ok(http, "PATCH", f"/ltm/memories/{paris}", {"expires_at": ends.isoformat()})
    shown = recollect("why", paris).stdout
    assert shown.startswith(f'memory:{paris} is in force.\n  "Ann lives in Paris, France."\n')
    for part in (
        "stored by the night shift over REST",
        '      it said: "Ann lives in Paris."\n      now:     "Ann lives in Paris, France."',
        "replaced by the night shift over REST\n"
        f'      in its place: "Ann lives in Rome." (memory:{rome})\n      because it has the same key',
        "restored on the command line",
        f"      expires: none -> {ends:%Y-%m-%d %H:%M:%S} UTC",
        "What it superseded:",
        ' UTC, Ann, stored by the night shift over REST\n      "I moved."\n',
    ):
        assert part in shown, shown
    assert json.loads(recollect("why", f"memory:{paris}", "--json").stdout)["name"] == f"memory:{paris}"
    unknown = recollect("why", "insight:1")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "No item has the id insight:1" in unknown.stderr


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_story_obeys_no_control_characters(engine: Engine, namespace: str) -> None:
    document = (await engine.remember.text(namespace, "Red \x1b[31m and\nmore.")).id
    shown = recollect("why", f"document:{document}").stdout
    assert "\x1b" not in shown
    assert "and more." in shown


async def test_citations_are_the_words_that_matched_at_every_door(engine: Engine, namespace: str) -> None:
    text = "The ferries left Größe harbour; nobody's ferry was late."
    await engine.remember.text(namespace, text)
    async with serving(engine) as http:
        (found,) = (await ok(http, "POST", "/recall", {"query": "When did the ferry leave?", "explain": True}))[
            "memories"
        ]
        cited = found["explanation"]["citations"]
        assert [text[each["start"] : each["end"]] for each in cited] == ["ferries", "ferry"]
        assert (await ok(http, "POST", "/recall", {"query": "ferry"}))["memories"][0]["explanation"] is None


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_citations_of_a_long_item_lie_in_its_whole_text(
    engine: Engine, namespace: str, settings: Settings
) -> None:
    dull = "Nothing at all happened at sea today, and the crew slept through the long afternoon. "
    text = dull * 40 + "Both ferries left. " + dull * 40
    await engine.remember.text(namespace, text)
    asked = {"query": "When did the ferry leave?", "explain": True}
    async with serving(engine) as http:
        (found,) = (await ok(http, "POST", "/recall", asked))["memories"]
        cited = found["explanation"]["citations"]
        assert len(found["text"]) < len(dull) * 40
        assert [text[each["start"] : each["end"]] for each in cited] == ["ferries"]
        assert found["explanation"]["cited_words"] == ["ferries"]
    async with MemoryManager(settings) as memory:
        (best,) = (await memory.recall(asked["query"], explain=True)).memories  # type: ignore[arg-type]
        assert best.explanation is not None
        assert [text[start:end] for start, end in best.explanation.citations] == ["ferries"]
    printed = json.loads(recollect("recall", str(asked["query"]), "--explain", "--json").stdout)
    assert printed["memories"][0]["explanation"]["citations"] == cited
