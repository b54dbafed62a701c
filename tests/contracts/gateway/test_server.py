"""The server's side of the gateway contract: search, add and flush, and the users and resources they need."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, Literal
from uuid import uuid4

import httpx
import pytest

from recollect.engine import Engine
from recollect.flows.gateway import Owner
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from tests.gateway_clients import NOON, GatewayUser, new_user, said
from tests.rest_servers import serving

SEARCH, ADD, FLUSH, RESOURCES = PATHS = ("/memories/search", "/memories/add", "/memories/flush", "/resources")

JSON = {"Content-Type": "application/json"}

USABLE: dict[str, dict[str, Any]] = {
    SEARCH: {"query": "tea", "scope": ["all_user_memory"]},
    ADD: {"session_id": "chat:1", "messages": said("anna", "Tea?")},
    FLUSH: {"session_id": "chat:1"},
    RESOURCES: {"resource_uri": "file:///tea", "text": "Tea is hot."},
}


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


@pytest.fixture
async def http(engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(engine) as client:
        yield client


@pytest.fixture
async def anna(http: httpx.AsyncClient) -> GatewayUser:
    return await new_user(http, "anna")


async def test_a_turn_goes_in_and_comes_out_as_the_contract_has_it(anna: GatewayUser) -> None:
    where = {"app_id": "default", "project_id": "default"}
    asked = {"query": "When does she like to travel?", "scope": ["current_chat", "resources"], "top_k": 8}
    before = await anna.ok(SEARCH, conversation_id="7f3a", **asked, **where)
    assert before == {"results": []}
    messages = [
        {"sender_id": "anna", "role": "user", "timestamp": NOON, "content": "I would rather fly early in the morning."},
        {"sender_id": "beaver", "role": "assistant", "timestamp": NOON + 1000, "content": "Noted."},
    ]
    added = await anna.ok(ADD, session_id="chat:7f3a", messages=messages, **where)
    assert added.pop("stored_as").startswith("chat:7f3a@")
    assert added == {"session_id": "chat:7f3a", "added": 2, "duplicates": 0}
    assert await anna.ok(FLUSH, session_id="chat:7f3a", **where) == {"session_id": "chat:7f3a", "status": "flushed"}
    (first, second) = (await anna.ok(SEARCH, conversation_id="7f3a", **asked, **where))["results"]
    assert 0 < first.pop("score") <= 1
    assert first.pop("id") != second["id"]
    assert first == {
        "session_id": "chat:7f3a",
        "text": "I would rather fly early in the morning.",
        "source_scope": "current_chat",
        "resource_uri": None,
        "raw": {
            "kind": "message",
            "user_id": "anna",
            "app_id": "default",
            "project_id": "default",
            "role": "user",
            "sender_id": "anna",
            "timestamp": NOON,
        },
    }
    assert (second["raw"]["role"], second["raw"]["sender_id"], second["raw"]["timestamp"]) == (
        "assistant",
        "beaver",
        NOON + 1000,
    )


async def test_a_field_that_nobody_reads_is_refused_and_nothing_is_added(anna: GatewayUser) -> None:
    message = said("anna", "Tea, please.")[0]
    for messages, more in (([message | {"mood": "thirsty"}], {}), ([message], {"retries": 3})):
        refusal = await anna.refused(422, ADD, session_id="chat:1", messages=messages, **more)
        assert "Unknown field" in refusal
    assert await anna.texts("tea") == []


async def test_a_blank_message_is_refused_by_its_place(anna: GatewayUser) -> None:
    refusal = await anna.refused(422, ADD, session_id="chat:1", messages=said("anna", "Tea?", " "))
    assert "messages[1].content is empty" in refusal


@pytest.mark.unindexed("it needs a message that still waits to be embedded")
async def test_before_the_flush_words_are_found_and_after_it_meaning_too(anna: GatewayUser) -> None:
    await anna.ok(ADD, session_id="chat:1", messages=said("anna", "My physician told me to rest."))
    assert await anna.texts("physician") == ["My physician told me to rest."]
    assert await anna.texts("the doctor recommends sleep") == []
    await anna.ok(FLUSH, session_id="chat:1")
    assert await anna.texts("the doctor recommends sleep") == ["My physician told me to rest."]


async def test_a_chat_that_is_not_there_or_is_anothers_cannot_be_flushed(anna: GatewayUser) -> None:
    bob = await new_user(anna.http, "bob")
    await anna.say("1", "Tea, please.")
    unknown = await anna.refused(404, FLUSH, session_id="chat:2")
    assert "add messages to it first" in unknown
    assert await bob.refused(404, FLUSH, session_id="chat:2") == unknown
    await bob.refused(404, FLUSH, session_id="chat:1")
    await anna.refused(404, FLUSH, session_id="chat:1", project_id="other")


async def test_a_user_gets_a_key_once(http: httpx.AsyncClient) -> None:
    answer = await http.post("/users", json={"user_id": "anna"})
    assert answer.status_code == 201
    assert answer.json().keys() == {"user_id", "user_key", "created_at"}
    assert answer.json()["user_key"].startswith("uk_")
    again = await http.post("/users", json={"user_id": "anna"})
    assert again.status_code == 409
    assert "recollect keys revoke" in again.json()["detail"]
    assert answer.json()["user_key"] not in again.text


async def test_users_are_made_by_who_may_use_the_namespace_and_then_need_no_other_key(
    engine: Engine, http: httpx.AsyncClient, namespace: str
) -> None:
    anna = await new_user(http, "anna")
    keys = {place: (await engine.access.create_key(place)).secret for place in (namespace, f"test-{uuid4()}")}
    own, other = ({"Authorization": f"Bearer {secret}"} for secret in keys.values())
    assert (await http.post("/users", json={"user_id": "bob"})).status_code == 401
    made = await http.post("/users", json={"user_id": "anna"}, headers=other)
    assert made.status_code == 201
    for path in (ADD, FLUSH, SEARCH, RESOURCES):
        body = {"user_id": "anna", "user_key": anna.user_key} | USABLE[path]
        assert (await http.post(path, json=body)).status_code in (200, 201)
        assert (await http.post(path, json=body, headers=own)).status_code == 200
        assert (await http.post(path, json=body, headers=other)).status_code == 401
    there = GatewayUser(http, "anna", made.json()["user_key"])
    assert await there.texts("tea") == []
    assert sorted(await anna.texts("tea")) == ["Tea is hot.", "Tea?"]


async def test_a_wrong_credential_is_refused_without_saying_what_is_wrong_with_it(
    engine: Engine, anna: GatewayUser, namespace: str
) -> None:
    bob = await new_user(anna.http, "bob")
    revoked = await new_user(anna.http, "carl")
    (key,) = [key for key in await engine.access.keys(namespace) if key.user_id == "carl"]
    await engine.access.revoke(namespace, key.id)
    key_of_namespace = (await engine.access.create_key(f"test-{uuid4()}")).secret
    wrong = {
        "the key is wrong": {"user_key": "uk_wrong"},
        "the key is nearly right": {"user_key": anna.user_key[:-1]},
        "the key is another's": {"user_key": bob.user_key},
        "the user is another": {"user_id": "bob"},
        "nobody has this id": {"user_id": "nobody"},
        "the id is a pattern": {"user_id": "%"},
        "the id is SQL": {"user_id": "anna' or '1' = '1"},
        "the key is revoked": {"user_id": "carl", "user_key": revoked.user_key},
        "the key is of a namespace": {"user_key": key_of_namespace},
    }
    answers = {
        await anna.refused(401, path, **USABLE[path] | credential) for path in PATHS for credential in wrong.values()
    }
    assert answers == {'{"detail":"user_id or user_key is not valid"}'}
    assert await anna.found("tea") == []


async def test_two_users_with_the_same_conversation_never_see_each_other(anna: GatewayUser) -> None:
    bob = await new_user(anna.http, "bob")
    await anna.say("1", "Anna grows roses.")
    await bob.say("1", "Bob grows tulips.")
    await anna.say("1", "Anna waters roses.")
    await bob.say("1", "Bob waters tulips.")
    for user, flowers in ((anna, "roses"), (bob, "tulips")):
        for scope in ("current_chat", "all_user_memory"):
            found = await user.found("Who grows flowers and waters them?", scope, conversation_id="1")
            assert {result["text"].split()[-1] for result in found} == {f"{flowers}."}
            assert {result["session_id"] for result in found} == {"chat:1"}
            assert len(found) == 2


async def test_apps_and_projects_keep_their_memories_apart(anna: GatewayUser) -> None:
    places = [
        {},
        {"app_id": "shop"},
        {"project_id": "shop"},
        {"app_id": "shop", "project_id": "shop"},
        {"app_id": "shop,", "project_id": "shop"},
        {"app_id": "shop", "project_id": ",shop"},
    ]
    for number, where in enumerate(places):
        await anna.say("1", f"Parrot number {number}.", **where)
        text = f"Parrot book {number}."
        await anna.ok(RESOURCES, resource_uri="file:///parrots", text=text, **where)
    for number, where in enumerate(places):
        everywhere = await anna.texts("parrot", "current_chat", "resources", conversation_id="1", **where)
        assert sorted(everywhere) == [f"Parrot book {number}.", f"Parrot number {number}."]
        assert sorted(await anna.texts("parrot", **where)) == sorted(everywhere)


async def test_each_scope_finds_its_own_and_names_the_narrowest(anna: GatewayUser) -> None:
    await anna.say("1", "Parrots talk.")
    await anna.say("2", "Parrots fly.")
    await anna.ok(RESOURCES, resource_uri="file:///parrots", text="Parrots live long.")

    async def asked(*scope: str) -> dict[str, str]:
        found = await anna.found("parrots", *scope, conversation_id="1")
        assert len({result["id"] for result in found}) == len(found)
        return {result["text"]: result["source_scope"] for result in found}

    chat, resource = {"Parrots talk.": "current_chat"}, {"Parrots live long.": "resources"}
    assert await asked("current_chat") == chat
    assert await asked("resources") == resource
    assert await asked("current_chat", "resources") == chat | resource
    everything = dict.fromkeys(["Parrots talk.", "Parrots fly.", "Parrots live long."], "all_user_memory")
    assert await asked("all_user_memory") == everything
    assert await asked("all_user_memory", "current_chat") == everything | chat
    assert await asked("all_user_memory", "resources", "current_chat", "resources") == everything | chat | resource


async def test_the_best_of_all_scopes_come_first_and_no_more_than_top_k(anna: GatewayUser) -> None:
    await anna.say("1", "The weather is fine.", "Roses need water.", "I had lunch.")
    await anna.ok(RESOURCES, resource_uri="r:1", text="How to water roses in summer: water the roses at night.")
    scope = ("current_chat", "resources", "all_user_memory")
    query = "how to water roses"
    assert len(await anna.texts(query, *scope, conversation_id="1")) == 4
    best = await anna.texts(query, *scope, conversation_id="1", top_k=2)
    assert set(best) == {"Roses need water.", "How to water roses in summer: water the roses at night."}


async def test_a_repeated_add_stores_nothing_twice(engine: Engine, anna: GatewayUser, namespace: str) -> None:
    messages = said("anna", "One.", "Two.", "Three.")
    first = await anna.ok(ADD, session_id="chat:1", messages=messages[:2])
    assert (first["added"], first["duplicates"]) == (2, 0)
    again = await anna.ok(ADD, session_id="chat:1", messages=messages)
    assert (again["added"], again["duplicates"]) == (1, 2)
    twice = await anna.ok(ADD, session_id="chat:1", messages=messages + said("anna", "Four.", "Four.", start=NOON - 1))
    assert (twice["added"], twice["duplicates"]) == (2, 3)
    other_chat = await anna.ok(ADD, session_id="chat:2", messages=messages)
    assert other_chat["added"] == 3
    history = await engine.conversations.history(namespace, first["stored_as"], 10)
    assert [(message.position, message.content) for message in history.messages] == [
        (0, "One."),
        (1, "Two."),
        (2, "Three."),
        (3, "Four."),
        (4, "Four."),
    ]


async def test_a_message_that_differs_in_anything_is_another(anna: GatewayUser) -> None:
    message = said("anna", "One.")[0]
    changes: list[dict[str, Any]] = [
        {"sender_id": "bea"},
        {"role": "assistant"},
        {"timestamp": NOON + 1},
        {"content": "One!"},
    ]
    messages = [message, *(message | changed for changed in changes), message]
    added = await anna.ok(ADD, session_id="chat:1", messages=messages)
    assert (added["added"], added["duplicates"]) == (5, 1)


async def test_many_identical_adds_at_once_store_one(engine: Engine, anna: GatewayUser, namespace: str) -> None:
    bob = await new_user(anna.http, "bob")
    both = said("anna", "One.", "Two.")

    async def add(user: GatewayUser) -> int:
        added = await user.ok(ADD, session_id="chat:1", messages=both)
        assert added["added"] + added["duplicates"] == 2
        return int(added["added"])

    counts = await asyncio.gather(*(add(user) for _ in range(32) for user in (anna, bob)))
    assert sorted(counts)[-2:] == [2, 2]
    assert sum(counts) == 4
    for user in (anna, bob):
        assert sorted(await user.texts("one two", "current_chat", conversation_id="1")) == ["One.", "Two."]
        history = await engine.conversations.history(namespace, Owner(namespace, user.user_id).stored("chat:1"), 10)
        assert [(message.position, message.content) for message in history.messages] == [(0, "One."), (1, "Two.")]


async def test_an_add_with_one_bad_message_stores_none(anna: GatewayUser) -> None:
    for bad in ({"content": " "}, {"content": "a\x00b"}, {"sender_id": "\x00"}, {"role": "tool"}, {"timestamp": 0}):
        messages = [*said("anna", "A good message."), said("anna", "Another.")[0] | bad]
        await anna.refused(422, ADD, session_id="chat:1", messages=messages)
    assert await anna.found("a good message") == []


async def test_other_doors_see_a_chat_and_the_gateway_sees_what_they_wrote_for_the_user(
    engine: Engine, anna: GatewayUser, namespace: str
) -> None:
    stored = (await anna.say("1", "Anna likes tea."))["stored_as"]
    history = await engine.conversations.history(namespace, stored, 10)
    assert history.conversation.user_id == "anna"
    assert [(m.role, m.speaker, m.content) for m in history.messages] == [("user", "anna", "Anna likes tea.")]
    assert history.messages[0].created_at.timestamp() * 1000 == NOON
    await engine.remember.turn(namespace, Turn("talk", (NewMessage("user", "Tea at five."),), owner_if_new="anna"))
    await engine.remember.turn(namespace, Turn("chat:1", (NewMessage("user", "Tea at six."),), owner_if_new="anna"))
    await engine.remember.turn(namespace, Turn("other", (NewMessage("user", "Tea for bob."),), owner_if_new="bob"))
    assert await anna.texts("tea", "current_chat", conversation_id="1") == ["Anna likes tea."]
    assert sorted(await anna.texts("tea")) == ["Anna likes tea.", "Tea at five.", "Tea at six."]
    assert await anna.texts("tea", app_id="shop") == []


async def test_a_resource_is_stored_found_by_meaning_and_replaced(anna: GatewayUser) -> None:
    uri = "https://example.org/handbook?page=1#travel"
    given = {"resource_uri": uri, "title": "Travel handbook", "metadata": {"page": 1}}
    stored = await anna.post(RESOURCES, text="Flights are booked two weeks ahead.", **given)
    assert stored.status_code == 201
    assert stored.json()["resource_uri"] == uri
    assert stored.json()["embedding_status"] == "success"
    (result,) = await anna.found("reserving a judge on a plane", "resources")
    assert (result["text"], result["resource_uri"]) == ("Flights are booked two weeks ahead.", uri)
    assert (result["id"], result["session_id"], result["source_scope"]) == (stored.json()["id"], None, "resources")
    assert (result["raw"]["kind"], result["raw"]["title"]) == ("resource", "Travel handbook")
    assert result["raw"]["metadata"] == {"page": 1}
    assert [each["id"] for each in await anna.found("handbook", "resources")] == [result["id"]]
    again = await anna.post(RESOURCES, content="Trains are better.", resource_uri=uri)
    assert again.status_code == 200
    assert again.json()["id"] == stored.json()["id"]
    assert again.json()["created_at"] == stored.json()["created_at"]
    assert await anna.texts("flights handbook trains", "resources") == ["Trains are better."]


async def test_users_do_not_share_resources(anna: GatewayUser) -> None:
    bob = await new_user(anna.http, "bob")
    for user in (anna, bob):
        answer = await user.post(RESOURCES, resource_uri="file:///tea", text=f"Tea of {user.user_id}.")
        assert answer.status_code == 201
    for user in (anna, bob):
        assert await user.texts("tea", "resources", "all_user_memory") == [f"Tea of {user.user_id}."]


BAD_INPUT: list[tuple[str, dict[str, Any], str]] = [
    (SEARCH, {"scope": []}, "scope"),
    (SEARCH, {"scope": "current_chat"}, "scope"),
    (SEARCH, {"scope": ["all_user_memory", "everything"]}, "all_user_memory"),
    (SEARCH, {"scope": ["current_chat"]}, "conversation_id is missing"),
    (SEARCH, {"scope": ["current_chat"], "conversation_id": ""}, "conversation_id"),
    (SEARCH, {"scope": ["current_chat"], "conversation_id": " "}, "conversation_id"),
    (SEARCH, {"scope": ["current_chat"], "conversation_id": "x" * 300}, "conversation_id"),
    (SEARCH, {"scope": ["current_chat"], "conversation_id": "a\x00"}, "NUL"),
    (SEARCH, {"query": ""}, "query"),
    (SEARCH, {"query": " \n"}, "query is empty"),
    (SEARCH, {"query": None}, "query"),
    (SEARCH, {"top_k": 0}, "top_k"),
    (SEARCH, {"top_k": 101}, "top_k"),
    (SEARCH, {"top_k": "8"}, "top_k"),
    (SEARCH, {"app_id": ""}, "app_id"),
    (SEARCH, {"app_id": " "}, "app_id is empty"),
    (SEARCH, {"project_id": "x" * 256}, "project_id"),
    (SEARCH, {"project_id": "a\x00"}, "project_id"),
    (SEARCH, {"user_id": "x" * 10_000}, "user_id"),
    (SEARCH, {"user_id": ["anna"]}, "user_id"),
    (ADD, {"messages": []}, "messages"),
    (ADD, {"messages": {}}, "messages"),
    (ADD, {"messages": said("anna", *["x"] * 1001)}, "messages"),
    (ADD, {"messages": said("anna", "x", start=-1)}, "timestamp"),
    (ADD, {"messages": said("anna", "x", start=10**18)}, "timestamp"),
    (ADD, {"messages": said("x" * 256, "x")}, "sender_id"),
    (ADD, {"messages": said("anna", "x", role="system")}, "role"),
    (ADD, {"session_id": ""}, "session_id"),
    (ADD, {"session_id": "\t"}, "session_id is empty"),
    (ADD, {"session_id": "chat:" + "x" * 250}, "session_id"),
    (FLUSH, {"session_id": "chat:\ud800"}, "session_id"),
    (FLUSH, {"session_id": None}, "session_id"),
    (RESOURCES, {"resource_uri": ""}, "resource_uri"),
    (RESOURCES, {"resource_uri": "x" * 2049}, "resource_uri"),
    (RESOURCES, {"text": " "}, "text is empty"),
    (RESOURCES, {"metadata": []}, "metadata"),
    (RESOURCES, {"metadata": {"a": "\x00"}}, "NUL"),
]


async def test_bad_input_is_refused_with_what_is_wrong_and_nothing_is_stored(anna: GatewayUser) -> None:
    for path, body, named in BAD_INPUT:
        assert named in await anna.refused(422, path, **USABLE[path] | body), body
    assert await anna.found("tea x") == []


STRANGE_NAMES = [
    "'; drop table sessions; --",
    "../../etc/passwd",
    "%",
    "chat:%",
    "a/b\\c?d#e",
    "\u202eevil\u2066",
    "名前 🍵",
    "x" * 225,
]


async def test_a_strange_name_is_only_a_name(anna: GatewayUser) -> None:
    for name in STRANGE_NAMES:
        where = {"app_id": name, "project_id": name}
        await anna.ok(ADD, session_id="chat:1", messages=said("anna", "Another chat about tea."), **where)
        await anna.ok(ADD, session_id=f"chat:{name}", messages=said("anna", "A chat about tea."), **where)
        await anna.ok(RESOURCES, resource_uri=name, text="A book about tea.", **where)
        found = await anna.found("tea", "current_chat", "resources", conversation_id=name, **where)
        assert {result["text"]: result["session_id"] or result["resource_uri"] for result in found} == {
            "A chat about tea.": f"chat:{name}",
            "A book about tea.": name,
        }
        user = await new_user(anna.http, name)
        assert await user.texts("tea", **where) == []


async def test_a_long_prompt_is_searched_by_and_one_without_words_finds_nothing(anna: GatewayUser) -> None:
    await anna.say("1", "My physician told me to rest.")
    assert await anna.texts("What did the physician say? " + "Blah. " * 10_000) == ["My physician told me to rest."]
    assert await anna.texts("👍?") == []


async def test_a_key_is_in_no_log_line_and_no_error(anna: GatewayUser, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for path in (ADD, FLUSH, SEARCH, RESOURCES):
            await anna.ok(path, **USABLE[path])
            await anna.refused(401, path, **USABLE[path] | {"user_id": "bob"})
            await anna.refused(422, path, **USABLE[path] | {"app_id": 5, "user_key": [anna.user_key]})
            await anna.refused(422, path, **USABLE[path] | {"user_id": None})
            await anna.refused(422, path, **USABLE[path] | {"user_key": anna.user_key * 100})
            await anna.refused(422, path)
            broken = await anna.http.post(path, content=f'{{"user_key": "{anna.user_key}", ', headers=JSON)
            assert broken.status_code == 422
            assert anna.user_key not in broken.text
        await anna.refused(404, FLUSH, session_id="chat:none")
    assert any(record.name == "recollect.requests" for record in caplog.records), "nothing was logged"
    for record in caplog.records:
        assert anna.user_key not in f"{record.getMessage()} {vars(record)}"
