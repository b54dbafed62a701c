"""The program ends while hundreds of passages wait to be embedded and hundreds of writes are not even begun."""

import asyncio
from uuid import uuid4

from recollect import MemoryManager


async def main() -> None:
    memory = MemoryManager()
    session = uuid4()
    await asyncio.gather(*(memory.store_message(session, "user", f"Number {n} of many words.") for n in range(300)))
    left = [asyncio.create_task(memory.store_message(session, "user", f"left {number}")) for number in range(300)]
    await asyncio.sleep(0)
    assert left


asyncio.run(main())
