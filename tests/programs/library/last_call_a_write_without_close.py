"""A write is the last thing that happens, and nobody closes the memory."""

import asyncio
from uuid import uuid4

from recollect import MemoryManager


async def main() -> None:
    memory = MemoryManager()
    await memory.store_document("The ferry leaves at nine.")
    await memory.store_message(uuid4(), "user", "hello")


asyncio.run(main())
