"""The first program of every reader, in a data directory that is not there yet."""

# needs: a new data directory

import asyncio
from uuid import uuid4

from recollect import MemoryManager


async def main() -> None:
    async with MemoryManager() as memory:
        await memory.store_message(uuid4(), "user", "hello")


asyncio.run(main())
