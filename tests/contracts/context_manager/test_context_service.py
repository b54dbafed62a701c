"""Contract context-manager-mcp: the synchronous service, as its examples call it."""

import asyncio
import json
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from recollect import ContextService, Invalid, NotFound, Settings


@pytest.fixture(autouse=True)
def service(settings: Settings) -> Iterator[None]:
    yield
    ContextService.close()


@pytest.fixture
def conversation(service: None) -> dict[str, Any]:
    return ContextService.create_conversation(user_id="user-456", title="Technical Discussion")


def test_a_new_conversation_has_the_contracts_fields(conversation: dict[str, Any]) -> None:
    assert list(conversation) == ["id", "user_id", "title", "created_at", "updated_at"]
    assert UUID(conversation["id"])
    assert conversation["user_id"] == "user-456"
    assert conversation["title"] == "Technical Discussion"
    assert datetime.fromisoformat(conversation["created_at"]).tzinfo is not None


def test_a_title_is_optional() -> None:
    assert ContextService.create_conversation("user-456")["title"] is None


def test_an_interaction_returns_both_messages_and_its_time(conversation: dict[str, Any]) -> None:
    result = ContextService.record_interaction(
        conversation_id=conversation["id"],
        user_message="What's the capital of France?",
        assistant_response="The capital of France is Paris.",
        metadata='{"model": "claude-opus", "tokens": 150}',
    )
    assert list(result) == ["conversation_id", "user_message", "assistant_message", "recorded_at"]
    said, answered = result["user_message"], result["assistant_message"]
    assert list(said) == ["id", "conversation_id", "role", "content", "metadata", "created_at"]
    assert (said["role"], answered["role"]) == ("user", "assistant")
    assert said["content"] == "What's the capital of France?"
    assert json.loads(answered["metadata"]) == {"model": "claude-opus", "tokens": 150}
    assert result["recorded_at"] == said["created_at"] == answered["created_at"]


def test_the_history_rebuilds_the_context_oldest_first(conversation: dict[str, Any]) -> None:
    for number in range(7):
        ContextService.record_interaction(conversation["id"], f"question {number}", f"answer {number}")
    history = ContextService.fetch_chat_history(conversation_id=conversation["id"], limit=4)
    assert list(history) == [
        "conversation_id",
        "user_id",
        "title",
        "message_count",
        "created_at",
        "updated_at",
        "messages",
    ]
    assert history["message_count"] == 4
    assert [m["content"] for m in history["messages"]] == ["question 5", "answer 5", "question 6", "answer 6"]
    assert history["messages"][0]["metadata"] is None
    assert ContextService.fetch_chat_history(conversation["id"])["message_count"] == 10


def test_recording_moves_the_time_of_the_conversation(conversation: dict[str, Any]) -> None:
    result = ContextService.record_interaction(conversation["id"], "question", "answer")
    found = ContextService.get_conversation(conversation["id"])
    assert found["updated_at"] == result["recorded_at"] > found["created_at"]


def test_conversations_are_listed_by_their_last_activity() -> None:
    first, second, third = (ContextService.create_conversation("u", f"title {n}")["id"] for n in range(3))
    ContextService.create_conversation("someone else")
    ContextService.record_interaction(first, "question", "answer")
    listed = ContextService.list_conversations(user_id="u", limit=20)
    assert [c["id"] for c in listed] == [first, third, second]
    assert [c["id"] for c in ContextService.list_conversations("u", limit=1)] == [first]
    assert ContextService.list_conversations("nobody") == []


@pytest.mark.parametrize("call", ["fetch_chat_history", "get_conversation", "record_interaction"])
def test_an_unknown_conversation_is_a_value_error_with_the_contracts_text(call: str) -> None:
    words = ("question", "answer") if call == "record_interaction" else ()
    with pytest.raises(ValueError, match=r"^Conversation conv-404 not found$") as caught:
        getattr(ContextService, call)("conv-404", *words)
    assert isinstance(caught.value, NotFound)


