"""Who spoke, when, under which id and for whom: what the library takes beyond its contract when it stores."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import pytest

from recollect import Conflict, Invalid, MemoryManager, NewDocument, NewMessage, StorageError
from recollect.checks import EMBEDDING_DIMENSIONS
from recollect.settings import Settings

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

IN_MAY = datetime(2024, 5, 8, 13, 56, tzinfo=UTC)


async def contents(memory: MemoryManager, session: UUID) -> list[str]:
    return [message.content for message in await memory.get_conversation_history(session)]


async def test_a_message_says_who_spoke_and_when(memory: MemoryManager) -> None:
    session = uuid4()
    await memory.store_message(session, "user", "The bridge opens at noon.", speaker="Dana", at=IN_MAY)
    (message,) = await memory.get_conversation_history(session)
    assert (message.speaker, message.created_at) == ("Dana", IN_MAY)
    (found,) = (await memory.recall("When does the bridge open?")).memories
    assert (found.speaker, found.at) == ("Dana", IN_MAY)


async def test_a_time_without_a_zone_is_utc_and_another_zone_is_converted(memory: MemoryManager) -> None:
    session = uuid4()
    await memory.store_message(session, "user", "first", at=IN_MAY.replace(tzinfo=None))
    await memory.store_message(session, "user", "second", at=IN_MAY.astimezone(timezone(timedelta(hours=2))))
    assert {message.created_at for message in await memory.get_conversation_history(session)} == {IN_MAY}


async def test_the_order_of_a_session_is_that_of_writing_whatever_the_times(memory: MemoryManager) -> None:
    session = uuid4()
    await memory.store_message(session, "user", "later", at=IN_MAY + timedelta(days=1))
    await memory.store_message(session, "user", "earlier", at=IN_MAY)
    assert await contents(memory, session) == ["later", "earlier"]


async def test_a_user_owns_the_session_that_they_begin_and_no_other(memory: MemoryManager) -> None:
    begun, of_ben = uuid4(), await memory.create_session("ben")
    await memory.store_message(begun, "user", "I grow tomatoes.", user_id="anna")
    await memory.store_message(begun, "user", "And beans.", user_id="ben")
    await memory.store_message(of_ben, "user", "I sail.", user_id="anna")
    assert (await memory.get_session(begun)).user_id == "anna"
    assert (await memory.get_session(of_ben)).user_id == "ben"
    found = await memory.recall("Tomatoes or beans?", user_id="anna")
    assert {each.text for each in found.memories} == {"I grow tomatoes.", "And beans."}


async def test_a_repeated_call_stores_once_and_returns_the_same_id(memory: MemoryManager) -> None:
    session, chosen = uuid4(), uuid4()
    for _ in range(3):
        assert await memory.store_message(session, "user", "Only once.", speaker="Dana", id=chosen) == chosen
    await memory.store_message(session, "user", "Behind it.")
    assert await contents(memory, session) == ["Only once.", "Behind it."]
    await memory.flush()  # it is all stop words, so that only semantic search finds it
    (found,) = (await memory.recall("What was said only once?", top_k=1)).memories
    assert (found.id, found.repeats) == (str(chosen), ())


@pytest.mark.parametrize(
    "other",
    [{"content": "Something else."}, {"role": "assistant"}, {"speaker": "Ben"}, {"session_id": uuid4()}],
    ids=lambda other: next(iter(other)),
)
async def test_an_id_that_another_message_has_is_refused(memory: MemoryManager, other: dict[str, Any]) -> None:
    first: dict[str, Any] = {
        "session_id": uuid4(),
        "role": "user",
        "content": "Mine.",
        "speaker": "Dana",
        "id": uuid4(),
    }
    await memory.store_message(**first)
    with pytest.raises(StorageError, match=f"Message {first['id']} already exists with other content") as refused:
        await memory.store_message(**(first | other))
    assert isinstance(refused.value.__cause__, Conflict)
    assert await contents(memory, first["session_id"]) == ["Mine."]
    if "session_id" in other:
        assert other["session_id"] not in {session.id for session in await memory.list_sessions()}


async def test_of_many_repeated_calls_at_once_one_stores(memory: MemoryManager, settings: Settings) -> None:
    session = uuid4()
    chosen = [uuid4() for _ in range(5)]
    async with MemoryManager(settings) as other:
        calls = [
            manager.store_message(session, "user", f"Number {number}.", id=message_id)
            for manager in (memory, other, memory, other)
            for number, message_id in enumerate(chosen)
        ]
        plain = [memory.store_message(session, "user", f"Plain {number}.") for number in range(20)]
        answers = await asyncio.gather(*calls, *plain)
    assert answers[: len(calls)] == chosen * 4
    stored = [message.id for message in await memory.get_conversation_history(session)]
    assert sorted(stored) == sorted(set(answers))


async def test_a_refused_id_fails_its_own_caller_only(memory: MemoryManager) -> None:
    session, chosen = uuid4(), uuid4()
    await memory.store_message(session, "user", "First.", id=chosen)
    answers = await asyncio.gather(
        *(memory.store_message(session, "user", f"Other {number}.") for number in range(10)),
        memory.store_message(session, "user", "Not the first.", id=chosen),
        memory.store_message(session, "user", "First.", id=chosen),
        return_exceptions=True,
    )
    assert [isinstance(answer, UUID) for answer in answers] == [True] * 10 + [False, True]
    assert isinstance(answers[10], StorageError)
    assert len(await contents(memory, session)) == 11


async def test_many_messages_are_stored_in_order_with_all_that_they_say(memory: MemoryManager) -> None:
    session, chosen = uuid4(), uuid4()
    messages: list[NewMessage] = [
        {"role": "user", "content": "Where is the key?", "speaker": "Dana", "at": IN_MAY, "metadata": {"page": 1}},
        {"role": "assistant", "content": "Under the mat.", "id": chosen},
        NewMessage(role="system", content="The door is shut."),
    ]
    ids = await memory.store_messages(session, messages, user_id="dana")
    history = await memory.get_conversation_history(session)
    assert [message.id for message in history] == ids
    assert ids[1] == chosen
    assert [message.content for message in history] == [message["content"] for message in messages]
    assert (history[0].speaker, history[0].created_at, history[0].metadata_) == ("Dana", IN_MAY, {"page": 1})
    assert (await memory.get_session(session)).user_id == "dana"
    assert await memory.store_messages(session, []) == []


async def test_messages_that_are_stored_keep_their_place_among_new_ones(memory: MemoryManager) -> None:
    session = uuid4()
    first, second = [NewMessage(role="user", content=text, id=uuid4()) for text in ("one", "two")]
    ids = await memory.store_messages(session, [first, second])
    again = await memory.store_messages(session, [first, {"role": "user", "content": "three"}, second])
    assert [again[0], again[2]] == ids
    assert await contents(memory, session) == ["one", "two", "three"]


async def test_many_messages_are_stored_together_or_not_at_all(memory: MemoryManager) -> None:
    session, taken = uuid4(), uuid4()
    await memory.store_message(session, "user", "Here.", id=taken)
    with pytest.raises(StorageError, match="already exists"):
        await memory.store_messages(
            session, [{"role": "user", "content": "new"}, {"role": "user", "content": "There.", "id": taken}]
        )
    with pytest.raises(Invalid, match=r"messages\[1\]\.role must be one of"):
        await memory.store_messages(session, [{"role": "user", "content": "new"}, {"role": "bot", "content": "x"}])
    assert await contents(memory, session) == ["Here."]


async def test_more_messages_than_go_into_one_call_of_the_database_are_stored(memory: MemoryManager) -> None:
    session = uuid4()
    messages = [NewMessage(role="user", content=f"Line {number}.", id=uuid4()) for number in range(600)]
    ids = await memory.store_messages(session, messages)
    assert ids == [message["id"] for message in messages]
    assert await memory.store_messages(session, messages) == ids
    assert len(await memory.get_conversation_history(session, 1000)) == 600


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ("hello", "messages must be a list of dicts, not str"),
        (["hello"], r"messages\[0\] must be a dict, not str"),
        ([{"content": "x"}], r"messages\[0\] has no role"),
        ([{"role": "user", "content": "x", "time": 1}], r"messages\[0\] has an unknown field 'time'"),
        ([{"role": "user", "content": "x", "at": "today"}], r"messages\[0\]\.at must be a datetime"),
        ([{"role": "user", "content": "x", "id": "1"}], r"messages\[0\]\.id must be a UUID"),
        ([{"role": "user", "content": "x", "at": datetime.min}], r"messages\[0\]\.at is outside the range of years"),
        ([{"role": "user", "content": "x", "speaker": " "}], r"messages\[0\]\.speaker is empty: it needs at least one"),
        ([{"role": "user", "content": "x", "id": UUID(int=1)}] * 2, "have the same id"),
        ([{"role": "user", "content": "x"}] * 10_001, "more than 10,000 entries"),
    ],
)
async def test_what_is_wrong_with_messages_is_said(memory: MemoryManager, messages: Any, sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        await memory.store_messages(uuid4(), messages)


async def test_many_documents_are_stored_in_order_and_found(memory: MemoryManager) -> None:
    vector = [1.0] + [0.0] * (EMBEDDING_DIMENSIONS - 1)
    documents: list[NewDocument] = [
        {"content": "The tide table of the harbour.", "metadata": {"page": 1}, "at": IN_MAY},
        {"content": "The menu of the canteen.", "embedding": vector, "id": uuid4()},
        *(NewDocument(content=f"Appendix {number}.") for number in range(300)),
    ]
    ids = await memory.store_documents(documents)
    assert len(set(ids)) == len(documents)
    assert ids[1] == documents[1]["id"]
    assert [found.id for found in await memory.semantic_search(vector, top_k=1)] == [ids[1]]
    (of_may,) = await memory.temporal_query(IN_MAY, IN_MAY)
    assert (of_may.id, of_may.created_at, of_may.metadata_) == (ids[0], IN_MAY, {"page": 1})
    found = (await memory.recall("tide table", top_k=1)).memories[0]
    assert (found.id, found.at) == (str(ids[0]), IN_MAY)
    assert await memory.store_documents([]) == []


async def test_a_document_that_brings_its_id_is_stored_once(memory: MemoryManager, settings: Settings) -> None:
    chosen = uuid4()
    async with MemoryManager(settings) as other:
        answers = await asyncio.gather(
            *(manager.store_document("The lighthouse is red.", id=chosen) for manager in (memory, other) * 3)
        )
    assert set(answers) == {chosen}
    (found,) = (await memory.recall("What colour is the lighthouse?")).memories
    assert (found.id, found.repeats) == (str(chosen), ())
    with pytest.raises(StorageError, match=f"Document {chosen} already exists with other content"):
        await memory.store_documents([{"content": "New."}, {"content": "The lighthouse is white.", "id": chosen}])
    assert len((await memory.recall("lighthouse new")).memories) == 1


async def test_what_is_wrong_with_documents_is_said(memory: MemoryManager) -> None:
    for documents, sentence in (
        ([{"text": "x"}], r"documents\[0\] has no content"),
        ([{"content": "x", "embedding": [1.0]}], r"documents\[0\]\.embedding must have 1536 numbers"),
        ([{"content": "x", "id": UUID(int=1)}] * 2, "have the same id"),
    ):
        with pytest.raises(Invalid, match=sentence):
            await memory.store_documents(documents)  # type: ignore[arg-type]
