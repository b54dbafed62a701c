"""Bodies of the gateway, which hold their own credential: how little of one is read before it is checked."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from recollect.doors.rest.edge import body_limits
from recollect.doors.rest.edge.body_limits import credential_in
from recollect.engine import Engine
from tests.rest_servers import listening

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

MB = 1024 * 1024


@pytest.fixture
async def url(engine: Engine) -> AsyncIterator[str]:
    async with listening(engine, "192.0.2.1") as url:  # beyond loopback, nothing is open
        yield url


@pytest.fixture
async def credential(engine: Engine, namespace: str) -> dict[str, str]:
    key = await engine.access.create_user_key(namespace, "anna")
    return {"user_id": "anna", "user_key": key.secret}


@asynccontextmanager
async def unfinished(url: str, body: bytes, path: str = "/resources") -> AsyncIterator[asyncio.StreamReader]:
    """A request that announces 60 MB and sends only this."""
    address = httpx.URL(url)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {60 * MB}\r\n\r\n".encode() + body)
    try:
        yield reader
    finally:
        writer.close()


async def test_a_wrong_key_is_refused_before_the_rest_of_the_body_arrives(url: str) -> None:
    begun = b'{"user_id": "anna", "user_key": "uk_wrong", "text": "' + b"x" * 1000
    async with unfinished(url, begun) as reader:
        assert b" 401 " in await reader.readline()


async def test_what_needs_a_key_of_the_namespace_is_refused_before_any_of_its_body(url: str) -> None:
    for path in ("/mcp", "/ltm/memories", "/stm/s/messages", "/users"):
        async with unfinished(url, b"", path) as reader:
            assert b" 401 " in await reader.readline(), path


async def test_many_values_before_the_key_are_not_parsed(url: str) -> None:
    """Sixty megabytes of empty lists would take two gigabytes."""
    begun = b'{"x":[' + b"[]," * (MB // 2)
    async with unfinished(url, begun) as reader:
        assert b" 413 " in await reader.readline()


async def test_a_long_body_that_begins_with_the_key_is_taken(url: str, credential: dict[str, str]) -> None:
    text = "Flights are booked two weeks ahead. " * 60_000
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        answer = await client.post("/resources", json=credential | {"resource_uri": "file:a", "text": text})
        assert answer.status_code == 201, answer.text
        missing = await client.post("/resources", json={"text": text[: MB // 2]} | {"resource_uri": "file:b"})
        assert missing.status_code == 401
        assert "user_key" in missing.json()["detail"]


async def test_the_key_may_come_last_in_a_body_of_moderate_length(url: str, credential: dict[str, str]) -> None:
    messages = [
        {"sender_id": "anna", "role": "user", "timestamp": number, "content": "It is raining again. " * 20}
        for number in range(1, 1001)
    ]
    body = {"session_id": "chat:1", "messages": messages} | credential
    assert 64 * 1024 < len(json.dumps(body)) < MB
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        answer = await client.post("/memories/add", json=body)
        assert answer.json()["added"] == 1000


async def test_a_key_of_the_namespace_needs_no_order(
    url: str, engine: Engine, namespace: str, credential: dict[str, str]
) -> None:
    key = await engine.access.create_key(namespace)
    text = "Flights are booked two weeks ahead. " * 40_000
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        body = {"resource_uri": "file:a", "text": text} | credential
        refused = await client.post("/resources", json=body)
        assert refused.status_code == 413
        assert "before the other fields" in refused.json()["detail"]
        answer = await client.post("/resources", json=body, headers={"Authorization": f"Bearer {key.secret}"})
        assert answer.status_code == 201


async def test_a_key_that_does_not_come_is_waited_for_only_so_long(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limits, "MAX_UNKNOWN_SECONDS", 0.05)
    async with unfinished(url, b'{"text": "') as reader:
        assert b" 408 " in await reader.readline()


async def test_unknown_senders_together_hold_little(
    url: str, credential: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_limits, "MAX_UNKNOWN_TOTAL_BYTES", 100_000)
    begun = b'{"text": "' + b"x" * 30_000
    async with unfinished(url, begun) as first, unfinished(url, begun) as second, unfinished(url, begun):
        async with unfinished(url, begun):
            assert b" 408 " in await first.readline()
            async with httpx.AsyncClient(base_url=url, timeout=60) as client:
                long = credential | {"resource_uri": "file:a", "text": "x" * 99_000}
                assert (await client.post("/resources", json=long)).status_code == 201
        assert b" 408 " in await second.readline()


@pytest.mark.parametrize(
    "beginning",
    [
        b'{"user_id": "anna", "user_key": "uk_1", "text": "unfini',
        b' \r\n{ "user_key" :"uk_1","metadata":{"user_key":"no","a":[{"user_id":"no"}]},"user_id":"ann\\u0061"}',
        b'{"text": "a \\" \\\\", "n": -1.5e3, "t": true, "user_id": "anna", "user_key": "uk_1"',
        b'{"a": "user_key", "b": ["user_id", "x"], "user_id": "anna", "user_key": "uk_1"',
    ],
)
def test_the_credential_is_found_wherever_it_stands(settings: object, beginning: bytes) -> None:
    assert credential_in(beginning) == ("anna", "uk_1")


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"user_id": "anna", "user_key": "uk_unfinished',
        b'{"user_id": 7, "user_key": "uk_1"}',
        b'{"user_id": "\\ud8", "user_key": "uk_1"}',
        b'{"a": {"user_id": "anna", "user_key": "uk_1"}}',
        b'["user_id", "anna", "user_key", "uk_1"]',
        b'{"x":[' + b"[]," * 50_000 + b'0], "user_id": "anna", "user_key": "uk_1"}',
    ],
    ids=lambda beginning: repr(beginning[:40]),
)
def test_what_is_no_credential_is_not_taken_for_one(settings: object, beginning: bytes) -> None:
    assert credential_in(beginning) is None
