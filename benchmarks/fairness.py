"""One greedy client beside nine polite ones: how long the polite ones wait, with and without it."""

import asyncio
import json
import time
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


async def run(report: Report, home: Path) -> None:
    print("fairness")
    engine = await Engine.open(Settings(data_dir=home, indexer=False))
    try:
        await recall.fill(engine, "fair", {f"user-{number}": PASSAGES for number in range(POLITE + 1)})
        keys = [(await engine.access.create_key("fair", f"client {n}")).secret for n in range(POLITE + 1)]
        async with recollect_server(home) as port:
            await _asked(port, keys[1:])
            alone = await _asked(port, keys[1:])
            greed = [asyncio.create_task(_greedy(port, keys[0])) for _ in range(GREEDY_CONNECTIONS)]
            beside = await _asked(port, keys[1:])
            for each in greed:
                each.cancel()
            answers = await asyncio.gather(*greed, return_exceptions=True)
            again = await _asked(port, keys[1:])
    finally:
        await engine.close()
    assert not any(isinstance(answer, Exception) for answer in answers), answers
    (p50, p95), (beside50, beside95), (_, again95) = spread(alone), spread(beside), spread(again)
    report.add(
        f"recall p95 of {POLITE} polite clients beside a greedy one with {GREEDY_CONNECTIONS} connections, over alone",
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


async def _greedy(port: int, key: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        await _recall(reader, writer, key, "user-0")


async def _recall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str, user: str) -> None:
    body = json.dumps({"query": recall.question(), "user_id": user}).encode()
    head = f"POST /recall HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json"
    writer.write(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in answer.split(b"\r\n", 1)[0], answer
    length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.split(b":")[1]))
