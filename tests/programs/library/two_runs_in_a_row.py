"""One memory in several event loops, one after the other, with and without close."""

import asyncio
from uuid import uuid4

from recollect import MemoryManager

memory = MemoryManager()
session = uuid4()


async def say(text: str) -> None:
    await memory.store_message(session, "user", text)


async def say_and_close(text: str) -> None:
    await say(text)
    await memory.close()


async def history() -> list[str]:
    return [message.content for message in await memory.get_conversation_history(session)]


asyncio.run(say("one"))
asyncio.run(say("two"))
asyncio.run(say_and_close("three"))
asyncio.run(say("four"))
assert asyncio.run(history()) == ["one", "two", "three", "four"]
