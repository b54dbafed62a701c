"""A memory that is made and never used, one that is only opened, and one that is only closed."""

import asyncio

from recollect import MemoryManager


async def main() -> None:
    MemoryManager()
    await MemoryManager().close()
    async with MemoryManager():
        pass


asyncio.run(main())
