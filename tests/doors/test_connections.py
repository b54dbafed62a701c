"""Connections on a real socket: unfinished, idle and unread ones end, and there is always room for another client."""

import asyncio
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import httpx
import pytest

from recollect.doors.rest.edge import connections, server
from recollect.engine import Engine
from recollect.settings import Settings
from tests.rest_servers import listening
from tests.waiting import wait_until

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]

HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
BODY_TO_COME = (
    b"POST /ltm/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
)

# The server has begun to read the body when it asks for it.
EXPECT = b"\r\nExpect: 100-continue\r\n\r\n"
EVENTS = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"


@asynccontextmanager
async def connected(url: str, sent: bytes, address: str = "127.0.0.1") -> AsyncIterator[Stream]:
    there = httpx.URL(url)
    reader, writer = await asyncio.open_connection(there.host, there.port, local_addr=(address, 0))
    writer.write(sent)
    try:
        yield reader, writer
    finally:
        writer.close()


async def answered(stream: Stream) -> bytes:
    """The first line of the answer to a whole request, with the rest of it read too; empty if it was closed."""
    reader, writer = stream
    writer.write(HEAD + b"\r\n")
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return b""
    await reader.readexactly(len(b'{"status":"ok"}'))
    return head.partition(b"\r\n")[0]


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits at all has waited too long."""
    for name in ("HEAD_SECONDS", "KEEP_ALIVE_SECONDS", "UNREAD_SECONDS"):
        monkeypatch.setattr(connections, name, 0.2)
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.02)


@pytest.fixture
def guards(monkeypatch: pytest.MonkeyPatch) -> list[connections.Connections]:
    """Of the servers that are begun in a test."""
    made: list[connections.Connections] = []

    class Known(connections.Connections):
        def __init__(self, limit: int, proxies: tuple[str, ...] = ()) -> None:
            super().__init__(limit, proxies)
            made.append(self)

    monkeypatch.setattr(server, "Connections", Known)
    return made


async def test_a_head_that_does_not_end_is_not_waited_for(engine: Engine, soon: None) -> None:
    async with listening(engine) as url, connected(url, HEAD) as (reader, _), connected(url, b"") as (silent, _):
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        assert await silent.read() == b""


async def test_an_idle_connection_ends(engine: Engine, soon: None) -> None:
    async with listening(engine) as url, connected(url, HEAD + b"\r\n") as (reader, _):
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")


async def test_the_rest_of_a_body_that_was_refused_is_not_waited_for(engine: Engine, soon: None) -> None:
    refused = BODY_TO_COME.replace(b"\r\n\r\n", b"\r\nAuthorization: Bearer wrong\r\n\r\n")
    async with listening(engine) as url, connected(url, refused) as (reader, _):
        assert (await reader.read()).startswith(b"HTTP/1.1 401 ")


async def test_an_answer_that_nobody_reads_is_not_kept(
    engine: Engine, soon: None, guards: list[connections.Connections]
) -> None:
    request = b"GET /docs/assets/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with listening(engine) as url, connected(url, request * 10):
        # Nobody reads from this stream, so that its buffers fill up, which are smaller than ten such answers.
        await asyncio.to_thread(wait_until, lambda: len(guards[0]) == 1, "the client is there")
        await asyncio.to_thread(wait_until, lambda: len(guards[0]) == 0, "the connection was closed")


async def test_requests_that_never_end_leave_room_for_others(
    engine: Engine, guards: list[connections.Connections], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 12)
    async with listening(engine) as url, AsyncExitStack() as many:
        for _ in range(30):
            await many.enter_async_context(connected(url, HEAD))
        async with connected(url, b"") as stream:
            assert await answered(stream) == b"HTTP/1.1 200 OK"
            assert len(guards[0]) <= 12


async def test_one_address_cannot_close_the_connections_of_another(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 12)
    async with listening(engine) as url, AsyncExitStack() as many, connected(url, b"", "127.0.0.2") as other:
        assert await answered(other) == b"HTTP/1.1 200 OK"
        for _ in range(30):
            stream = await many.enter_async_context(connected(url, b""))
            assert await answered(stream) == b"HTTP/1.1 200 OK"
        assert await answered(other) == b"HTTP/1.1 200 OK"


async def test_when_all_are_at_work_another_is_told_so(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 8)
    engine = await Engine.open(settings.model_copy(update={"trusted_proxies": ("127.0.0.1",)}))
    async with listening(engine) as url, AsyncExitStack() as many:
        for _ in range(8):
            reader, _writer = await many.enter_async_context(connected(url, BODY_TO_COME.replace(b"\r\n\r\n{", EXPECT)))
            assert (await reader.readline()).startswith(b"HTTP/1.1 100 ")
        async with connected(url, b"") as (reader, _):
            assert (await reader.read()).startswith(b"HTTP/1.1 503 ")


async def test_descriptors_are_left_for_the_database_and_for_files(engine: Engine) -> None:
    with at_most_descriptors(200):
        assert 8 < connections.limit_by_descriptors(10) < 130
    with at_most_descriptors(100):
        assert connections.limit_by_descriptors(10) == 8


@contextmanager
def at_most_descriptors(number: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("opened", [HEAD, BODY_TO_COME, EVENTS, HEAD + b"\r\n", b""], ids=repr)
async def test_a_server_stops_whatever_its_clients_do(engine: Engine, opened: bytes) -> None:
    async with AsyncExitStack() as client:
        async with asyncio.timeout(30), listening(engine) as url:
            reader, _ = await client.enter_async_context(connected(url, opened))
            async with connected(url, b"") as stream:
                assert await answered(stream) == b"HTTP/1.1 200 OK"
        rest = await reader.read()
        assert opened != BODY_TO_COME or rest.startswith(b"HTTP/1.1 503 ")


async def test_a_request_under_way_may_finish_when_the_server_stops(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "GRACE_SECONDS", 30)
    async with AsyncExitStack() as client:
        async with listening(engine) as url:
            opened = BODY_TO_COME.replace(b"\r\n\r\n{", EXPECT)
            reader, writer = await client.enter_async_context(connected(url, opened))
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
            text = b'{"messages": "The ferry leaves at seven.", "category": "fact", "user_id": "ann"}'
            sending = asyncio.create_task(send_when_it_stops(url, writer, text.ljust(100)))
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        await sending


async def send_when_it_stops(url: str, writer: asyncio.StreamWriter, text: bytes) -> None:
    there = httpx.URL(url)

    def stops() -> bool:
        with socket.socket() as client:
            return client.connect_ex((there.host, there.port or 0)) != 0

    await asyncio.to_thread(wait_until, stops, "the server accepts no more")
    writer.write(text)
