"""Claude's files: kept by a server or in this process, edited by two at once, recalled over REST and MCP."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

import httpx
from anthropic.lib.tools import ToolError
from mcp import Client

from recollect.adapters.anthropic import AsyncRecollectMemoryTool, RecollectMemoryTool

URL = os.environ["MEMORY_SERVER"]
ASKED = {"query": "What did the doctor advise?", "user_id": "berta"}
SLEEP = "My physician told me to sleep more."


def fails(tool: RecollectMemoryTool, why: str, **command: object) -> None:
    said = ""
    try:
        tool.call(command)
    except ToolError as problem:
        said = str(problem)
    assert why in said, (command, said)


def use(tool: RecollectMemoryTool) -> None:
    tool.call({"command": "create", "path": "/memories/health/sleep.md", "file_text": "Nothing yet."})
    changed = {
        "command": "str_replace",
        "path": "/memories/health/sleep.md",
        "old_str": "Nothing yet.",
        "new_str": SLEEP,
    }
    assert tool.call(changed) == (
        f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n     1\t{SLEEP}"
    )
    tool.call({"command": "create", "path": "/memories/.hidden", "file_text": "x" * 1536})
    assert tool.call({"command": "view", "path": "/memories"}) == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n"
        "1.5K\t/memories\n35B\t/memories/health/\n35B\t/memories/health/sleep.md"
    )
    fails(tool, "is not a file", command="insert", path="/memories/health", insert_line=0, insert_text="x")
    fails(tool, "is taken", command="create", path="/memories/health/sleep.md/x", file_text="x")
    fails(tool, "100 kB", command="create", path="/memories/large", file_text="x" * 102_401)
    fails(tool, "below itself", command="rename", old_path="/memories/health", new_path="/memories/health/old")
    tool.call({"command": "rename", "old_path": "/memories/health", "new_path": "/memories/archive/health"})
    fails(tool, "does not exist", command="view", path="/memories/health/sleep.md")
    assert SLEEP in str(tool.call({"command": "view", "path": "/memories/archive/health/sleep.md"}))


def edit_together(tool: RecollectMemoryTool) -> None:
    """Ten insertions at once into one file, none of which is lost."""
    tool.call({"command": "create", "path": "/memories/list.md", "file_text": ""})
    line = {"command": "insert", "path": "/memories/list.md", "insert_line": 0}
    with ThreadPoolExecutor(5) as threads:
        list(threads.map(lambda number: tool.call(line | {"insert_text": f"number {number}"}), range(10)))
    shown = str(tool.call({"command": "view", "path": "/memories/list.md"}))
    assert all(f"number {number}\n" in shown for number in range(10)), shown


async def found_over_mcp() -> str:
    async with Client(f"{URL}/mcp") as mcp:
        return str((await mcp.call_tool("recall", ASKED)).content)


async def in_a_loop() -> None:
    tool = AsyncRecollectMemoryTool(URL, user_id="berta")
    assert SLEEP in str(await tool.call({"command": "view", "path": "/memories/archive/health/sleep.md"}))
    assert await tool.clear_all_memory() == "All memory cleared"
    tool.close()


def meet(number: int) -> None:
    note = {"command": "create", "path": f"/memories/{number}.md", "file_text": "x"}
    RecollectMemoryTool(URL, user_id="dora").call(note)


# Several workers of one program meet a new user at once, and find one store.
with ThreadPoolExecutor(4) as threads:
    list(threads.map(meet, range(4)))
assert "/memories/3.md" in str(RecollectMemoryTool(URL, user_id="dora").call({"command": "view", "path": "/memories"}))
assert len(httpx.get(f"{URL}/v1/memory_stores", params={"user_id": "dora"}).json()["data"]) == 1

server = RecollectMemoryTool(URL, user_id="berta")
use(server)
edit_together(server)
(best, *_) = httpx.post(f"{URL}/recall", json=ASKED).raise_for_status().json()["memories"]
assert (best["kind"], best["text"], best["metadata"]["path"]) == ("file", SLEEP, "/archive/health/sleep.md")
assert SLEEP in asyncio.run(found_over_mcp())
asyncio.run(in_a_loop())
assert httpx.post(f"{URL}/recall", json=ASKED).raise_for_status().json()["memories"] == []
embedded = RecollectMemoryTool(store="notes")
use(embedded)
embedded.close()
again = RecollectMemoryTool(store="notes")
assert SLEEP in str(again.call({"command": "view", "path": "/memories/archive/health/sleep.md"}))
