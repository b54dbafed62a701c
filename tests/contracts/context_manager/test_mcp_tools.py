"""Contract context-manager-mcp: the five tools, called by a real client."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from recollect import ContextService, MemoryManager, Settings
from tests.mcp_servers import ONE_TRANSPORT, McpClient, environment

CONVERSATION = ["id", "user_id", "title", "created_at", "updated_at"]
MESSAGE = ["id", "conversation_id", "role", "content", "metadata", "created_at"]
HISTORY = ["conversation_id", "user_id", "title", "message_count", "created_at", "updated_at", "messages"]


@pytest.fixture
def conversation(mcp: McpClient) -> dict[str, Any]:
    created: dict[str, Any] = mcp.ok("create_conversation", user_id="user-456", title="Authentication Discussion")
    return created


def record(mcp: McpClient, conversation: dict[str, Any], said: str, answered: str, **more: str) -> dict[str, Any]:
    recorded: dict[str, Any] = mcp.ok(
        "record_interaction",
        conversation_id=conversation["id"],
        user_message=said,
        assistant_response=answered,
        **more,
    )
    return recorded


def test_the_request_cycle_of_the_contract(mcp: McpClient, conversation: dict[str, Any]) -> None:
    assert list(conversation) == CONVERSATION
    assert UUID(conversation["id"])
    assert (conversation["user_id"], conversation["title"]) == ("user-456", "Authentication Discussion")
    before = mcp.ok("fetch_chat_history", conversation_id=conversation["id"], limit=10)
    assert list(before) == HISTORY
    assert (before["message_count"], before["messages"]) == (0, [])

    recorded = record(mcp, conversation, "What about OAuth?", "OAuth 2.0 is an authorization framework...")
    assert list(recorded) == ["conversation_id", "user_message", "assistant_message", "recorded_at"]
    said, answered = recorded["user_message"], recorded["assistant_message"]
    assert list(said) == list(answered) == MESSAGE
    assert (said["role"], said["content"], said["metadata"]) == ("user", "What about OAuth?", None)
    assert (answered["role"], answered["conversation_id"]) == ("assistant", conversation["id"])
    assert recorded["recorded_at"] == said["created_at"] == answered["created_at"]

    after = mcp.ok("fetch_chat_history", conversation_id=conversation["id"])
    assert after["messages"] == [said, answered]
    assert (after["conversation_id"], after["user_id"], after["message_count"]) == (conversation["id"], "user-456", 2)
    assert after["updated_at"] == recorded["recorded_at"]


def test_times_are_iso_8601_with_the_offset_of_the_contract(conversation: dict[str, Any]) -> None:
    assert conversation["created_at"].endswith("+00:00")
    assert datetime.fromisoformat(conversation["created_at"]).tzinfo is not None


def test_the_history_is_the_last_messages_oldest_first(mcp: McpClient, conversation: dict[str, Any]) -> None:
    for number in range(7):
        record(mcp, conversation, f"question {number}", f"answer {number}")
    history = mcp.ok("fetch_chat_history", conversation_id=conversation["id"], limit=4)
    assert [message["content"] for message in history["messages"]] == [
        "question 5",
        "answer 5",
        "question 6",
        "answer 6",
    ]
    assert mcp.ok("fetch_chat_history", conversation_id=conversation["id"])["message_count"] == 10


@pytest.mark.parametrize("given", ['{"model": "claude-opus", "tokens": 150}', "[1, 2]", '"tag"', "null"])
def test_metadata_is_json_text_and_comes_back_as_such(mcp: McpClient, conversation: dict[str, Any], given: str) -> None:
    recorded = record(mcp, conversation, "question", "answer", metadata=given)
    returned = recorded["user_message"]["metadata"]
    assert returned is None if given == "null" else json.loads(returned) == json.loads(given)


@pytest.mark.parametrize("title", ["null", "[1, 2]", '{"a": 1}', "true", "5", "Ünïcode 漢字 🙂"])
def test_a_title_that_looks_like_json_stays_text(mcp: McpClient, title: str) -> None:
    assert mcp.ok("create_conversation", user_id="u", title=title)["title"] == title


def test_a_title_may_be_left_out_or_null(mcp: McpClient) -> None:
    assert mcp.ok("create_conversation", user_id="u")["title"] is None
    assert mcp.ok("create_conversation", user_id="u", title=None)["title"] is None


def test_get_conversation_has_no_messages(mcp: McpClient, conversation: dict[str, Any]) -> None:
    record(mcp, conversation, "question", "answer")
    found = mcp.ok("get_conversation", conversation_id=conversation["id"])
    assert list(found) == CONVERSATION
    assert found["updated_at"] > found["created_at"] == conversation["created_at"]


def test_conversations_are_listed_by_their_last_activity(mcp: McpClient, word: str) -> None:
    first, second, third = (mcp.ok("create_conversation", user_id=word) for _ in range(3))
    record(mcp, first, "question", "answer")
    listed = mcp.ok("list_conversations", user_id=word)
    assert [found["id"] for found in listed] == [first["id"], third["id"], second["id"]]
    assert list(listed[0]) == CONVERSATION
    assert len(mcp.ok("list_conversations", user_id=word, limit=1)) == 1


def test_a_user_without_conversations_has_an_empty_list(mcp: McpClient, word: str) -> None:
    assert mcp.ok("list_conversations", user_id=word) == []


@pytest.mark.parametrize("tool", ["fetch_chat_history", "get_conversation", "record_interaction"])
def test_an_unknown_conversation_is_the_contracts_error(mcp: McpClient, tool: str) -> None:
    words = {"user_message": "question", "assistant_response": "answer"} if tool == "record_interaction" else {}
    assert mcp.refused(tool, conversation_id="xyz", **words) == "Error: Conversation xyz not found"


@ONE_TRANSPORT
@pytest.mark.parametrize("tool", ["fetch_chat_history", "list_conversations"])
@pytest.mark.parametrize("limit", [0, -1, 101, 10**30])
def test_a_limit_outside_its_range_is_refused(mcp: McpClient, tool: str, limit: int) -> None:
    owner = {"conversation_id": "c"} if tool == "fetch_chat_history" else {"user_id": "u"}
    assert mcp.refused(tool, limit=limit, **owner) == f"Error: limit must be between 1 and 100, not {limit}"


@ONE_TRANSPORT
def test_a_limit_may_be_any_json_integer(mcp: McpClient) -> None:
    assert mcp.ok("list_conversations", user_id="nobody", limit=5.0) == []


@ONE_TRANSPORT
@pytest.mark.parametrize("limit", ["5", 5.5, True, [5], {"limit": 5}])
def test_a_limit_of_another_type_is_refused(mcp: McpClient, limit: Any) -> None:
    assert mcp.refused("list_conversations", user_id="u", limit=limit) == "Error: limit must be a whole number"


@ONE_TRANSPORT
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"user_message": ""}, "user_message is empty"),
        ({"assistant_response": " \n"}, "assistant_response is empty"),
        ({"user_message": "a\x00b"}, "user_message contains a NUL"),
        ({"user_message": 5}, "user_message must be text"),
        ({"metadata": "{not json"}, "metadata is not JSON"),
        ({"metadata": {"a": 1}}, "metadata must be text"),
        ({"user_message": "x" * (16 * 1024 * 1024 + 1)}, "user_message is larger than the limit of 16 MB"),
        ({"mood": "good"}, "unknown parameter mood"),
    ],
)
def test_a_bad_interaction_is_refused_and_nothing_is_stored(
    mcp: McpClient, conversation: dict[str, Any], given: dict[str, Any], named: str
) -> None:
    good = {"conversation_id": conversation["id"], "user_message": "question", "assistant_response": "answer"}
    assert mcp.refused("record_interaction", **(good | given)).startswith(f"Error: {named}")
    assert mcp.ok("fetch_chat_history", conversation_id=conversation["id"])["messages"] == []


@ONE_TRANSPORT
@pytest.mark.parametrize(
    ("tool", "named"),
    [
        ("fetch_chat_history", "conversation_id is required"),
        ("get_conversation", "conversation_id is required"),
        ("create_conversation", "user_id is required"),
        ("list_conversations", "user_id is required"),
    ],
)
def test_what_is_required_is_named(mcp: McpClient, tool: str, named: str) -> None:
    assert mcp.refused(tool) == f"Error: {named}"


async def test_the_library_reads_what_the_tools_wrote(
    mcp: McpClient, conversation: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = record(mcp, conversation, "Which database?", "PostgreSQL.", metadata='{"tokens": 7}')
    for name, value in environment(mcp.namespace).items():
        monkeypatch.setenv(name, value)
    try:
        history = ContextService.fetch_chat_history(conversation["id"])
    finally:
        ContextService.close()
    assert history["messages"] == [recorded["user_message"], recorded["assistant_message"]]
    async with MemoryManager(Settings()) as memory:
        messages = await memory.get_conversation_history(UUID(conversation["id"]))
        assert [(m.role, m.content, m.metadata_) for m in messages] == [
            ("user", "Which database?", {"tokens": 7}),
            ("assistant", "PostgreSQL.", {"tokens": 7}),
        ]
        assert str(messages[0].id) == recorded["user_message"]["id"]


def test_the_tools_read_what_the_library_wrote(mcp: McpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(mcp.namespace).items():
        monkeypatch.setenv(name, value)
    user = f"user-{uuid4()}"
    try:
        created = ContextService.create_conversation(user, "From the library")
        ContextService.record_interaction(created["id"], "question", "answer")
    finally:
        ContextService.close()
    assert [found["id"] for found in mcp.ok("list_conversations", user_id=user)] == [created["id"]]
    assert mcp.ok("fetch_chat_history", conversation_id=created["id"])["message_count"] == 2


def test_an_interaction_says_who_spoke_and_when(mcp: McpClient, conversation: dict[str, Any], word: str) -> None:
    recorded = record(mcp, conversation, f"I like {word}.", "Noted.", speaker="Dana", at="2023-05-08T13:56:00Z")
    assert recorded["recorded_at"] == recorded["user_message"]["created_at"] == "2023-05-08T13:56:00+00:00"
    found = mcp.ok("recall", query=word, top_k=1)["memories"][0]
    assert (found["speaker"], found["at"]) == ("Dana", "2023-05-08T13:56:00Z")
    assert "at" in mcp.refused(
        "record_interaction",
        conversation_id=conversation["id"],
        user_message="x",
        assistant_response="y",
        at="long ago",
    )


def test_a_history_is_told_as_it_was(mcp: McpClient) -> None:
    user = str(uuid4())
    early, late = (mcp.ok("create_conversation", user_id=user, title=title) for title in ("early", "late"))
    days = [datetime.now(UTC) - timedelta(days=days) for days in (3, 2)]
    for day in days:
        record(mcp, early, f"asked {day.date()}", f"answered {day.date()}", at=day.isoformat())
    between = (days[0] + timedelta(hours=1)).isoformat()
    history = mcp.ok("fetch_chat_history", conversation_id=early["id"], as_of=between)
    assert list(history) == HISTORY
    assert [message["content"] for message in history["messages"]] == [
        f"asked {days[0].date()}",
        f"answered {days[0].date()}",
    ]
    assert datetime.fromisoformat(history["updated_at"]) == days[0]
    assert mcp.ok("list_conversations", user_id=user, as_of=between) == [
        mcp.ok("get_conversation", conversation_id=early["id"], as_of=between)
    ]
    assert len(mcp.ok("list_conversations", user_id=user)) == 2
    for conversation, moment in ((late, between), (early, "2000-01-01T00:00:00Z")):
        mcp.refused("fetch_chat_history", conversation_id=conversation["id"], as_of=moment)
    assert "in the future" in mcp.refused("get_conversation", conversation_id=late["id"], as_of="2999-01-01T00:00:00Z")


def test_the_service_tells_a_history_as_it_was(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, namespace: str
) -> None:
    conversation = ContextService.create_conversation("user-456")
    day = datetime.now(UTC) - timedelta(days=1)
    ContextService.record_interaction(conversation["id"], "then", "yes", at=day)
    ContextService.record_interaction(conversation["id"], "now", "yes")
    history = ContextService.fetch_chat_history(conversation["id"], as_of=day)
    assert [message["content"] for message in history["messages"]] == ["then", "yes"]
    shown = ContextService.get_conversation(conversation["id"], as_of=day)
    assert ContextService.list_conversations("user-456", as_of=day) == [shown]
    ContextService.close()
