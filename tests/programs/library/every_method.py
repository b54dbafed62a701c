"""Every method of MemoryManager."""

import asyncio
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
    assert [line async for line in memory.export()]
    assert (await memory.changes(limit=1)).next == 1
    assert (await memory.lineage(document)).text == "Ferries of the harbour."
    await memory.forget(session_id=session)
    await memory.close()


asyncio.run(main())