@pytest.mark.parametrize("limit", [0, -1, 101])
def test_a_limit_outside_one_to_one_hundred_is_refused(conversation: dict[str, Any], limit: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 100"):
        ContextService.fetch_chat_history(conversation["id"], limit)
    with pytest.raises(ValueError, match="between 1 and 100"):
        ContextService.list_conversations("u", limit)


@pytest.mark.parametrize(
    ("said", "answered", "metadata", "named"),
    [
        ("", "answer", None, "user_message"),
        ("question", "  ", None, "assistant_response"),
        ("question", "answer", "{not json", "metadata"),
        ("question", "answer", '{"a": NaN}', "metadata"),
        ("quest\x00ion", "answer", None, "user_message"),
    ],
)
def test_a_bad_interaction_is_refused_whole(
    conversation: dict[str, Any], said: str, answered: str, metadata: str | None, named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        ContextService.record_interaction(conversation["id"], said, answered, metadata)
    assert ContextService.fetch_chat_history(conversation["id"])["messages"] == []


def test_metadata_may_be_any_json(conversation: dict[str, Any]) -> None:
    for given in ("[1, 2]", '"tag"', "5", '{"a": {"b": null}}'):
        result = ContextService.record_interaction(conversation["id"], "question", "answer", given)
        assert json.loads(result["user_message"]["metadata"]) == json.loads(given)


def test_a_blank_user_has_no_conversations_and_a_title_may_be_long() -> None:
    assert ContextService.list_conversations("") == []
    assert ContextService.create_conversation("u", "t" * 5000)["title"] == "t" * 5000


def test_closing_while_others_call_leaves_nobody_waiting(conversation: dict[str, Any]) -> None:
    with ThreadPoolExecutor(4) as threads:
        for _ in range(5):
            calls = [threads.submit(ContextService.get_conversation, conversation["id"]) for _ in range(8)]
            ContextService.close()
            assert all(call.result(timeout=60)["id"] == conversation["id"] for call in calls)


def test_threads_may_share_the_service(conversation: dict[str, Any]) -> None:
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda n: ContextService.record_interaction(conversation["id"], f"q{n}", f"a{n}"), range(48)))
    messages = ContextService.fetch_chat_history(conversation["id"], 100)["messages"]
    assert len(messages) == 96
    for said, answered in zip(messages[::2], messages[1::2], strict=True):
        assert (said["role"], answered["role"]) == ("user", "assistant")
        assert said["content"][1:] == answered["content"][1:]


async def test_it_works_inside_a_running_event_loop(conversation: dict[str, Any]) -> None:
    ContextService.record_interaction(conversation["id"], "question", "answer")
    history = await asyncio.to_thread(ContextService.fetch_chat_history, conversation["id"])
    assert history["message_count"] == 2


def _record_in_child(conversation_id: str) -> None:
    ContextService.record_interaction(conversation_id, "from the child", "noted")


def test_a_forked_child_has_a_service_of_its_own(conversation: dict[str, Any]) -> None:
    child = multiprocessing.get_context("fork").Process(target=_record_in_child, args=(conversation["id"],))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    ContextService.record_interaction(conversation["id"], "from the parent", "noted")
    messages = ContextService.fetch_chat_history(conversation["id"])["messages"]
    assert [m["content"] for m in messages] == ["from the child", "noted", "from the parent", "noted"]


@pytest.mark.parametrize("conversation_id", ["", " ", "x" * 300])
def test_an_id_that_no_conversation_can_have_is_not_found(conversation_id: str) -> None:
    not_found = f"^Conversation {conversation_id} not found$"
    with pytest.raises(ValueError, match=not_found):
        ContextService.get_conversation(conversation_id)
    with pytest.raises(ValueError, match=not_found):
        ContextService.fetch_chat_history(conversation_id)
    with pytest.raises(ValueError, match=not_found):
        ContextService.record_interaction(conversation_id, "Hi", "Hello")


def test_a_uuid_may_be_written_in_either_case() -> None:
    created = ContextService.create_conversation("u")["id"]
    recorded = ContextService.record_interaction(created.upper(), "Hi", "Hello")
    assert recorded["conversation_id"] == created
    assert ContextService.get_conversation(created.upper())["id"] == created
    assert ContextService.fetch_chat_history(created.upper())["message_count"] == 2


def test_metadata_comes_back_in_one_order() -> None:
    created = ContextService.create_conversation("u")["id"]
    recorded = ContextService.record_interaction(created, "Hi", "Hello", '{"long name": 1, "b": 2, "a": 3}')
    (first, _) = ContextService.fetch_chat_history(created)["messages"]
    assert recorded["user_message"] == first


@pytest.mark.parametrize("user_id", [5, None, "a\x00b"])
def test_a_user_id_that_cannot_be_one_is_refused_with_a_sentence(user_id: Any) -> None:
    with pytest.raises(Invalid, match="user_id"):
        ContextService.list_conversations(user_id)


def test_an_interaction_says_who_spoke_and_when(conversation: dict[str, Any]) -> None:
    at = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    recorded = ContextService.record_interaction(conversation["id"], "I run.", "Noted.", speaker="Dana", at=at)
    assert recorded["recorded_at"] == recorded["user_message"]["created_at"] == at.isoformat()
    with pytest.raises(Invalid, match="speaker is empty"):
        ContextService.record_interaction(conversation["id"], "I run.", "Noted.", speaker=" ")
