"""A child that was forked while the memory was open has its own, and both end."""

import asyncio
import os
from uuid import uuid4

from recollect import MemoryManager

memory = MemoryManager()
session = uuid4()


async def say(text: str) -> None:
    await memory.store_message(session, "user", text)


async def parent() -> int:
    await say("from the parent")
    await memory.recall("anything")
    if (child := os.fork()) == 0:
        # A forked child is inside its parent's event loop; a program of its own begins outside of it.
        asyncio._set_running_loop(None)
        asyncio.run(say("from the child"))
        os._exit(0)
    return child


async def history() -> set[str]:
    return {message.content for message in await memory.get_conversation_history(session)}


child = asyncio.run(parent())
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert asyncio.run(history()) == {"from the parent", "from the child"}

if (child := os.fork()) == 0:
    asyncio.run(say("from a second child"))
else:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert "from a second child" in asyncio.run(history())
