"""One greedy client beside nine polite ones: how long the polite ones wait, with and without it."""

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import recall
from benchmarks.report import Report, spread
from benchmarks.rest import recollect_server
from benchmarks.sizes import sized
from recollect import Settings
from recollect.engine import Engine

POLITE = 9
QUESTIONS = sized(60, 5)
THINKING_SECONDS = 0.05
GREEDY_CONNECTIONS = 64
PASSAGES = sized(2_000)

Request = Callable[[int], tuple[str, dict[str, object]]]


def _asks(number: int) -> tuple[str, dict[str, object]]:
    return "/recall", {"query": recall.question(), "user_id": "user-0"}


def _writes(number: int) -> tuple[str, dict[str, object]]:
    said = {"role": "user", "content": recall.question()}
    return f"/stm/greedy-{number % 50}/messages", {"messages": [said]}


def _adds(number: int) -> tuple[str, dict[str, object]]:
    return "/ltm/memories", {"messages": f"{number} {recall.question()}", "category": "fact", "user_id": "user-0"}


GREEDY: dict[str, Request] = {"asks": _asks, "stores messages": _writes, "adds memories": _adds}


async def run(report: Report, home: Path) -> None:
    print("fairness")
    engine = await Engine.open(Settings(data_dir=home, indexer=False))
    try:
        await recall.fill(engine, "fair", {f"user-{number}": PASSAGES for number in range(POLITE + 1)})
        keys = [(await engine.access.create_key("fair", f"client {n}")).secret for n in range(POLITE + 1)]
        async with recollect_server(home) as port:
            await _asked(port, keys[1:])
            for greed, request in GREEDY.items():
                await _beside(report, port, keys, greed, request)
    finally:
        await engine.close()


async def _beside(report: Report, port: int, keys: list[str], greed: str, request: Request) -> None:
    alone = await _asked(port, keys[1:])
    greedy = [asyncio.create_task(_greedy(port, keys[0], request)) for _ in range(GREEDY_CONNECTIONS)]
    beside = await _asked(port, keys[1:])
    for each in greedy:
        each.cancel()
    answers = await asyncio.gather(*greedy, return_exceptions=True)
    again = await _asked(port, keys[1:])
    failed = [answer for answer in answers if isinstance(answer, Exception)]
    assert not failed, failed[0]
    (p50, p95), (beside50, beside95), (_, again95) = spread(alone), spread(beside), spread(again)
    report.add(
        f"recall p95 of {POLITE} polite clients beside one that {greed} over {GREEDY_CONNECTIONS} connections, "
        "over alone",
        f"{beside95 / p95:.2f} ({beside95:.0f} / {p95:.0f} ms, alone again {again95:.0f}; "
        f"p50 {beside50 / p50:.2f}: {beside50:.0f} / {p50:.0f} ms)",
        "<= 2",
    )


async def _asked(port: int, keys: list[str]) -> list[float]:
    """Every polite client asks, reads, thinks for a moment, and asks again."""
    times: list[float] = []

    async def client(number: int, key: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(QUESTIONS):
            began = time.perf_counter()
            await _recall(reader, writer, key, f"user-{number}")
            times.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(THINKING_SECONDS)
        writer.close()

    await asyncio.gather(*(client(number, key) for number, key in enumerate(keys, 1)))
    return times


async def _greedy(port: int, key: str, request: Request) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in itertools.count():
        await _sent(reader, writer, key, *request(number))


async def _recall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str, user: str) -> None:
    await _sent(reader, writer, key, "/recall", {"query": recall.question(), "user_id": user})


async def _sent(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str, path: str, document: dict[str, object]
) -> None:
    body = json.dumps(document).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json"
    writer.write(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    assert b" 20" in answer.split(b"\r\n", 1)[0], answer
    length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.split(b":")[1]))
