"""A write is the last thing that happens before the memory is closed."""

import asyncio
from uuid import uuid4

from recollect import MemoryManager


async def main() -> None:
    async with MemoryManager() as memory:
        await memory.store_message(uuid4(), "user", "hello")
        await memory.store_document("The ferry leaves at nine.")


asyncio.run(main())
