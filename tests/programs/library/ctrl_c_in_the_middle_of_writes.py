"""Ctrl-C while many writes are under way and more wait."""

# exit: -2
# stderr: KeyboardInterrupt

import asyncio
import os
import signal
from uuid import uuid4

from recollect import MemoryManager


async def main() -> None:
    async with MemoryManager() as memory:
        # The model is in use: an import that still runs would change the exit code.
        await memory.recall("anything")
        writes = [memory.store_message(uuid4(), "user", f"number {number}") for number in range(2000)]
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGINT)
        await asyncio.gather(*writes)
        raise AssertionError("the signal came too late")


asyncio.run(main())
