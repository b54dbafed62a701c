"""A small client that keeps connections open and waits for nothing else, so that the server is what is measured."""

import asyncio
import time
from collections.abc import Callable


async def requests_per_second(
    port: int, request: Callable[[int], bytes], connections: int, count: int
) -> tuple[float, list[float]]:
    """The rate of requests over so many connections, and how long each took, in milliseconds."""
    times: list[float] = []
    waiting = iter(range(count))

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in waiting:
            began = time.perf_counter()
            writer.write(request(number))
            await _answer(reader)
            times.append((time.perf_counter() - began) * 1000)
        writer.close()
        await writer.wait_closed()

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(connections)))
    return count / (time.perf_counter() - started), times


async def _answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head.split(b"\r\n", 1)[0], head
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return await reader.readexactly(int(length.split(b":")[1]))


def get(path: str) -> bytes:
    """A request without a body."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def post(path: str, body: bytes) -> bytes:
    """A request with a JSON body."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body
