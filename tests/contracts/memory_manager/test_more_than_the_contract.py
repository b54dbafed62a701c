"""What the library does beyond its contract, by the same rules as the command line."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from recollect import Invalid, MemoryManager, NotFound
from recollect.engine import Engine
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from recollect.settings import Settings

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


async def stored(memory: MemoryManager, session: UUID, count: int) -> list[UUID]:
    return [await memory.store_message(session, "user", f"message {number}") for number in range(count)]


async def test_a_long_history_is_read_page_by_page(memory: MemoryManager) -> None:
    session = uuid4()
    ids = await stored(memory, session, 7)
    pages = [await memory.get_conversation_history(session, 3)]
    while len(pages[-1]) == 3:
        pages.append(await memory.get_conversation_history(session, 3, before=pages[-1][0].id))
    assert [message.id for page in reversed(pages) for message in page] == ids
    assert await memory.get_conversation_history(session, 3, before=ids[0]) == []


async def test_reading_before_a_message_that_is_not_there_is_an_error(memory: MemoryManager) -> None:
    session = uuid4()
    await stored(memory, session, 1)
    (elsewhere,) = await stored(memory, uuid4(), 1)
    for unknown in (uuid4(), elsewhere):
        with pytest.raises(NotFound, match="Unknown message"):
            await memory.get_conversation_history(session, before=unknown)
    with pytest.raises(Invalid, match="before must be a UUID"):
        await memory.get_conversation_history(session, before=3)  # type: ignore[arg-type]


async def test_a_session_shows_whose_it_is_and_its_metadata(memory: MemoryManager) -> None:
    session = await memory.create_session("anna", {"channel": "web"})
    found = await memory.get_session(session)
    assert (found.id, found.user_id, found.metadata_) == (session, "anna", {"channel": "web"})
    with pytest.raises(NotFound):
        await memory.get_session(uuid4())


async def test_sessions_are_listed_the_last_active_first_page_by_page(memory: MemoryManager) -> None:
    first, second, third = [await memory.create_session("anna") for _ in range(3)]
    other = await memory.create_session("ben")
    await memory.store_message(first, "user", "Back again.")
    assert [session.id for session in await memory.list_sessions("anna")] == [first, third, second]
    assert [session.id for session in await memory.list_sessions(limit=2)] == [first, other]
    assert [session.id for session in await memory.list_sessions(limit=2, after=other)] == [third, second]
    assert await memory.list_sessions("nobody I know") == []
    with pytest.raises(NotFound):
        await memory.list_sessions(after=uuid4())


async def test_sessions_that_are_not_named_by_a_uuid_are_not_listed(memory: MemoryManager, engine: Engine) -> None:
    await engine.remember.turn(
        engine.settings.namespace, Turn("support-7", (NewMessage("user", "Hi"),), owner_if_new="anna")
    )
    session = await memory.create_session("anna")
    assert [found.id for found in await memory.list_sessions("anna", limit=1)] == [session]


async def test_a_message_shows_who_spoke(memory: MemoryManager, engine: Engine) -> None:
    session = uuid4()
    said = NewMessage("user", "I moved to Rome.", speaker="Caroline")
    await engine.remember.turn(engine.settings.namespace, Turn(str(session), (said,), owner_if_new="anna"))
    await memory.store_message(session, "assistant", "How nice.")
    assert [message.speaker for message in await memory.get_conversation_history(session)] == ["Caroline", None]


async def test_forgetting_takes_an_item_a_session_or_a_user(memory: MemoryManager) -> None:
    session = await memory.create_session("anna")
    message, _ = await stored(memory, session, 2)
    document = await memory.store_document("The recipe of a cake")
    assert (await memory.forget(message, dry_run=True)).rows["messages"] == 1
    assert len(await memory.get_conversation_history(session)) == 2
    assert (await memory.forget(message)).rows["messages"] == 1
    assert (await memory.forget(f"document:{document}")).rows["documents"] == 1
    assert (await memory.forget(session_id=session)).rows["sessions"] == 1
    await memory.create_session("anna")
    assert (await memory.forget(user_id="anna")).rows == {"sessions": 1}
    assert (await memory.recall("recipe of a cake")).memories == []


async def test_forgetting_wants_to_know_exactly_one_thing(memory: MemoryManager) -> None:
    with pytest.raises(Invalid, match="Pass exactly one of item, session_id or user_id"):
        await memory.forget()
    with pytest.raises(Invalid, match="Pass exactly one of item, session_id or user_id"):
        await memory.forget(uuid4(), user_id="anna")
    with pytest.raises(NotFound):
        await memory.forget(user_id="anna")
    with pytest.raises(Invalid, match="the id of what to forget"):
        await memory.forget(5)  # type: ignore[arg-type]


async def test_an_export_has_a_line_for_each_record(memory: MemoryManager, settings: Settings) -> None:
    await stored(memory, await memory.create_session("anna"), 2)
    await stored(memory, await memory.create_session("ben"), 1)
    everything = [json.loads(line) async for line in memory.export()]
    assert everything[0]["namespace"] == settings.namespace
    assert [line["kind"] for line in everything].count("message") == 3
    of_anna = [json.loads(line) async for line in memory.export(user_id="anna")]
    assert [line["content"] for line in of_anna if line["kind"] == "message"] == ["message 0", "message 1"]


async def test_an_export_of_a_user_of_whom_nothing_is_known_is_refused(memory: MemoryManager) -> None:
    await memory.create_session("anna")
    with pytest.raises(NotFound, match="No data for user ana"):
        _ = [line async for line in memory.export(user_id="ana")]
    with pytest.raises(Invalid, match="user_id is empty"):
        _ = [line async for line in memory.export(user_id="")]


async def test_a_history_and_its_session_are_read_as_they_were(memory: MemoryManager) -> None:
    session, other = uuid4(), uuid4()
    days = [datetime.now(UTC) - timedelta(days=days) for days in (5, 4, 3)]
    # In another order than that of their times.
    for day in (days[1], days[0], days[2]):
        await memory.store_message(session, "user", str(day.date()), at=day, user_id="ann")
    await memory.store_message(other, "user", "of today", user_id="ann")

    async def told(moment: datetime, **more: Any) -> list[str]:
        return [message.content for message in await memory.get_conversation_history(session, as_of=moment, **more)]

    assert await told(days[0] - timedelta(seconds=1)) == []
    assert await told(days[0]) == [str(days[0].date())]
    assert await told(days[1]) == [str(days[1].date()), str(days[0].date())]
    assert await told(days[2], limit=1) == [str(days[2].date())]
    newest = (await memory.get_conversation_history(session, 1))[0]
    assert await told(days[2], before=newest.id) == await told(days[1])

    (listed,) = await memory.list_sessions("ann", as_of=days[1])
    assert (listed.id, listed.created_at, listed.updated_at) == (session, days[0], days[1])
    assert await memory.get_session(session, as_of=days[1]) == listed
    assert await memory.list_sessions("ann", after=session, as_of=days[1]) == []
    with pytest.raises(NotFound):
        await memory.get_session(other, as_of=days[1])
    with pytest.raises(NotFound):
        await memory.list_sessions("ann", after=other, as_of=days[1])
    with pytest.raises(Invalid, match=r"as_of .* is in the future: pass a time in the past"):
        await memory.get_conversation_history(session, as_of=datetime.now(UTC) + timedelta(hours=1))
