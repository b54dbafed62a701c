"""The REST door against a bare FastAPI + asyncpg server that runs the same SQL, in alternating rounds of one run."""

import asyncio
import json
import os
import re
import signal
import statistics
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from uuid import UUID

from benchmarks import recall
from benchmarks.http_load import get, post, requests_per_second
from benchmarks.report import Report
from benchmarks.sizes import sized
from benchmarks.spine import OWNER, TEXT
from recollect import Settings
from recollect.engine import Engine
from recollect.memory.memories import MemoryScope

CONNECTIONS = 32
REQUESTS = sized(1500, 64)
ROUNDS = sized(9, 2)
SESSIONS = 64
MEMORIES, USERS = sized(100_000), sized(1_000)
SEARCHES = sized(100, 5)

# As if each had been added by a request of its own.
MEMORY_ROWS = """
insert into memories (namespace, id, text, category, user_id, metadata, identity, origin)
select namespace, item_id::uuid, text, 'fact', owner, '{}', sha256(item_id::bytea), sha256(item_id::bytea)
from passages where namespace = $1 and kind = 'memory'
on conflict do nothing
"""


async def run(report: Report, home: Path) -> None:
    print("rest")
    async with AsyncExitStack() as stack:
        engine = await Engine.open(Settings(data_dir=home, indexer=False))
        stack.push_async_callback(engine.close)
        for session in range(SESSIONS):
            async with engine.database.transaction("default") as tx:
                await engine.capabilities.sessions.open(tx, {f"bench-{session}": OWNER})
        memory = await engine.memories.add("default", TEXT, "fact", MemoryScope(user_id="bench"))
        bare = await stack.enter_async_context(_server(home, sys.executable, "-m", "benchmarks.bare_server", str(home)))
        ours = await stack.enter_async_context(recollect_server(home))
        await _writes_and_reads(report, bare, ours, str(memory.memory.id))
        async with recollect_server(home, "--workers", "2") as two:
            await _two_workers(report, ours, two, str(memory.memory.id))
        await _search(report, engine, ours)


def _add(number: int) -> bytes:
    body = json.dumps({"messages": [{"role": "user", "content": TEXT}]}).encode()
    return post(f"/stm/bench-{number % SESSIONS}/messages", body)


async def _writes_and_reads(report: Report, bare: int, ours: int, memory_id: str) -> None:
    for what, request in (
        ("POST /stm/{id}/messages", _add),
        ("GET /ltm/memories/{id}", lambda number: get(f"/ltm/memories/{memory_id}")),
    ):
        rates = await _alternating(bare, ours, request)
        ratio = statistics.median(own / theirs for theirs, own in rates)
        theirs, own = (statistics.median(column) for column in zip(*rates, strict=True))
        report.add(
            f"{what}, {CONNECTIONS} connections, ratio to bare FastAPI + asyncpg",
            f"{ratio:.2f} ({own:,.0f} / {theirs:,.0f} requests/s)",
            ">= 0.6",
        )


async def _two_workers(report: Report, one: int, two: int, memory_id: str) -> None:
    for what, request in (
        ("POST /stm/{id}/messages", _add),
        ("GET /ltm/memories/{id}", lambda number: get(f"/ltm/memories/{memory_id}")),
    ):
        rates = await _alternating(one, two, request)
        ratio = statistics.median(more / single for single, more in rates)
        report.add(f"{what}, two workers over one (client and database share the cores)", f"{ratio:.2f}")


async def _alternating(one: int, other: int, request: Callable[[int], bytes]) -> list[tuple[float, float]]:
    for port in (one, other):
        await requests_per_second(port, request, CONNECTIONS, REQUESTS // 5)
    return [
        (
            (await requests_per_second(one, request, CONNECTIONS, REQUESTS))[0],
            (await requests_per_second(other, request, CONNECTIONS, REQUESTS))[0],
        )
        for _ in range(ROUNDS)
    ]


async def _search(report: Report, engine: Engine, port: int) -> None:
    """One search at a time through each, of the same users; words are real, vectors random."""
    owners = {f"user-{n}": MEMORIES // USERS for n in range(USERS)}
    await recall.fill(engine, "default", owners, kind="memory", item_id=lambda number: str(UUID(int=number)))
    async with engine.database.transaction("default") as tx:
        await tx._connection.execute(MEMORY_ROWS, "default", timeout=600)
    questions = [(recall.question(), f"user-{n % USERS}") for n in range(SEARCHES)]

    async def through_rest() -> list[float]:
        bodies = [json.dumps({"query": text, "user_id": user, "limit": 10}).encode() for text, user in questions]
        _, times = await requests_per_second(
            port, lambda number: post("/ltm/memories/search", bodies[number]), 1, SEARCHES
        )
        return times

    async def through_library() -> list[float]:
        times = []
        loop = asyncio.get_running_loop()
        for text, user in questions:
            began = loop.time()
            await engine.memories.search("default", text, MemoryScope(user_id=user), limit=10)
            times.append((loop.time() - began) * 1000)
        return times

    await through_rest()
    await through_library()
    pairs = [(_p95(await through_library()), _p95(await through_rest())) for _ in range(3)]
    ratio = statistics.median(rest / library for library, rest in pairs)
    library, rest = (statistics.median(column) for column in zip(*pairs, strict=True))
    report.add(
        f"LTM search p95 over {MEMORIES:,} memories of {USERS:,} users, REST over library",
        f"{ratio:.2f} ({rest:.1f} / {library:.1f} ms)",
        "<= 2",
    )


def _p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[18]


@asynccontextmanager
async def recollect_server(home: Path, *options: str) -> AsyncIterator[int]:
    command = str(Path(sys.executable).with_name("recollect"))
    async with _server(home, command, "serve", "--port", "0", *options) as port:
        yield port


@asynccontextmanager
async def _server(home: Path, *command: str) -> AsyncIterator[int]:
    """The port that a server prints."""
    environment = os.environ | {
        "RECOLLECT_DATA_DIR": str(home),
        "RECOLLECT_INDEXER": "false",
        "RECOLLECT_LOG_LEVEL": "WARNING",
    }
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env=environment)
    assert process.stdout is not None
    try:
        found = None
        while found is None:
            line = (await process.stdout.readline()).decode()
            assert line, "the server ended before it listened"
            found = re.search(r"(\d+)$", line.strip()) if "Try it" not in line else None
        yield int(found[1])
    finally:
        process.send_signal(signal.SIGINT)
        await process.communicate()
