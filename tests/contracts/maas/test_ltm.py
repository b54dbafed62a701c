"""The contract's long-term memory, every example over a real socket."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any, Literal
from uuid import UUID, uuid4

import httpx
import pytest

from recollect.engine import Engine
from recollect.origin import Limits
from tests.flows.long_items import QUESTION, SHORT, chat, embed_as_near_as_can_be
from tests.rest_servers import serving

PATH = "/ltm/memories"
FIELDS = {"id", "memory", "metadata", "created_at", "updated_at", "score"}
SCOPE = {"user_id", "agent_id", "session_id"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
EXAMPLE: dict[str, Any] = {
    "messages": "The user prefers dark mode and uses Vim.",
    "category": "preference",
    "user_id": "user-42",
    "metadata": {"source": "settings-page"},
}
NO_SCOPE = {
    "detail": [
        {
            "type": "value_error",
            "msg": "Value error, At least one of user_id, agent_id, or session_id must be provided",
        }
    ]
}


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


async def test_a_key_for_one_user_fills_in_the_user(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace, role="write", limits=Limits("anna"))
    async with serving(engine, headers={"Authorization": f"Bearer {key.secret}"}) as http:
        added = await ok(await http.post(PATH, json={"messages": "Tea, no sugar.", "category": "preference"}))
        assert added["user_id"] == "anna"
        (found,) = await search(http, "tea")
        assert found["id"] == added["id"]


@pytest.fixture
async def http(engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(engine) as client:
        yield client


async def ok(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def add(http: httpx.AsyncClient, **changes: Any) -> dict[str, Any]:
    return await ok(await http.post(PATH, json=EXAMPLE | changes))


async def search(http: httpx.AsyncClient, query: str, **options: Any) -> list[dict[str, Any]]:
    found = await ok(await http.post(f"{PATH}/search", json={"query": query, **options}))
    assert set(found) == {"results"}
    results: list[dict[str, Any]] = found["results"]
    return results


async def test_the_example_of_adding_a_memory(http: httpx.AsyncClient) -> None:
    added = await http.post(PATH, json=EXAMPLE)
    memory = await ok(added)
    assert set(memory) == FIELDS | SCOPE
    assert [memory[name] for name in ("user_id", "agent_id", "session_id")] == ["user-42", None, None]
    assert UUID(memory["id"]).version == 7
    assert memory["memory"] == "The user prefers dark mode and uses Vim."
    assert memory["metadata"] == {"category": "preference", "source": "settings-page"}
    assert TIME.fullmatch(memory["created_at"])
    assert memory["updated_at"] is None
    assert memory["score"] is None
    assert added.headers["X-Memory-Outcome"] == "created"


async def test_the_example_of_a_search(http: httpx.AsyncClient) -> None:
    memory = await add(http)
    await add(http, messages="Bob owns a red bicycle.", category="fact")
    await add(http, messages="The user thought about editors for a day.", category="episodic")
    query = {"user_id": "user-42", "categories": ["preference", "fact"], "limit": 10}
    first, second = await search(http, "What editor does the user prefer?", **query)
    assert 0.0 <= second["score"] < first["score"] <= 1.0
    assert first == memory | {"score": first["score"]}


async def test_the_example_of_a_list(http: httpx.AsyncClient) -> None:
    first = await add(http)
    second = await add(http, messages="Agents like tea.", user_id=None, agent_id="a", session_id="s", metadata=None)
    assert await ok(await http.get(PATH)) == {"results": [second, first]}
    for scope, wanted in (({"user_id": "user-42"}, first), ({"agent_id": "a"}, second), ({"session_id": "s"}, second)):
        assert await ok(await http.get(PATH, params=scope)) == {"results": [wanted]}
    assert await ok(await http.get(PATH, params={"user_id": "user-42", "agent_id": "a"})) == {"results": []}


async def test_pages_follow_a_cursor_to_the_end(http: httpx.AsyncClient) -> None:
    ids = [(await add(http, messages=f"Memory {number}."))["id"] for number in range(5)]
    seen: list[str] = []
    params: dict[str, str | int] = {"user_id": "user-42", "limit": 2}
    while True:
        page = await http.get(PATH, params=params)
        seen += [memory["id"] for memory in (await ok(page))["results"]]
        if "X-Next-Cursor" not in page.headers:
            break
        params["cursor"] = page.headers["X-Next-Cursor"]
    assert seen == ids[::-1]


async def test_the_examples_of_one_memory(http: httpx.AsyncClient) -> None:
    memory = await add(http)
    place = f"{PATH}/{memory['id']}"
    assert await ok(await http.get(place)) == memory
    updated = await ok(await http.put(place, json={"data": "Updated memory content"}))
    assert TIME.fullmatch(updated["updated_at"])
    assert updated == memory | {"memory": "Updated memory content", "updated_at": updated["updated_at"]}
    assert await ok(await http.get(place)) == updated
    assert [found["memory"] for found in await search(http, "content", user_id="user-42")] == ["Updated memory content"]
    deleted = {"id": memory["id"], "deleted": True, "superseded": [], "restored": []}
    assert await ok(await http.delete(place)) == deleted
    assert (await http.get(place)).status_code == 404
    assert await search(http, "content", user_id="user-42") == []


async def test_the_example_of_a_history_whose_texts_go_with_the_memory(http: httpx.AsyncClient) -> None:
    memory = await add(http)
    place = f"{PATH}/{memory['id']}"
    await http.put(place, json={"data": "Updated memory content"})
    history = await ok(await http.get(f"{place}/history"))
    assert set(history) == {"entries"}
    for entry in history["entries"]:
        assert set(entry) == {"id", "memory_id", "old_memory", "new_memory", "event", "timestamp"}
        assert UUID(entry["id"]).version == 7
        assert TIME.fullmatch(entry["timestamp"])
        assert entry["memory_id"] == memory["id"]
    assert len({entry["id"] for entry in history["entries"]}) == 2
    assert [(entry["event"], entry["old_memory"], entry["new_memory"]) for entry in history["entries"]] == [
        ("create", None, memory["memory"]),
        ("update", memory["memory"], "Updated memory content"),
    ]
    await http.delete(place)
    after = (await ok(await http.get(f"{place}/history")))["entries"]
    assert [(entry["event"], entry["old_memory"], entry["new_memory"]) for entry in after] == [
        (event, None, None) for event in ("create", "update", "delete")
    ]
    assert [entry["id"] for entry in after[:2]] == [entry["id"] for entry in history["entries"]]


async def test_a_search_and_a_list_filter_by_category_metadata_and_time(http: httpx.AsyncClient) -> None:
    old = await add(http, messages="Tea in the morning.", metadata={"source": "chat", "day": 1})
    new = await add(http, messages="Tea in the evening.", category="fact", metadata={"source": "chat", "day": 2})
    cases: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        ({"categories": ["fact"]}, [new]),
        ({"metadata": {"source": "chat", "day": 1}}, [old]),
        ({"since": new["created_at"]}, [new]),
        ({"until": old["created_at"], "metadata": {"source": "chat"}}, [old]),
        ({"since": "2020-01-01", "until": "2099-01-01T00:00:00+02:00"}, [new, old]),
    ]
    for filters, wanted in cases:
        found = await search(http, "tea", user_id="user-42", **filters)
        assert {memory["id"] for memory in found} == {memory["id"] for memory in wanted}, filters
        params = {**filters, "metadata": json.dumps(filters["metadata"])} if "metadata" in filters else filters
        assert (await ok(await http.get(PATH, params=params)))["results"] == wanted, filters


async def test_a_patch_changes_what_it_names(http: httpx.AsyncClient) -> None:
    memory = await add(http)
    place = f"{PATH}/{memory['id']}"
    patch = {"category": "fact", "metadata": {"source": None, "reviewed": True}}
    patched = await ok(await http.patch(place, json=patch))
    assert patched["metadata"] == {"category": "fact", "reviewed": True}
    assert (patched["memory"], patched["id"]) == (memory["memory"], memory["id"])
    assert TIME.fullmatch(patched["updated_at"])
    again = await ok(await http.patch(place, json={"data": "Prefers tea.", "metadata": patched["metadata"]}))
    assert (again["memory"], again["metadata"]) == ("Prefers tea.", patched["metadata"])
    nothing = await http.patch(place, json={})
    assert (nothing.status_code, "Nothing to change" in nothing.text) == (422, True)
    assert (await http.patch(f"{PATH}/{uuid4()}", json=patch)).status_code == 404


async def test_the_same_memory_again_merges_its_metadata_and_says_so(http: httpx.AsyncClient) -> None:
    memory = await add(http)
    again = await http.post(PATH, json=EXAMPLE | {"metadata": {"page": 7}})
    assert again.headers["X-Memory-Outcome"] == "merged"
    merged = await ok(again)
    assert (merged["id"], merged["metadata"]) == (memory["id"], memory["metadata"] | {"page": 7})
    assert list(merged["metadata"]) == ["category", "source", "page"]


async def test_what_a_newer_memory_superseded_comes_back(http: httpx.AsyncClient, engine: Engine) -> None:
    old, new = await add(http), await add(http, messages="The user prefers light mode.")
    await supersede(engine, old["id"], new["id"])
    assert (await ok(await http.get(f"{PATH}/{old['id']}")))["metadata"]["superseded_by"] == new["id"]
    assert await ok(await http.post(f"{PATH}/{old['id']}/undo")) == old
    assert [memory["id"] for memory in (await ok(await http.get(PATH)))["results"]] == [new["id"], old["id"]]
    nothing = await http.post(f"{PATH}/{old['id']}/undo")
    assert (nothing.status_code, "nothing to undo" in nothing.text) == (422, True)
    await supersede(engine, old["id"], new["id"])
    deleted = await ok(await http.delete(f"{PATH}/{new['id']}", params={"restore": True}))
    assert deleted == {"id": new["id"], "deleted": True, "superseded": [], "restored": [old["id"]]}
    assert await ok(await http.get(PATH)) == {"results": [old]}


async def supersede(engine: Engine, old: str, new: str) -> None:
    """What a language model would decide."""
    namespace, flow = engine.settings.namespace, engine.memories
    pair = [await flow.get(namespace, memory_id) for memory_id in (old, new)]
    async with engine.database.transaction(namespace) as tx:
        moment = await engine.capabilities.memories.moment(tx, pair)
        await flow._writer.supersede(tx, pair[0], pair[1], moment, {"because": "language model"})


@pytest.mark.parametrize(
    ("path", "body"), [(PATH, {"messages": "Tea.", "category": "fact"}), (f"{PATH}/search", {"query": "tea"})]
)
async def test_the_example_of_a_missing_scope(http: httpx.AsyncClient, path: str, body: dict[str, Any]) -> None:
    for scope in ({}, {"user_id": None, "agent_id": None, "session_id": None}):
        refused = await http.post(path, json=body | scope)
        assert (refused.status_code, refused.json()) == (422, NO_SCOPE)


async def test_a_chat_is_one_memory(http: httpx.AsyncClient) -> None:
    chat = [
        {"role": "user", "content": "I am allergic to nuts."},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "assistant", "content": "I will remember that.", "name": None, "timestamp": 1},
    ]
    memory = await add(http, messages=chat, category="semantic")
    assert memory["memory"] == "user: I am allergic to nuts.\nassistant: I will remember that."
    assert (await search(http, "food to avoid", user_id="user-42"))[0]["id"] == memory["id"]


async def test_the_same_memory_twice_is_one_also_at_the_same_time(http: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(http.post(PATH, json=EXAMPLE) for _ in range(32)))
    memories = [await ok(answer) for answer in answers]
    assert len({str(memory) for memory in memories}) == 1
    assert sorted(answer.headers["X-Memory-Outcome"] for answer in answers) == ["created"] + ["existing"] * 31
    assert len((await ok(await http.get(PATH)))["results"]) == 1


async def test_an_echo_of_what_was_recalled_is_the_memory_that_exists(http: httpx.AsyncClient) -> None:
    memory = await add(http)
    body = EXAMPLE | {"messages": "You prefer dark mode and use Vim.", "recalled": [memory["memory"]]}
    echo = await http.post(PATH, json=body)
    assert await ok(echo) == memory
    assert echo.headers["X-Memory-Outcome"] == "echo"


async def test_the_category_of_a_memory_is_the_one_that_was_asked_for(http: httpx.AsyncClient) -> None:
    memory = await add(http, metadata={"category": "mine", "nested": {"a": [1, None]}})
    assert memory["metadata"] == {"category": "preference", "nested": {"a": [1, None]}}


async def test_no_caller_can_say_that_a_memory_is_superseded(http: httpx.AsyncClient) -> None:
    memory = await add(http, metadata={"superseded_by": "another", "source": "chat"})
    assert memory["metadata"] == {"category": "preference", "source": "chat"}
    assert (await ok(await http.get(f"{PATH}/{memory['id']}")))["metadata"] == memory["metadata"]


async def test_an_unknown_memory_is_404_with_a_sentence(http: httpx.AsyncClient) -> None:
    for memory_id in ("mem-uuid", str(uuid4()), "0", "%00", "é"):
        place = f"{PATH}/{memory_id}"
        answers = [
            await http.get(place),
            await http.put(place, json={"data": "text"}),
            await http.delete(place),
            await http.get(f"{place}/history"),
        ]
        for answer in answers:
            assert answer.status_code == 404, (memory_id, answer.text)
            assert answer.json()["detail"].startswith("Unknown memory ")


BAD_MEMORIES: list[dict[str, Any]] = [
    {"messages": ""},
    {"messages": " \n"},
    {"messages": []},
    {"messages": [{"role": "user", "content": " "}]},
    {"messages": [{"content": "no role"}]},
    {"messages": [{"role": "user"}]},
    {"messages": [{"role": "user", "content": 7}]},
    {"messages": {"role": "user", "content": "no list"}},
    {"messages": None},
    {"messages": "a\x00b"},
    {"category": "opinion"},
    {"category": None},
    {"user_id": ""},
    {"user_id": "u" * 256},
    {"user_id": 7},
    {"metadata": ["no object"]},
    {"recalled": "no list"},
]
BAD_SEARCHES: list[dict[str, Any]] = [
    {"query": ""},
    {"query": "?!"},
    {"query": None},
    {"limit": 0},
    {"limit": 1001},
    {"limit": "ten"},
    {"categories": ["opinion"]},
    {"categories": "fact"},
    {"categories": []},
    {"metadata": []},
    {"metadata": {"category": "fact"}},
    {"since": 7},
    {"since": "yesterday"},
    {"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"},
    {"user_id": ""},
]
BAD_LISTS = [
    {"limit": "0"},
    {"limit": "1001"},
    {"cursor": "nonsense"},
    {"cursor": "MjAyNCB4"},
    {"user_id": ""},
    {"metadata": "[1]"},
    {"metadata": "{"},
    {"since": "7"},
    {"categories": "tea"},
]


async def test_bad_input_is_422_with_a_reason_and_nothing_is_stored(http: httpx.AsyncClient) -> None:
    answers = [(change, await http.post(PATH, json=EXAMPLE | change)) for change in BAD_MEMORIES]
    for change in BAD_SEARCHES:
        body = {"query": "tea", "user_id": "u"} | change
        answers.append((change, await http.post(f"{PATH}/search", json=body)))
    answers += [(params, await http.get(PATH, params=params)) for params in BAD_LISTS]
    for change, answer in answers:
        assert answer.status_code == 422, (change, answer.text)
        assert answer.json()["detail"], change
    assert await ok(await http.get(PATH)) == {"results": []}


async def test_a_blank_update_is_422_and_changes_nothing(http: httpx.AsyncClient) -> None:
    memory = await add(http)
    place = f"{PATH}/{memory['id']}"
    for body in ({"data": ""}, {"data": " \t"}, {"data": None}, {}):
        assert (await http.put(place, json=body)).status_code == 422
    assert await ok(await http.get(place)) == memory


async def test_an_update_to_what_another_memory_says_is_409(http: httpx.AsyncClient) -> None:
    memory = await add(http)
    other = await add(http, messages="Something else.")
    refused = await http.put(f"{PATH}/{other['id']}", json={"data": EXAMPLE["messages"]})
    assert refused.status_code == 409
    assert memory["id"] in refused.json()["detail"]


async def test_a_long_memory_hides_no_short_one_at_any_limit(
    http: httpx.AsyncClient, engine: Engine, namespace: str
) -> None:
    talk = [{"role": "user", "content": line.removeprefix("user: ")} for line in chat(1000).splitlines()]
    await add(http, messages=talk)
    await embed_as_near_as_can_be(engine, namespace)
    for text in SHORT:
        await add(http, messages=text)
    for limit in (5, 10, 50, 100):
        found = await search(http, QUESTION, user_id="user-42", limit=limit)
        assert len({memory["id"] for memory in found}) == len(found) == min(limit, 13)


async def test_a_memory_says_when_it_was_said(http: httpx.AsyncClient) -> None:
    memory = await add(http, at="2023-05-08T15:56:00+02:00")
    assert memory["created_at"] == "2023-05-08T13:56:00Z"
    (found,) = await search(http, "Which editor?", user_id="user-42", until="2023-12-31T00:00:00Z")
    assert found["id"] == memory["id"]
    again = await add(http, at="2024-01-01T00:00:00Z")
    assert (again["id"], again["created_at"]) == (memory["id"], memory["created_at"])
    assert (await http.post(PATH, json=EXAMPLE | {"at": "yesterday"})).status_code == 422
