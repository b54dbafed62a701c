"""`make soak`: every door at once, one restart of the database, one killed indexer; no acknowledged write is lost."""

import argparse
import asyncio
import os
import random
import re
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from sqlalchemy.exc import DatabaseError

from recollect import ContextService, MemoryManager, Settings
from recollect.errors import Unavailable
from tests.soak import doors
from tests.soak.doors import Away, Door, Entering

RECOLLECT = str(Path(sys.executable).with_name("recollect"))
DOORS = ("library", "context", "mcp-stdio", "mcp-http", "stm", "ltm", "gateway")
ASKING = 0.15
READING = 0.1
WORDS = ("river", "stone", "window", "harbour", "lantern", "orchard", "violin", "copper", "meadow", "winter", "letter")


class Soak:
    """What happened, as it happens."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, list[str]] = defaultdict(list)
        self.done: Counter[str] = Counter()
        self.away: Counter[int] = Counter()
        self.wrong: list[str] = []
        self.asked: dict[int, list[float]] = defaultdict(list)
        self.megabytes: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self.began = time.monotonic()

    def second(self) -> int:
        return int(time.monotonic() - self.began)


async def main(seconds: int, users: int, pause: float, chosen: list[str]) -> int:
    home = Path(tempfile.mkdtemp(prefix="recollect-soak-"))
    os.environ |= {"RECOLLECT_DATA_DIR": str(home), "RECOLLECT_LOG_LEVEL": "WARNING", "RECOLLECT_INDEXER": "false"}
    soak = Soak()
    try:
        async with AsyncExitStack() as stack:
            entering = {name: door for name, door in (await _open_doors(stack, home)).items() if name in chosen}
            names = [list(entering)[number % len(entering)] for number in range(users)]
            visitors = {f"{name}-{n}": await entering[name](f"user-{n}") for n, name in enumerate(names)}
            soak.began = time.monotonic()
            until = soak.began + seconds
            await asyncio.gather(
                *(_visit(soak, name, door, until, pause) for name, door in visitors.items()),
                _disturb(home, seconds),
                _weigh(soak, home, until),
                _progress(soak, until),
            )
            await _compare(soak, visitors)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return _report(soak)


async def _open_doors(stack: AsyncExitStack, home: Path) -> dict[str, Entering]:
    """Two servers: one answers, the other embeds passages and is killed; and the other ways in."""
    settings = Settings(data_dir=home, indexer=False)
    memory = await stack.enter_async_context(MemoryManager(settings))
    url = await stack.enter_async_context(_serving("server", {}))
    await stack.enter_async_context(_serving("indexer", {"RECOLLECT_INDEXER": "true"}))
    http = await stack.enter_async_context(
        httpx.AsyncClient(base_url=url, timeout=60, limits=httpx.Limits(max_connections=200))
    )
    stack.callback(ContextService.close)
    parameters = StdioServerParameters(command=RECOLLECT, args=["mcp"], env=dict(os.environ))
    over_stdio = await stack.enter_async_context(Client(stdio_client(parameters)))
    over_http = await stack.enter_async_context(Client(f"{url}/mcp"))

    async def at(door: Door) -> Door:
        return door

    return {
        "library": lambda user: doors.Library.enter(memory, user),
        "context": lambda user: doors.Context.enter(memory, user),
        "mcp-stdio": lambda user: at(doors.Mcp(over_stdio, f"stdio-{user}")),
        "mcp-http": lambda user: at(doors.Mcp(over_http, f"http-{user}")),
        "stm": lambda user: at(doors.ShortTerm(http, f"stm-{user}")),
        "ltm": lambda user: at(doors.LongTerm(http, user)),
        "gateway": lambda user: doors.Gateway.enter(http, memory, user),
    }


async def _visit(soak: Soak, name: str, door: Door, until: float, pause: float) -> None:
    chance = random.Random(name)
    number = 0
    await asyncio.sleep(chance.random() * pause)
    while time.monotonic() < until:
        kind, began = chance.random(), time.perf_counter()
        try:
            if kind < ASKING:
                await door.ask(" ".join(chance.sample(WORDS, 3)))
                soak.asked[soak.second() // 60].append((time.perf_counter() - began) * 1000)
            elif kind < ASKING + READING:
                await door.read()
            else:
                number += 1
                # Unique by its name and number, in words that all others use: new words would fill caches for an hour.
                text = f"{name} number {number}: {' '.join(chance.choices(WORDS, k=12))}"
                await door.write(text)
                soak.acknowledged[name].append(text)
            soak.done[name.rpartition("-")[0]] += 1
        except (Away, Unavailable, DatabaseError):
            soak.away[soak.second()] += 1
        except (AssertionError, httpx.HTTPError, MCPError) as problem:
            soak.wrong.append(f"{soak.second()} s, {name}: {problem!r}"[:300])
        await asyncio.sleep(chance.random() * pause)


async def _disturb(home: Path, seconds: int) -> None:
    """A third of the way the database goes down and comes back; at two thirds the indexer is killed and begun again."""
    await asyncio.sleep(seconds / 3)
    os.kill(int((home / "data" / "postmaster.pid").read_text().split("\n")[0]), signal.SIGINT)
    await asyncio.sleep(seconds / 3)
    SERVERS["indexer"].kill()
    await SERVERS["indexer"].wait()
    await _begin("indexer", {"RECOLLECT_INDEXER": "true"})


SERVERS: dict[str, asyncio.subprocess.Process] = {}


async def _begin(name: str, environment: dict[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        RECOLLECT, "serve", "--port", "0", stdout=asyncio.subprocess.PIPE, env=os.environ | environment
    )
    SERVERS[name] = process
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    found = re.search(r"http://\S+", line)
    assert found, f"the {name} did not start"
    return found[0]


@asynccontextmanager
async def _serving(name: str, environment: dict[str, str]) -> AsyncIterator[str]:
    try:
        yield await _begin(name, environment)
    finally:
        SERVERS[name].send_signal(signal.SIGINT)
        await SERVERS[name].communicate()


async def _weigh(soak: Soak, home: Path, until: float) -> None:
    while time.monotonic() < until:
        pids = {name: process.pid for name, process in SERVERS.items() if process.returncode is None} | {
            "soak, library": os.getpid()
        }
        for name, pid in pids.items():
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            soak.megabytes[f"{name} ({pid})"].append((time.monotonic() - soak.began, pages * 4096 / 2**20))
        await asyncio.sleep(5)


async def _progress(soak: Soak, until: float) -> None:
    while time.monotonic() < until:
        if sys.stderr.isatty():
            print(f"\r{soak.second()} s: {soak.done.total():,} done, {soak.away.total()} away", end="", file=sys.stderr)
        await asyncio.sleep(1)


async def _compare(soak: Soak, visitors: dict[str, Door]) -> None:
    """Every acknowledged write is there, once."""
    for name, door in visitors.items():
        stored = Counter(await door.read())
        for text in soak.acknowledged[name]:
            if stored[text] != 1:
                soak.wrong.append(f"{name}: stored {stored[text]} times: {text}")


def _report(soak: Soak) -> int:
    acknowledged = sum(map(len, soak.acknowledged.values()))
    print(f"\n{soak.done.total():,} requests, {acknowledged:,} acknowledged writes; by door: {dict(soak.done)}")
    if soak.away:
        print(f"database away: {soak.away.total()} requests, from {min(soak.away)} s to {max(soak.away)} s")
    for minute, times in sorted(soak.asked.items()):
        if len(times) > 1:
            print(f"minute {minute}: {len(times)} questions, p95 {statistics.quantiles(times, n=20)[18]:.0f} ms")
    for name, weights in soak.megabytes.items():
        print(f"memory of {name}: {weights[-1][1]:.0f} MB, {_slope(weights):+.2f} MB a minute")
    for problem in soak.wrong[:20]:
        print(f"WRONG: {problem}")
    print(f"{len(soak.wrong)} wrong")
    return 1 if soak.wrong else 0


def _slope(weights: list[tuple[float, float]]) -> float:
    """Of the second half, when every cache is filled."""
    later = weights[len(weights) // 2 :]
    if len(later) < 3:
        return 0.0
    return statistics.linear_regression(*zip(*later, strict=True)).slope * 60


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--pause", type=float, default=2.0, help="a user waits so long at most between two requests")
    parser.add_argument("--doors", default=",".join(DOORS), help="through which doors they come")
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.seconds, given.users, given.pause, given.doors.split(","))))
