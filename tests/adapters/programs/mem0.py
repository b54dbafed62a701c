"""A program of a mem0 user with one import changed, on a server and in this process; other doors find it, too."""

import asyncio
import os
import warnings
from datetime import date, timedelta

import httpx
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from recollect.adapters.mem0 import AsyncMemory, Memory

SERVER = os.environ["MEMORY_SERVER"]
MESSAGES = [
    {"role": "system", "content": "You recommend films."},
    {"role": "user", "content": "I'm planning to watch a film tonight. Any recommendations?"},
    {"role": "assistant", "content": "How about a thriller? They can be quite engaging."},
    {"role": "user", "content": "I don't like thrillers, but I love science fiction.", "name": "Alice"},
]


def refused(call, text):
    try:
        call()
    except ValueError as problem:
        said = str(problem)
    else:
        raise SystemExit(f"nobody said: {text}")
    assert text in said


def try_out(memory: Memory) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        added = memory.add(MESSAGES, user_id="alice", metadata={"category": "films", "seen": 3})
    assert any("no language model" in str(each.message) for each in said), said
    assert [(each["event"], each["role"]) for each in added["results"]] == [
        ("ADD", "user"),
        ("ADD", "assistant"),
        ("ADD", "user"),
    ]
    found = memory.search("Which genre does she enjoy?", filters={"user_id": "alice"}, top_k=3)["results"]
    likes = next(each for each in found if "science fiction" in each["memory"])
    assert likes["metadata"] == {"category": "films", "seen": 3}
    assert (likes["actor_id"], likes["role"], likes["user_id"]) == ("Alice", "user", "alice")
    assert memory.search("genre", filters={"user_id": "bob"}) == {"results": []}
    for filters, hits in (
        ({"category": "films"}, 3),
        ({"category": "food"}, 0),
        ({"seen": {"gte": 3}}, 3),
        ({"seen": {"gt": 3}}, 0),
        ({"role": ["assistant", "tool"]}, 1),
        ({"actor_id": "Alice"}, 1),
        ({"AND": [{"seen": 3}, {"role": {"ne": "user"}}]}, 1),
        ({"OR": [{"role": "assistant"}, {"actor_id": "*"}]}, 3),
        ({"NOT": [{"role": "assistant"}]}, 2),
        ({"created_at": {"gt": "2100-01-01T00:00:00Z"}}, 0),
    ):
        asked = {"user_id": "alice", **filters}
        assert len(memory.get_all(filters=asked)["results"]) == hits, filters
        assert len(memory.search("science fiction thrillers", filters=asked, threshold=0)["results"]) == hits, filters

    one = added["results"][2]["id"]
    assert memory.update(one, text="Loves science fiction.", metadata={"seen": 4}) == {
        "message": "Memory updated successfully!"
    }
    assert memory.get(one)["memory"] == "Loves science fiction."
    assert memory.get(one)["metadata"] == {"category": "films", "seen": 4}
    assert [(each["event"], each["old_memory"]) for each in memory.history(one)] == [
        ("ADD", None),
        ("UPDATE", MESSAGES[3]["content"]),
    ]
    yesterday = date.today() - timedelta(days=2)
    memory.update(one, expiration_date=yesterday)
    assert one not in [each["id"] for each in memory.get_all(filters={"user_id": "alice"})["results"]]
    shown = memory.get_all(filters={"user_id": "alice"}, show_expired=True)["results"]
    assert yesterday.isoformat() in [each.get("expiration_date") for each in shown]
    memory.update(one, expiration_date=None)
    assert memory.get(one).get("expiration_date") is None
    again = memory.add("Loves science fiction.", user_id="alice", infer=False, metadata={"seen": 4})["results"]
    assert (again[0]["id"], again[0]["event"]) == (one, "NONE")
    memory.add("Her run began.", user_id="alice", run_id="monday", infer=False, timestamp=1_700_000_000)
    (run,) = memory.get_all(filters={"run_id": "monday"})["results"]
    assert (run["run_id"], run["created_at"][:10]) == ("monday", "2023-11-14")
    refused(lambda: memory.search("x", user_id="alice"), "Top-level entity parameters")
    refused(lambda: memory.get_all(filters={"seen": 3}), "filters must contain at least one of")
    refused(lambda: memory.add("x"), "At least one of 'user_id'")
    refused(lambda: memory.delete("0198b2a6-6a35-7c7e-9f6e-2f1f5d1c9a51"), "not found")
    assert memory.get("0198b2a6-6a35-7c7e-9f6e-2f1f5d1c9a51") is None
    assert memory.delete(one) == {"message": "Memory deleted successfully!"}
    assert memory.history(one)[-1]["event"] == "DELETE"


async def from_another_door(question: str) -> tuple[str, str]:
    """The best answer over REST and over MCP."""
    async with httpx.AsyncClient(base_url=SERVER) as http:
        recalled = (await http.post("/recall", json={"query": question, "user_id": "carol"})).json()
    async with streamable_http_client(f"{SERVER}/mcp") as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        told = await session.call_tool("recall", {"query": question, "user_id": "carol"})
    return recalled["memories"][0]["text"], told.content[0].text


async def asynchronously() -> None:
    async with AsyncMemory(url=SERVER) as memory:
        await memory.add("Carol keeps bees in Lyon.", user_id="carol", infer=False)
        for answer in await from_another_door("Where are Carol's bees?"):
            assert "Carol keeps bees in Lyon." in answer, answer
        assert len((await memory.get_all(filters={"user_id": "carol"}))["results"]) == 1
        await memory.delete_all(user_id="carol")
        assert await memory.get_all(filters={"user_id": "carol"}) == {"results": []}


def configured() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        memory = Memory.from_config({"vector_store": {"provider": "qdrant"}, "recollect": {"url": SERVER}})
    assert "vector_store" in str(said[0].message)
    assert memory.get_all(filters={"user_id": "alice"})["results"]
    memory.reset()
    assert memory.get_all(filters={"user_id": "alice"}) == {"results": []}


try_out(Memory(url=SERVER))
asyncio.run(asynchronously())
configured()
with Memory() as embedded:
    try_out(embedded)
