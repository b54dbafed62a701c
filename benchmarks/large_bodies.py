"""What `GET /health` waits while large bodies are in flight, over what it waits on an idle server of the same run."""

import asyncio
import json
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

from benchmarks.http_load import get, post
from benchmarks.report import Report
from benchmarks.rest import recollect_server

MEGABYTE = 1_000_000
PROBE_SECONDS = 0.01
IDLE_SECONDS = 3.0


async def run(report: Report, home: Path) -> None:
    print("large_bodies")
    async with recollect_server(home) as port:
        idle = await _p99(port, asyncio.sleep(IDLE_SECONDS))
        for what, request in _requests():
            began = time.perf_counter()
            p99 = await _p99(port, _ask(port, request))
            figure = (
                f"p99 {p99:.0f} ms, {p99 / idle:.1f} times idle ({idle:.0f} ms); {time.perf_counter() - began:.1f} s"
            )
            report.add(f"GET /health while {what}", figure, "p99 < 100 ms")
        began = time.perf_counter()
        await _ask(port, _memory(_prose(8 * MEGABYTE)))
        report.add("a memory of 8 MB is stored", f"{time.perf_counter() - began:.1f} s", "< 10 s")


def _requests() -> Iterator[tuple[str, bytes]]:
    text = _prose(15 * MEGABYTE)
    yield "a message of 15 MB is stored", _message(text)
    yield "a memory of 15 MB is stored", _memory(text)
    yield "15 MB of JSON values are refused", post("/stm/bench/messages", b"[" + b"[]," * (5 * MEGABYTE) + b"[]]")
    arguments = {"session_id": "bench", "speaker": "user", "content": text}
    call = {"name": "store_raw_dialogue", "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    yield "a tool of MCP stores 15 MB", _with_accept(post("/mcp", json.dumps(body).encode()))


def _prose(size: int) -> str:
    """Sentences that differ, as those of a book do."""
    sentences = (f"In week {n} Anna{n % 977} told Ben{n % 613} of the {n % 4099} boats. " for n in range(size // 40))
    return "".join(sentences)[:size]


def _message(text: str) -> bytes:
    return post("/stm/bench/messages", json.dumps({"messages": [{"role": "user", "content": text}]}).encode())


def _memory(text: str) -> bytes:
    return post("/ltm/memories", json.dumps({"messages": text, "user_id": "bench", "category": "fact"}).encode())


def _with_accept(request: bytes) -> bytes:
    return request.replace(b"\r\n", b"\r\nAccept: application/json, text/event-stream\r\n", 1)


async def _ask(port: int, request: bytes) -> None:
    """Until the whole answer is there, whatever it says."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
    while await reader.read(MEGABYTE):
        pass
    writer.close()
    await writer.wait_closed()


async def _p99(port: int, work: Coroutine[Any, Any, None]) -> float:
    """In milliseconds, of probes while the work is under way."""
    under_way = asyncio.ensure_future(work)
    times: list[float] = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while not under_way.done():
        began = time.perf_counter()
        writer.write(get("/health"))
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        times += _as_often_as_asked(time.perf_counter() - began)
        await asyncio.sleep(PROBE_SECONDS)
    writer.close()
    await under_way
    return sorted(times)[int(len(times) * 0.99)] * 1000


def _as_often_as_asked(waited: float) -> Iterator[float]:
    """A long wait also kept others from being sent, which would have waited a little less each."""
    yield waited
    while (waited := waited - PROBE_SECONDS) > PROBE_SECONDS:
        yield waited
