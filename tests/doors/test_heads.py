"""Heads of requests on a real socket: their length, and those that proxies and we might read differently."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from recollect.engine import Engine
from tests.rest_servers import listening

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

HOST = b"Host: localhost\r\n"
CLOSE = b"Connection: close\r\n"
BODY = b'{"messages": [{"role": "user", "content": "smuggled"}]}'
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
KB = 1024


@pytest.fixture
async def url(engine: Engine) -> AsyncIterator[str]:
    async with listening(engine) as address:
        yield address


async def sent(url: str, request: bytes) -> tuple[int, bytes]:
    """The status and body of the only answer, or of the last, and then the connection is closed."""
    there = httpx.URL(url)
    reader, writer = await asyncio.open_connection(there.host, there.port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    head, _, body = answer[answer.rindex(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def get(path: bytes = b"/health", *headers: bytes, method: bytes = b"GET") -> bytes:
    return method + b" " + path + b" HTTP/1.1\r\n" + HOST + CLOSE + b"".join(headers) + b"\r\n"


def post(length: bytes, version: bytes = b"1.1") -> bytes:
    kind = b"Content-Type: application/json\r\n"
    return b"POST /stm/s/messages HTTP/" + version + b"\r\n" + HOST + CLOSE + kind + length + CHUNKED


TOO_LONG = {
    "a long header": get(b"/health", b"X-Long: " + b"x" * 33 * KB + b"\r\n"),
    "many headers": get(b"/health", *(b"X-%d: %b\r\n" % (number, b"x" * 50) for number in range(700))),
    "a long path": get(b"/" + b"x" * 33 * KB),
    "a long query": get(b"/health?" + b"x" * 33 * KB),
    "a long method": get(method=b"X" * 33 * KB),
    "a head without an end": b"GET /" + b"x" * 40 * KB,
}


async def test_a_head_of_more_than_32_kb_is_refused_also_when_it_arrives_whole(url: str) -> None:
    for what, request in TOO_LONG.items():
        status, body = await sent(url, request)
        assert status == 431, what
        assert "32 kB" in json.loads(body)["detail"]
    assert (await sent(url, get(b"/health", b"X-Long: " + b"x" * 31 * KB + b"\r\n")))[0] == 200
    behind_another = get().replace(CLOSE, b"") + TOO_LONG["a long header"]
    assert (await sent(url, behind_another))[0] == 431


async def test_a_browser_that_asks_too_long_a_question_in_the_console_gets_a_page(url: str) -> None:
    whole = get(b"/console/recall?query=" + b"%D0%96" * 6 * KB)
    without_end = b"GET /console/recall?query=" + b"%D0%96" * 12 * KB
    for request in (whole, without_end, get(b"/console", b"Cookie: " + b"x" * 33 * KB + b"\r\n")):
        status, body = await sent(url, request)
        assert (status, b'<p class="fault" role="alert">The address' in body) == (431, True)
        assert b"go back and shorten it" in body
    assert (await sent(url, get(b"/consoles?" + b"x" * 33 * KB)))[1].startswith(b"{")


async def test_two_lengths_of_one_body_are_refused_and_nothing_is_stored(url: str) -> None:
    for request in (post(b"Content-Length: 5\r\n"), post(b"", b"1.0")):
        status, body = await sent(url, request)
        assert status == 400
        assert "Transfer-Encoding" in json.loads(body)["detail"]
    assert json.loads((await sent(url, get(b"/stm/s/messages")))[1])["messages"] == []
    assert (await sent(url, post(b"")))[0] == 200


async def test_what_is_no_http_is_refused_in_the_shape_of_all_errors(url: str) -> None:
    for request in (
        b"hello\r\n\r\n",
        get().replace(HOST, b""),
        get(b"/health", HOST),
        post(b"").replace(b"\r\n37", b"\r\nzz"),
    ):
        status, body = await sent(url, request)
        assert status == 400
        assert "not a valid HTTP" in json.loads(body)["detail"]


async def test_the_log_has_no_method_that_a_caller_made_up(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "recollect.requests"):
        assert (await sent(url, get(method=b"X" * 20 * KB)))[0] == 405
    assert [record.getMessage() for record in caplog.records] == ["_OTHER /health 405"]


async def test_without_a_key_and_without_a_host_no_memory_is_reached(url: str, engine: Engine, namespace: str) -> None:
    old = b"GET %b HTTP/1.0\r\n%b\r\n"
    assert (await sent(url, old % (b"/health", b"")))[0] == 200
    assert (await sent(url, old % (b"/ready", HOST)))[0] == 200
    assert (await sent(url, old % (b"/ready", b"")))[0] == 421
    key = await engine.access.create_key(namespace)
    assert (await sent(url, old % (b"/ready", f"Authorization: Bearer {key.secret}\r\n".encode())))[0] == 200


async def test_the_document_is_made_once_however_many_ask(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    openapi = FastAPI.openapi

    def counted(app: FastAPI) -> dict[str, Any]:
        made.append(app)
        return openapi(app)

    monkeypatch.setattr(FastAPI, "openapi", counted)
    async with listening(engine) as url:
        request = get(b"/openapi.json")
        status, body = await sent(url, request.replace(CLOSE, b"") * 20 + request)
    assert status == 200
    assert json.loads(body)["components"]["securitySchemes"]
    assert len(made) == 1
