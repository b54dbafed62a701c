"""A loop that its owner made, ran a while and closed, without cancelling what still runs in it, as notebooks do."""

import asyncio
from uuid import uuid4

from recollect import MemoryManager

loop = asyncio.new_event_loop()
memory = MemoryManager()
loop.run_until_complete(memory.store_message(uuid4(), "user", "hello"))
loop.run_until_complete(asyncio.sleep(0.2))
loop.run_until_complete(memory.store_message(uuid4(), "user", "hello again"))
loop.close()
