"""A task that writes a last message when it is cancelled at the end of asyncio.run."""

import asyncio
from uuid import uuid4

from recollect import MemoryManager

memory = MemoryManager()
session = uuid4()


async def talk() -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        await memory.store_message(session, "user", "last words")


async def main() -> None:
    await memory.store_message(session, "user", "first words")
    talking = asyncio.create_task(talk())
    await asyncio.sleep(0)
    assert not talking.done()


async def history() -> list[str]:
    async with memory:
        return [message.content for message in await memory.get_conversation_history(session)]


asyncio.run(main())
assert asyncio.run(history()) == ["first words", "last words"]
