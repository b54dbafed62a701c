"""Gateways on real sockets: ones that misbehave, and `recollect serve` in a process that can be killed."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TextIO

from tests.commands import RECOLLECT
from tests.mcp_servers import SECONDS, environment

Answer = Callable[["FaultyGateway", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class FaultyGateway:
    """What was asked of a gateway, and how much it got to say."""

    answer: Answer
    url: str = ""
    asked: list[str] = field(default_factory=list)
    sent: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.asked.append(head.split()[1].removeprefix("/memories/"))
            found = re.search(r"content-length: (\d+)", head, re.I)
            await reader.readexactly(int(found[1]) if found else 0)
            await self.answer(self, writer)
        writer.close()

    async def send(self, writer: asyncio.StreamWriter, content: bytes) -> None:
        writer.write(content)
        await writer.drain()
        self.sent += len(content)


@asynccontextmanager
async def misbehaving(answer: Answer) -> AsyncIterator[FaultyGateway]:
    gateway = FaultyGateway(answer)
    server = await asyncio.start_server(gateway.serve, "127.0.0.1", 0)
    gateway.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield gateway
    finally:
        server.close()


def http(body: bytes, status: str = "200 OK", kind: str = "application/json", length: int | None = None) -> bytes:
    """A response; `length` may promise more than there is."""
    size = len(body) if length is None else length
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


def says(response: bytes) -> Answer:
    return lambda gateway, writer: gateway.send(writer, response)


def says_json(answer: Any) -> Answer:
    return says(http(json.dumps(answer).encode()))


async def says_nothing(gateway: FaultyGateway, writer: asyncio.StreamWriter) -> None:
    """Until the other side has had enough."""
    await writer.wait_closed()


async def drips(gateway: FaultyGateway, writer: asyncio.StreamWriter) -> None:
    """Always soon enough for a limit on each read, and never done."""
    await gateway.send(writer, http(b"", length=1_000_000))
    while True:
        await gateway.send(writer, b" ")
        await asyncio.sleep(0.01)


async def floods(gateway: FaultyGateway, writer: asyncio.StreamWriter) -> None:
    """Fifty megabytes."""
    await gateway.send(writer, http(b"", length=50 * 1024 * 1024))
    for _ in range(50 * 16):
        await gateway.send(writer, b" " * 65_536)


async def hangs_up(gateway: FaultyGateway, writer: asyncio.StreamWriter) -> None:
    writer.close()


def closed_port() -> str:
    """The address of a gateway that was stopped."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


@dataclass
class Served:
    """A running `recollect serve`."""

    url: str
    process: "subprocess.Popen[str]"

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=SECONDS)


@contextmanager
def serving(namespace: str, log: TextIO) -> Iterator[Served]:
    command = [str(RECOLLECT), "serve", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | environment(namespace)
    ) as process:
        assert process.stdout is not None
        try:
            lines = iter(process.stdout)
            yield Served(next(found[1] for line in lines if (found := re.search(r"(http://\S+?)/mcp", line))), process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(timeout=SECONDS)
