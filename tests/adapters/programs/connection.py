"""What every adapter stands on: the same calls to a server and to an engine in this process, from threads and loops."""

import asyncio
import os

from recollect.adapters.connection import Connection
from recollect.errors import NotFound, Unavailable

SAID = {"messages": [{"role": "user", "content": "Anna moved to Rome in March."}]}


def try_out(connection: Connection) -> None:
    connection.call("POST", "/stm/{}/messages", "chat/1 ü", json=SAID)
    assert connection.call("GET", "/stm/{}/messages", "chat/1 ü", params={"as_of": None})["messages"]
    found = asyncio.run(connection.call_async("POST", "/recall", json={"query": "Where does Anna live?"}))
    assert found["memories"][0]["text"] == "Anna moved to Rome in March."
    try:
        connection.call("GET", "/ltm/memories/{}", "0198b2a6-6a35-7c7e-9f6e-2f1f5d1c9a51")
    except NotFound:
        pass
    else:
        raise SystemExit("an unknown memory was found")
    connection.close()
    assert asyncio.run(connection.call_async("GET", "/stm/{}/messages", "chat/1 ü"))["messages"]


try_out(Connection(os.environ["MEMORY_SERVER"]))
try_out(Connection())
try:
    Connection("http://127.0.0.1:9").call("GET", "/health")
except Unavailable:
    pass
else:
    raise SystemExit("nobody answered")
