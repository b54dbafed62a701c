"""Ctrl-C while a document of several megabytes is taken apart in a thread."""

# exit: -2
# stderr: KeyboardInterrupt

import asyncio
import os
import signal

from recollect import MemoryManager


async def main() -> None:
    memory = MemoryManager()
    # The model is in use: an import that still runs would change the exit code.
    await memory.recall("anything")
    asyncio.get_running_loop().call_later(0.2, os.kill, os.getpid(), signal.SIGINT)
    await memory.store_document("The committee met again and decided nothing at all. " * 80_000)
    raise AssertionError("the signal came too late")


asyncio.run(main())
