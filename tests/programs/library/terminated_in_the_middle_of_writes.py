"""SIGTERM while many writes are under way: a program without a handler of its own is gone at once."""

# exit: -15

import asyncio
import os
import signal
from uuid import uuid4

from recollect import MemoryManager


async def main() -> None:
    async with MemoryManager() as memory:
        writes = [memory.store_message(uuid4(), "user", f"number {number}") for number in range(2000)]
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGTERM)
        await asyncio.gather(*writes)


asyncio.run(main())
