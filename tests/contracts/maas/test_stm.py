"""The contract's short-term memory, every example over a real socket, in both of its stores."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID, uuid4

import httpx
import pytest

from recollect.engine import Engine
from recollect.flows.remember import Turn
from recollect.memory.index.search import Scope
from recollect.memory.log import NewMessage
from recollect.settings import Settings
from tests.rest_servers import serving
from tests.valkey import shared_url, stoppable, url_of, with_redis

MESSAGES = "/stm/abc123/messages"
CONTEXT = "/stm/abc123/context"
CONFIG = "/stm/abc123/config"
SESSION = "/stm/abc123"

EXAMPLE = {
    "messages": [
        {"role": "user", "content": "Hello, how are you?", "metadata": {"source": "chat-ui"}},
        {"role": "assistant", "content": "I'm doing well, thanks!"},
    ]
}
CONFIG_EXAMPLE = {"strategy": "token_threshold", "max_messages": 100, "max_tokens": 4000}
FIELDS = {"id", "role", "content", "metadata", "timestamp", "token_count"}
NO_REDIS = {"detail": "Redis not initialized"}


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


@pytest.fixture(params=["postgresql", "redis"])
async def http(request: pytest.FixtureRequest, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    stored = settings if request.param == "postgresql" else with_redis(settings, shared_url())
    async with serving(await Engine.open(stored)) as client:
        yield client


def ok(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def add(http: httpx.AsyncClient, *contents: str) -> list[dict[str, Any]]:
    body = {"messages": [{"role": "user", "content": content} for content in contents]}
    added: list[dict[str, Any]] = ok(await http.post(MESSAGES, json=body))["messages"]
    return added


async def test_adding_messages(http: httpx.AsyncClient) -> None:
    began = time.time()
    answer = ok(await http.post(MESSAGES, json=EXAMPLE))
    assert set(answer) == {"session_id", "added", "messages"}
    assert (answer["session_id"], answer["added"]) == ("abc123", 2)
    first, second = answer["messages"]
    assert set(first) == set(second) == FIELDS
    assert (first["role"], first["content"]) == ("user", "Hello, how are you?")
    assert (first["metadata"], first["token_count"]) == ({"source": "chat-ui"}, 6)
    assert (second["role"], second["metadata"]) == ("assistant", None)
    assert UUID(first["id"]) != UUID(second["id"])
    for message in (first, second):
        assert isinstance(message["timestamp"], float)
        assert began - 60 < message["timestamp"] < time.time() + 60


async def test_retrieving_messages(http: httpx.AsyncClient) -> None:
    added = await add(http, "Hello")
    answer = ok(await http.get(MESSAGES))
    assert answer == {"session_id": "abc123", "messages": added}
    (message,) = answer["messages"]
    assert set(message) == FIELDS
    assert (message["content"], message["metadata"], message["token_count"]) == ("Hello", None, 1)


async def test_the_limit_takes_the_most_recent_messages(http: httpx.AsyncClient) -> None:
    added = await add(http, *(f"message {n}" for n in range(5)))
    assert ok(await http.get(MESSAGES, params={"limit": 2}))["messages"] == added[3:]
    assert ok(await http.get(MESSAGES, params={"limit": 99}))["messages"] == added
    assert ok(await http.get(MESSAGES))["messages"] == added


async def test_the_context_is_a_sliding_window_unless_something_else_is_set(http: httpx.AsyncClient) -> None:
    added = await add(http, *(f"message {n}" for n in range(60)))
    answer = ok(await http.get(CONTEXT))
    assert answer == {
        "session_id": "abc123",
        "messages": added[-50:],
        "strategy": "sliding_window",
        "total_tokens": sum(message["token_count"] for message in added[-50:]),
    }
    ok(await http.put(CONFIG, json={"max_messages": 3}))
    assert ok(await http.get(CONTEXT))["messages"] == added[-3:]


async def test_over_the_threshold_the_older_sixty_percent_become_a_summary(http: httpx.AsyncClient) -> None:
    ok(await http.put(CONFIG, json={"strategy": "token_threshold", "max_tokens": 150}))
    added = await add(
        http, *(f"On day {n} Ann saw {n + 3} birds, and wrote them all down in her book." for n in range(10))
    )
    answer = ok(await http.get(CONTEXT))
    assert set(answer) == {"session_id", "messages", "strategy", "total_tokens"}
    assert answer["strategy"] == "token_threshold"
    summary, *rest = answer["messages"]
    assert rest == added[6:]
    assert set(summary) == FIELDS
    assert summary["role"] == "summary"
    assert summary["metadata"] == {
        "summary_method": "extractive",
        "summarized_messages": 6,
        "first_message_id": added[0]["id"],
        "last_message_id": added[5]["id"],
    }
    assert "Ann" in summary["content"]
    assert answer["total_tokens"] == sum(message["token_count"] for message in answer["messages"]) <= 150
    assert ok(await http.get(MESSAGES))["messages"] == answer["messages"]


async def test_deleting_a_session(http: httpx.AsyncClient) -> None:
    await add(http, "Hello")
    ok(await http.put(CONFIG, json=CONFIG_EXAMPLE))
    assert ok(await http.delete(SESSION)) == {"session_id": "abc123", "deleted": True}
    assert ok(await http.get(MESSAGES)) == {"session_id": "abc123", "messages": []}
    assert ok(await http.get(CONTEXT))["strategy"] == "sliding_window"
    assert ok(await http.delete(SESSION)) == {"session_id": "abc123", "deleted": False}


async def test_configuring_a_session(http: httpx.AsyncClient) -> None:
    assert ok(await http.put(CONFIG, json=CONFIG_EXAMPLE)) == {"session_id": "abc123", "config": CONFIG_EXAMPLE}
    assert ok(await http.get(CONTEXT))["strategy"] == "token_threshold"


async def test_what_a_configuration_leaves_out_is_null_and_follows_the_default(http: httpx.AsyncClient) -> None:
    ok(await http.put(CONFIG, json=CONFIG_EXAMPLE))
    answer = ok(await http.put(CONFIG, json={"max_tokens": 100}))
    assert answer["config"] == {"strategy": None, "max_messages": None, "max_tokens": 100}
    assert ok(await http.get(CONTEXT))["strategy"] == "sliding_window"


async def test_a_session_that_nobody_wrote_to_is_an_empty_buffer(http: httpx.AsyncClient) -> None:
    assert ok(await http.get(MESSAGES)) == {"session_id": "abc123", "messages": []}
    assert ok(await http.get(CONTEXT)) == {
        "session_id": "abc123",
        "messages": [],
        "strategy": "sliding_window",
        "total_tokens": 0,
    }
    assert ok(await http.post(MESSAGES, json={"messages": []})) == {
        "session_id": "abc123",
        "added": 0,
        "messages": [],
    }


async def test_every_role_of_the_contract_is_kept(http: httpx.AsyncClient) -> None:
    roles = ["user", "assistant", "system", "summary"]
    body = {"messages": [{"role": role, "content": "Hello"} for role in roles]}
    ok(await http.post(MESSAGES, json=body))
    assert [message["role"] for message in ok(await http.get(MESSAGES))["messages"]] == roles


async def test_messages_that_cannot_be_used_are_refused_and_none_is_added(http: httpx.AsyncClient) -> None:
    usable = {"role": "user", "content": "Hello"}
    for messages in (
        None,
        "Hello",
        [{"role": "user"}],
        [{"content": "Hello"}],
        [usable | {"role": "tool"}],
        [usable, usable | {"content": " "}],
        [usable, usable | {"content": "NUL\x00"}],
        [usable | {"metadata": ["no object"]}],
        [usable | {"metadata": {"a": "NUL\x00"}}],
    ):
        answer = await http.post(MESSAGES, json={"messages": messages})
        assert (answer.status_code, bool(answer.json()["detail"])) == (422, True), messages
    assert (await http.post(MESSAGES, json={})).status_code == 422
    assert ok(await http.get(MESSAGES))["messages"] == []


async def test_settings_and_limits_that_cannot_be_used_are_refused(http: httpx.AsyncClient) -> None:
    unusable: list[Any] = [{"strategy": "forget"}, {"max_messages": 0}, {"max_tokens": -1}, {"max_tokens": 2**31}, []]
    for config in unusable:
        assert (await http.put(CONFIG, json=config)).status_code == 422, config
    for limit in ("0", "-1", "many", "1.5", str(2**31)):
        assert (await http.get(MESSAGES, params={"limit": limit})).status_code == 422, limit


async def test_what_other_doors_wrote_is_shown_in_the_contracts_words(settings: Settings, namespace: str) -> None:
    engine = await Engine.open(settings)
    async with serving(engine) as http:
        lines = (NewMessage("tool", "42"), NewMessage("user", "Hello", "[1, 2]"))
        await engine.remember.turn(namespace, Turn("abc123", lines, owner_if_new="ann"))
        shown = ok(await http.get(MESSAGES))["messages"]
    assert [(message["role"], message["metadata"]) for message in shown] == [
        ("system", None),
        ("user", {"value": [1, 2]}),
    ]


async def test_the_defaults_of_the_deployment_hold_for_every_session(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STM_STRATEGY", "token_threshold")
    monkeypatch.setenv("STM_MAX_TOKENS", "20")
    monkeypatch.setenv("RECOLLECT_STM_MAX_MESSAGES", "2")
    async with serving(await Engine.open()) as http:
        await add(http, *(f"Ann saw {n} birds in the old park today." for n in range(5)))
        answer = ok(await http.get(CONTEXT))
        assert (answer["strategy"], answer["messages"][0]["role"]) == ("token_threshold", "summary")
        ok(await http.put(CONFIG, json={"strategy": "sliding_window"}))
        assert len(ok(await http.get(CONTEXT))["messages"]) == 2


async def test_without_redis_it_says_so_and_recovers_without_a_restart(settings: Settings) -> None:
    with stoppable() as server:
        async with serving(await Engine.open(with_redis(settings, url_of(server)))) as http:

            async def refused() -> None:
                for answer in (
                    await http.post(MESSAGES, json=EXAMPLE),
                    await http.get(MESSAGES),
                    await http.get(CONTEXT),
                    await http.put(CONFIG, json=CONFIG_EXAMPLE),
                    await http.delete(SESSION),
                ):
                    assert (answer.status_code, answer.json()) == (503, NO_REDIS)

            await refused()
            server.start()
            added = ok(await http.post(MESSAGES, json=EXAMPLE))["messages"]
            server.stop()
            await refused()
            server.start()
            assert ok(await http.get(MESSAGES))["messages"] == added


async def test_a_message_says_when_it_was_said_in_both_stores(http: httpx.AsyncClient) -> None:
    said = {"role": "user", "content": "Hello.", "at": "2023-05-08T13:56:00Z"}
    (added,) = ok(await http.post(MESSAGES, json={"messages": [said]}))["messages"]
    assert added["timestamp"] == datetime(2023, 5, 8, 13, 56, tzinfo=UTC).timestamp()
    assert set(added) == FIELDS
    assert ok(await http.get(MESSAGES))["messages"] == [added]


async def test_a_message_says_who_spoke_and_whose_session_it_begins(settings: Settings) -> None:
    engine = await Engine.open(settings)
    async with serving(engine) as http:
        said = {"role": "user", "content": "I keep bees.", "speaker": "Dana"}
        ok(await http.post(MESSAGES, json={"messages": [said], "user_id": "user-42"}))
        ok(await http.post(MESSAGES, json={"messages": [said], "user_id": "somebody-else"}))
        found = await engine.recall.recall(settings.namespace, "Who keeps bees?", Scope(owner="user-42"))
        assert {memory.speaker for memory in found.memories} == {"Dana"}
        assert (await engine.conversations.get(settings.namespace, "abc123")).user_id == "user-42"


async def test_a_message_that_is_sent_again_under_its_id_is_stored_once(settings: Settings) -> None:
    async with serving(await Engine.open(settings)) as http:
        said = {"role": "user", "content": "Only once.", "id": str(uuid4())}
        body = {"messages": [said, {"role": "user", "content": "And this.", "id": str(uuid4())}]}
        first = ok(await http.post(MESSAGES, json=body))
        assert [message["id"] for message in first["messages"]] == [message["id"] for message in body["messages"]]
        assert ok(await http.post(MESSAGES, json=body)) == first
        assert ok(await http.get(MESSAGES))["messages"] == first["messages"]
        other = await http.post(MESSAGES, json={"messages": [said | {"content": "Something else."}]})
        assert other.status_code == 409
        assert "already exists with other content" in other.json()["detail"]


@pytest.mark.parametrize("field", [{"id": "7"}, {"at": "yesterday"}, {"speaker": ""}, {"at": 1707900000}])
async def test_what_no_message_can_say_is_refused(http: httpx.AsyncClient, field: dict[str, Any]) -> None:
    answer = await http.post(MESSAGES, json={"messages": [{"role": "user", "content": "Hello.", **field}]})
    assert answer.status_code == 422
    assert next(iter(field)) in answer.text


@pytest.mark.parametrize(
    ("more", "of_message"),
    [({"user_id": "user-42"}, {}), ({}, {"speaker": "Dana"}), ({}, {"id": str(uuid4())})],
    ids=["user_id", "speaker", "id"],
)
async def test_redis_refuses_what_it_could_not_keep(
    settings: Settings, more: dict[str, Any], of_message: dict[str, Any]
) -> None:
    async with serving(await Engine.open(with_redis(settings, shared_url()))) as http:
        body = {"messages": [{"role": "user", "content": "Hello.", **of_message}], **more}
        answer = await http.post(MESSAGES, json=body)
        assert answer.status_code == 422
        assert "Short-term windows in Redis keep no user_id, speaker or id" in answer.text
        assert ok(await http.get(MESSAGES))["messages"] == []


async def test_a_window_is_read_as_it_was_where_history_is_kept(http: httpx.AsyncClient, request: Any) -> None:
    days = [datetime(2024, 1, day, tzinfo=UTC).isoformat() for day in range(1, 8)]
    messages = [{"role": "user", "content": f"On day {n} " + "we " * 18, "at": day} for n, day in enumerate(days, 1)]
    ok(await http.post(MESSAGES, json={"messages": messages}))
    ok(await http.put(CONFIG, json={"strategy": "token_threshold", "max_tokens": 80}))
    summary, *rest = ok(await http.get(CONTEXT))["messages"]
    assert summary["role"] == "summary"
    if "redis" in request.node.callspec.id:
        for path in (MESSAGES, CONTEXT):
            answer = await http.get(path, params={"as_of": days[0]})
            assert (answer.status_code, "keep no history, PostgreSQL does" in answer.text) == (422, True)
        return
    before = ok(await http.get(CONTEXT, params={"as_of": days[1]}))
    assert [message["content"][:8] for message in before["messages"]] == ["On day 1", "On day 2"]
    assert before["total_tokens"] == sum(message["token_count"] for message in before["messages"])
    after = ok(await http.get(CONTEXT, params={"as_of": days[-2]}))["messages"]
    assert after == [summary, *rest[:-1]]
    assert ok(await http.get(MESSAGES, params={"as_of": days[-2]}))["messages"] == after
    assert ok(await http.get(MESSAGES, params={"as_of": days[-2], "limit": 1}))["messages"] == after[-1:]
    assert ok(await http.get(CONTEXT, params={"as_of": "2023-12-31T00:00:00Z"}))["messages"] == []
    ok(await http.put(CONFIG, json={"strategy": "sliding_window", "max_messages": 1}))
    assert ok(await http.get(CONTEXT, params={"as_of": days[-2]}))["messages"] == after[-1:]
    for moment, problem in (("2999-01-01T00:00:00Z", "in the future"), ("yesterday", "write a date and time")):
        answer = await http.get(CONTEXT, params={"as_of": moment})
        assert (answer.status_code, problem in answer.text) == (422, True)
