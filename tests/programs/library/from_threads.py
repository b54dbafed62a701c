"""An event loop in each of several threads, a memory for each of them and one for all."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from recollect import MemoryManager

shared = MemoryManager()


async def own(number: int) -> None:
    async with MemoryManager() as memory:
        await memory.store_message(uuid4(), "user", f"number {number}")


async def together(number: int) -> None:
    await shared.store_message(uuid4(), "user", f"number {number}")


with ThreadPoolExecutor(4) as threads:
    list(threads.map(lambda number: asyncio.run(own(number)), range(4)))
    list(threads.map(lambda number: asyncio.run(together(number)), range(4)))
