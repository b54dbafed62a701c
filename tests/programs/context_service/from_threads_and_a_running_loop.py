"""Calls from threads, and from inside an event loop; a daemon thread still calls when the program ends."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from recollect import ContextService

conversation = ContextService.create_conversation("ann")["id"]


def record(number: int) -> None:
    ContextService.record_interaction(conversation, f"question {number}", f"answer {number}")


async def main() -> None:
    record(0)
    await asyncio.to_thread(record, 1)


def go_on() -> None:
    while True:
        ContextService.get_conversation(conversation)


with ThreadPoolExecutor(4) as threads:
    list(threads.map(record, range(8)))
asyncio.run(main())
threading.Thread(target=go_on, daemon=True).start()
record(9)
