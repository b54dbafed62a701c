"""A child that is forked while a thread imports the embedding model can load it too, and both end."""

import asyncio
import os
import sys
import threading

from recollect import MemoryManager


async def ask() -> None:
    async with MemoryManager() as memory:
        await memory.recall("anything")


asking = threading.Thread(target=asyncio.run, args=(ask(),))
asking.start()
while "onnxruntime" not in sys.modules:
    pass
if (child := os.fork()) == 0:
    asyncio.run(ask())
else:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    asking.join()
