"""The embedding provider takes the connection and never answers; the program ends all the same."""

# needs: a database of its own

import asyncio
import os
import socket
from uuid import uuid4

from recollect import MemoryManager

listener = socket.create_server(("127.0.0.1", 0))
os.environ["RECOLLECT_EMBEDDING_MODEL"] = "openai:text-embedding-3-small"
os.environ["RECOLLECT_OPENAI_API_KEY"] = "none"
os.environ["RECOLLECT_OPENAI_BASE_URL"] = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


listener.setblocking(False)


async def main() -> None:
    memory = MemoryManager()
    await memory.store_message(uuid4(), "user", "hello")
    with (await asyncio.get_running_loop().sock_accept(listener))[0]:
        return


with listener:
    asyncio.run(main())
