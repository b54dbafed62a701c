"""Exports that nobody reads to their end: one is dropped, one is still held when the program ends."""

import asyncio
from uuid import uuid4

from recollect import MemoryManager

memory = MemoryManager()
held = memory.export()


async def main() -> None:
    for number in range(20):
        await memory.store_message(uuid4(), "user", f"number {number}")
    async for _ in memory.export():
        break
    await anext(held)


asyncio.run(main())
