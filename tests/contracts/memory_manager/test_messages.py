"""Contract memory-manager: sessions, message storage and retrieval."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect import Invalid, MemoryManager
from recollect.checks import MAX_TEXT_BYTES
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage

storable_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1).filter(
    str.strip
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | storable_text,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(storable_text, children, max_size=3),
    max_leaves=8,
)


async def test_a_session_is_a_new_uuid_each_time(memory: MemoryManager) -> None:
    first = await memory.create_session("user-1", {"tags": ["a"]})
    second = await memory.create_session("user-1")
    assert isinstance(first, UUID)
    assert first != second
    assert first.version == 7


async def test_messages_come_back_in_the_order_they_were_stored(memory: MemoryManager) -> None:
    session = uuid4()
    ids = [
        await memory.store_message(session, "user", "What is async programming?", {"source": "web_ui"}),
        await memory.store_message(session, "assistant", "It allows non-blocking I/O.", {"confidence": 0.95}),
        await memory.store_message(session, "system", "Be brief."),
    ]
    history = await memory.get_conversation_history(session)
    assert [m.id for m in history] == ids
    assert [m.role for m in history] == ["user", "assistant", "system"]
    assert [m.content for m in history] == ["What is async programming?", "It allows non-blocking I/O.", "Be brief."]
    assert [m.metadata_ for m in history] == [{"source": "web_ui"}, {"confidence": 0.95}, {}]
    assert all(m.session_id == session for m in history)


async def test_a_message_is_stamped_with_the_time_it_was_stored_in_utc(memory: MemoryManager) -> None:
    session = uuid4()
    await memory.store_message(session, "user", "now")
    (message,) = await memory.get_conversation_history(session)
    assert message.created_at.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - message.created_at) < timedelta(minutes=1)


async def test_a_limit_keeps_the_most_recent_messages_oldest_first(memory: MemoryManager) -> None:
    session = await memory.create_session("user-1")
    for number in range(7):
        await memory.store_message(session, "user", f"message {number}")
    history = await memory.get_conversation_history(session, limit=3)
    assert [m.content for m in history] == ["message 4", "message 5", "message 6"]


async def test_the_default_limit_is_one_hundred(memory: MemoryManager) -> None:
    session = uuid4()
    await asyncio.gather(*(memory.store_message(session, "user", f"message {n}") for n in range(105)))
    assert len(await memory.get_conversation_history(session)) == 100


async def test_an_unknown_session_has_an_empty_history(memory: MemoryManager) -> None:
    assert await memory.get_conversation_history(uuid4()) == []


async def test_a_message_does_not_change_the_owner_of_its_session(memory: MemoryManager) -> None:
    session = await memory.create_session("owner")
    await memory.store_message(session, "user", "hello")
    engine = await memory._engine()
    async with engine.database.reading(engine.settings.namespace) as db:
        found = await engine.capabilities.sessions.find(db, str(session))
    assert found is not None
    assert found.user_id == "owner"


async def test_a_first_message_opens_its_session_for_anonymous(memory: MemoryManager) -> None:
    session = uuid4()
    await memory.store_message(session, "user", "hello")
    engine = await memory._engine()
    async with engine.database.reading(engine.settings.namespace) as db:
        found = await engine.capabilities.sessions.find(db, str(session))
    assert found is not None
    assert found.user_id == "anonymous"


@pytest.mark.parametrize("user_id", ["", "   ", "u" * 256, "nul\x00", 7])
async def test_a_bad_user_id_is_refused(memory: MemoryManager, user_id: Any) -> None:
    with pytest.raises(ValueError, match="user_id"):
        await memory.create_session(user_id)


@pytest.mark.parametrize("role", ["", "User", "tool", "summary", None])
async def test_a_role_outside_the_contract_is_refused_and_nothing_is_stored(memory: MemoryManager, role: Any) -> None:
    session = uuid4()
    with pytest.raises(ValueError, match="role must be one of user, assistant, system"):
        await memory.store_message(session, role, "hello")
    assert await memory.get_conversation_history(session) == []


@pytest.mark.parametrize("content", ["", " \n\t ", "with\x00nul", "\ud800", None, 5])
async def test_content_that_cannot_be_stored_is_refused_and_nothing_is_stored(
    memory: MemoryManager, content: Any
) -> None:
    session = uuid4()
    with pytest.raises(ValueError, match="content"):
        await memory.store_message(session, "user", content)
    assert await memory.get_conversation_history(session) == []


@pytest.mark.parametrize(
    "metadata",
    [
        {"at": object()},
        {"n": float("nan")},
        {"n": float("inf")},
        {"t": "a\x00b"},
        {1: "x"},
        [1],
        "text",
        {"s": {1, 2}},
        {"n": 10**5000},
    ],
)
async def test_metadata_that_is_not_json_is_refused_and_nothing_is_stored(memory: MemoryManager, metadata: Any) -> None:
    session = uuid4()
    with pytest.raises(Invalid, match="metadata"):
        await memory.store_message(session, "user", "hello", metadata)
    assert await memory.get_conversation_history(session) == []


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, None])
async def test_a_limit_that_is_not_positive_is_refused(memory: MemoryManager, limit: Any) -> None:
    with pytest.raises(ValueError, match="limit"):
        await memory.get_conversation_history(uuid4(), limit=limit)


async def test_a_session_id_that_is_no_uuid_is_refused(memory: MemoryManager) -> None:
    with pytest.raises(ValueError, match="session_id must be a UUID"):
        await memory.store_message("conv-1", "user", "hello")  # type: ignore[arg-type]


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
@pytest.mark.unindexed("ten megabytes would keep the indexers from the other tests' work")
async def test_ten_megabytes_are_stored_and_one_hundred_are_refused_with_the_limit(memory: MemoryManager) -> None:
    session = uuid4()
    large = "0123456789" * (1024 * 1024)
    await memory.store_message(session, "user", large)
    with pytest.raises(ValueError, match="limit of 16 MB"):
        await memory.store_message(session, "user", large * 10)
    (message,) = await memory.get_conversation_history(session)
    assert message.content == large


async def test_the_size_limit_counts_bytes_not_characters(memory: MemoryManager) -> None:
    with pytest.raises(ValueError, match="limit of 16 MB"):
        await memory.store_message(uuid4(), "user", "é" * (MAX_TEXT_BYTES // 2 + 1))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=storable_text, metadata=st.none() | st.dictionaries(storable_text, json_values, max_size=4))
async def test_any_text_and_any_json_come_back_unchanged(
    memory: MemoryManager, content: str, metadata: dict[str, Any] | None
) -> None:
    session = uuid4()
    await memory.store_message(session, "user", content, metadata)
    (message,) = await memory.get_conversation_history(session)
    assert message.content == content
    assert message.metadata_ == (metadata or {})


async def test_messages_to_old_and_new_sessions_at_once_leave_no_gap(memory: MemoryManager) -> None:
    old = uuid4()
    await memory.store_message(old, "user", "first")
    for _ in range(5):
        await asyncio.gather(
            memory.store_message(old, "user", "more"), *(memory.store_message(uuid4(), "user", "new") for _ in range(3))
        )
    engine = await memory._engine()
    async with engine.database.reading(engine.settings.namespace) as db:
        assert [m.position for m in await engine.capabilities.log.recent(db, str(old), 10)] == list(range(6))


async def test_a_role_of_another_door_is_shown_as_the_systems(memory: MemoryManager) -> None:
    session = uuid4()
    engine = await memory._engine()
    line = NewMessage("tool", "a result", "[1]")
    await engine.remember.turn(engine.settings.namespace, Turn(str(session), (line,), owner_if_new="user"))
    (message,) = await memory.get_conversation_history(session)
    assert (message.role, message.metadata_) == ("system", {"value": [1]})


async def test_a_manager_without_arguments_works_and_can_be_reopened(namespace: str, memory: MemoryManager) -> None:
    session = uuid4()
    plain = MemoryManager()
    await plain.store_message(session, "user", "remember me")
    await plain.close()
    assert len(await plain.get_conversation_history(session)) == 1
    await plain.close()
    assert [m.content for m in await memory.get_conversation_history(session)] == ["remember me"]
