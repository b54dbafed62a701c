"""A recall is the last thing that happens, and nobody closes the memory."""

import asyncio
from uuid import uuid4

from recollect import MemoryManager


async def main() -> None:
    memory = MemoryManager()
    await memory.store_message(uuid4(), "user", "The ferry leaves at nine.")
    found = await memory.recall("When does the ferry leave?")
    assert found.memories[0].text == "The ferry leaves at nine."


asyncio.run(main())
