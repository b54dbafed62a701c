"""A tool call over stdio against the least it could cost: a bare SDK server whose tool does nothing, plus the query."""

import statistics
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

from mcp import Client, StdioServerParameters

from benchmarks.report import Report, seconds_per_call
from benchmarks.sizes import sized
from benchmarks.spine import set_namespace_everywhere
from recollect import Settings
from recollect.engine import Engine
from recollect.memory import sessions

ROUNDS = sized(7, 2)
CALLS = sized(200, 5)

BARE_SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("bare", log_level="WARNING")


@server.tool()
async def nothing() -> str:
    return ""


server.run()
"""


async def run(report: Report, home: Path) -> None:
    print("mcp")
    recollect = StdioServerParameters(
        command=str(Path(sys.executable).with_name("recollect")),
        args=["mcp"],
        env={"RECOLLECT_DATA_DIR": str(home), "RECOLLECT_INDEXER": "false"},
    )
    bare = StdioServerParameters(command=sys.executable, args=["-c", BARE_SERVER])
    async with AsyncExitStack() as stack:
        engine = await Engine.open(Settings(data_dir=home, indexer=False))
        stack.push_async_callback(engine.close)
        await set_namespace_everywhere(engine)
        ours, theirs = [await stack.enter_async_context(Client(server)) for server in (recollect, bare)]
        await get_conversation(report, engine, ours, theirs)


async def get_conversation(report: Report, engine: Engine, ours: Client, bare: Client) -> None:
    conversation = await engine.conversations.create("default", f"bench-{uuid4()}", "A title")

    async def tool() -> None:
        result = await ours.call_tool("get_conversation", {"conversation_id": conversation.id})
        assert not result.is_error

    async def nothing() -> None:
        await bare.call_tool("nothing", {})

    async def query() -> None:
        async with engine.database._pool.acquire() as connection:
            assert await connection.fetchrow(sessions._Sql.find.text, "default", conversation.id)

    calls = (nothing, query, tool)
    rounds = [[await seconds_per_call(call, CALLS) for call in calls] for _ in range(ROUNDS)]
    idle, raw, own = (statistics.median(times) * 1e3 for times in zip(*rounds, strict=True))
    ratio = statistics.median(own / (idle + raw) for idle, raw, own in rounds)
    report.add(
        "stdio get_conversation, times a no-op tool of the bare SDK plus the query",
        f"{ratio:.2f} ({own:.2f} / {idle:.2f} + {raw:.2f} ms)",
        "<= 1.5",
    )
