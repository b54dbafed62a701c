"""A child process that writes messages from many tasks and prints each acknowledgement, until it is killed."""

import asyncio
import sys
from uuid import UUID

from recollect import MemoryManager

TASKS = 16


async def write_for_ever(memory: MemoryManager, session: UUID, name: str) -> None:
    number = 0
    while True:
        number += 1
        content = f"{name}-{number}"
        message_id = await memory.store_message(session, "user", content)
        sys.stdout.write(f"{session} {message_id} {content}\n")
        sys.stdout.flush()


async def main(run: str, sessions: list[UUID]) -> None:
    async with MemoryManager() as memory:
        await asyncio.gather(
            *(write_for_ever(memory, sessions[task % len(sessions)], f"{run}-{task}") for task in range(TASKS))
        )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], [UUID(argument) for argument in sys.argv[2:]]))
