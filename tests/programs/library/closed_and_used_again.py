"""`close` right after a write, at once with one, and twice; the memory opens again when it is needed."""

import asyncio
from contextlib import suppress
from uuid import uuid4

from sqlalchemy.exc import DatabaseError

from recollect import MemoryManager


async def main() -> None:
    memory = MemoryManager()
    session = uuid4()
    await memory.store_message(session, "user", "one")
    await memory.close()
    await memory.store_message(session, "user", "two")
    late = asyncio.create_task(memory.store_message(session, "user", "three"))
    await asyncio.sleep(0)
    await memory.close()
    # Either it was accepted in time, or it fails with a sentence; it does not hang.
    with suppress(DatabaseError):
        await late
    await memory.close()
    await memory.close()


asyncio.run(main())
