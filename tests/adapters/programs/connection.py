"""What every adapter stands on: the same calls to a server and to an engine in this process, from threads and loops."""

import asyncio
import os
from collections.abc import Callable

from recollect.adapters.connection import Connection
from recollect.errors import Invalid, NotFound, RecollectError, Unavailable

SAID = {"messages": [{"role": "user", "content": "Anna moved to Rome in March."}]}


def refused(category: type[RecollectError], call: Callable[[], object], why: str) -> None:
    said = "nothing was refused"
    try:
        call()
    except category as problem:
        said = str(problem)
    assert why in said, said


def try_odd_names(connection: Connection) -> None:
    """Names that mean another place in a path stay names."""
    route = "/sessions/{}/messages"
    for name in ("messages", ".", ".."):
        connection.call("POST", route, name, json={"messages": [{"role": "user", "text": f"In {name}"}]})
    for name in (".", ".."):
        assert [said["text"] for said in connection.call("GET", route, name)["messages"]] == [f"In {name}"]
        connection.call("DELETE", route, name)
    assert len(connection.call("GET", route, "messages")["messages"]) == 1
    refused(Invalid, lambda: connection.call("GET", route, ""), "An id is empty")


def try_out(connection: Connection) -> None:
    connection.call("POST", "/stm/{}/messages", "chat/1 ü", json=SAID)
    assert connection.call("GET", "/stm/{}/messages", "chat/1 ü", params={"as_of": None})["messages"]
    found = asyncio.run(connection.call_async("POST", "/recall", json={"query": "Where does Anna live?"}))
    assert found["memories"][0]["text"] == "Anna moved to Rome in March."
    unknown = "0198b2a6-6a35-7c7e-9f6e-2f1f5d1c9a51"
    refused(NotFound, lambda: connection.call("GET", "/ltm/memories/{}", unknown), unknown)
    try_odd_names(connection)
    connection.close()
    assert asyncio.run(connection.call_async("GET", "/stm/{}/messages", "chat/1 ü"))["messages"]


server = os.environ["MEMORY_SERVER"]
try_out(Connection(server))
try_out(Connection())
refused(Unavailable, lambda: Connection("http://127.0.0.1:9").call("GET", "/health"), "No answer")
refused(Unavailable, lambda: Connection(f"{server}/elsewhere").call("GET", "/health"), "is the url right")
for url in ("", "127.0.0.1:8000", "http://", "http://127.0.0.1:99999", "http://[::1"):
    refused(Invalid, lambda url=url: Connection(url), "address of a server")  # type: ignore[misc]
for key in ("", "rk_1\n", "clé"):
    refused(Invalid, lambda key=key: Connection(server, key), "`recollect keys create`")  # type: ignore[misc]
