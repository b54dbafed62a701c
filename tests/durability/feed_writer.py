"""A child process that stores numbered texts from several tasks, and ends when each has stored its share."""

import asyncio
import sys
from uuid import UUID

from recollect import MemoryManager


async def write(memory: MemoryManager, session: UUID, name: str, share: int) -> None:
    """Messages to a session that other writers use as well, and every third time a document."""
    for number in range(share):
        text = f"{name} {number}"
        if number % 3 == 2:
            await memory.store_document(text)
        else:
            await memory.store_message(session, "user", text)


async def main(name: str, tasks: int, share: int, session: UUID) -> None:
    async with MemoryManager() as memory:
        await asyncio.gather(*(write(memory, session, f"{name}-{task}", share) for task in range(tasks)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), UUID(sys.argv[4])))
