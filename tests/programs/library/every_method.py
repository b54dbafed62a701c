"""Every method of MemoryManager."""

import asyncio
import os
from datetime import UTC, datetime, timedelta

from recollect import MemoryManager


async def main() -> None:
    memory = MemoryManager()
    assert (await memory.health_check())["status"] == "healthy"
    session = await memory.create_session("ann", {"from": "a program"})
    await memory.store_message(session, "user", "The ferry leaves at nine.", speaker="Ann", at=datetime.now(UTC))
    await memory.store_messages(session, [{"role": "assistant", "content": "Noted."}], user_id="ann")
    assert len(await memory.get_conversation_history(session)) == 2
    assert (await memory.get_session(session)).user_id == "ann"
    assert [found.id for found in await memory.list_sessions("ann")] == [session]
    document = await memory.store_document("Ferries of the harbour.", {"kind": "timetable"}, [0.1] * 1536)
    assert [found.id for found in await memory.semantic_search([0.1] * 1536, top_k=1)] == [document]
    await memory.store_documents([{"content": "Buses of the harbour."}])
    now = datetime.now(UTC)
    assert await memory.temporal_query(now - timedelta(hours=1), now + timedelta(hours=1))
    await memory.flush()
    assert (await memory.recall("When does the boat go?")).memories
    own = os.environ["RECOLLECT_NAMESPACE"]
    assert (await memory.recall("When does the boat go?", namespaces=[own])).memories[0].namespace == own
    assert [line async for line in memory.export()]
    assert (await memory.changes(limit=1)).next == 1
    old = await memory.add_memory("Ann lives in Berlin.", user_id="ann", key="home city")
    new = await memory.add_memory("Ann lives in Lisbon.", user_id="ann", key="home city")
    assert (await memory.get_memory(old.id)).superseded_by == new.id
    assert (await memory.get_memory(old.id, as_of=old.since)).superseded_by is None
    await memory.update_memory(new.id, pinned=True)
    assert [found.id for found in await memory.list_memories(user_id="ann", pinned=True)] == [new.id]
    assert [found.id for found in (await memory.pinned_memories(user_id="ann")).memories] == [new.id]
    assert (await memory.undo_memory(old.id)).superseded_by is None
    assert [event.event for event in await memory.memory_history(old.id)] == ["create", "supersede", "undo"]
    assert (await memory.delete_memory(old.id, restore=True)).restored == [new.id]
    assert (await memory.lineage(document)).text == "Ferries of the harbour."
    await memory.forget(session_id=session)
    await memory.close()


asyncio.run(main())
