"""A program that fails and closes nothing shows its own failure, and nothing of ours."""

# exit: 1
# stderr: LookupError: on purpose

import asyncio
from uuid import uuid4

from recollect import MemoryManager


async def main() -> None:
    memory = MemoryManager()
    await memory.store_message(uuid4(), "user", "hello")
    raise LookupError("on purpose")


asyncio.run(main())
