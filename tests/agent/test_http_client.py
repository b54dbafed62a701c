"""The contract's HTTP client tests, one for each sentence, and what else a gateway can answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from recollect.agent.recall.gateway_client import MAX_ANSWER_BYTES, GatewayClient, GatewayError
from tests.agent.configs import BASE_URL, gateway
from tests.agent.leaks import USER_KEY
from tests.mcp_servers import SECONDS

Handler = Callable[[httpx.Request], httpx.Response] | Callable[[httpx.Request], Coroutine[None, None, httpx.Response]]
MESSAGES = [{"sender_id": "anna", "role": "user", "timestamp": 1, "content": "Hello."}]
OPERATIONS = ("search", "add", "flush")


@asynccontextmanager
async def client_of(handler: Handler, **fields: Any) -> AsyncIterator[GatewayClient]:
    client = GatewayClient(gateway(**fields), httpx.MockTransport(handler))
    yield client
    await client.close()


async def call(client: GatewayClient, operation: str) -> Any:
    if operation == "search":
        return await client.search("s1", "Where is the parrot?")
    return await (client.add("chat:s1", MESSAGES) if operation == "add" else client.flush("chat:s1"))


async def fault_of(handler: Handler, operation: str = "search", **fields: Any) -> GatewayError:
    """The fault of a call. Nothing hangs on it that could show the request."""
    async with client_of(handler, **fields) as client:
        # A client without a limit of its own fails the test instead of hanging it.
        async with asyncio.timeout(SECONDS):
            with pytest.raises(GatewayError) as caught:
                await call(client, operation)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert (caught.value.operation, caught.value.path) == (operation, f"/memories/{operation}")
    assert USER_KEY not in f"{caught.value} {caught.value!r} {vars(caught.value)}"
    return caught.value


def answering(response: httpx.Response) -> Handler:
    return lambda request: response


async def test_search_add_and_flush_use_the_exact_paths_and_payload_shapes() -> None:
    requests: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json={"results": []})

    fields = {"app_id": "shop", "project_id": "web", "scope": ("all_user_memory",), "top_k": 3}
    async with client_of(handler, **fields) as client:
        for operation in OPERATIONS:
            await call(client, operation)
    identity = {"user_id": "anna", "user_key": USER_KEY, "app_id": "shop", "project_id": "web"}
    question = {"conversation_id": "s1", "query": "Where is the parrot?", "scope": ["all_user_memory"], "top_k": 3}
    assert [(request.method, str(request.url), json.loads(request.content)) for request in requests] == [
        ("POST", f"{BASE_URL}/memories/search", identity | question),
        ("POST", f"{BASE_URL}/memories/add", identity | {"session_id": "chat:s1", "messages": MESSAGES}),
        ("POST", f"{BASE_URL}/memories/flush", identity | {"session_id": "chat:s1"}),
    ]
    assert {request.headers["content-type"] for request in requests} == {"application/json"}


async def test_configured_timeout_is_applied() -> None:
    timeouts: list[Any] = []

    async def never(request: httpx.Request) -> httpx.Response:
        timeouts.append(request.extensions["timeout"])
        await asyncio.Event().wait()
        raise AssertionError

    assert (await fault_of(never, timeout_seconds=0.05)).category == "timeout"
    assert set(timeouts[0].values()) == {0.05}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("status", "category"),
    [(400, "http_error"), (401, "unauthorized"), (403, "http_error"), (422, "http_error"), (500, "http_error")],
)
async def test_non_2xx_produces_sanitized_client_exceptions(operation: str, status: int, category: str) -> None:
    echo = httpx.Response(status, json={"detail": f"{USER_KEY} is wrong", "results": []})
    fault = await fault_of(answering(echo), operation)
    assert (fault.category, fault.status) == (category, status)
    assert str(fault) == f"The memory gateway failed: POST /memories/{operation}: {category} (status {status})"


@pytest.mark.parametrize(
    ("error", "category"),
    [
        (httpx.ConnectError(f"refused {USER_KEY[:2]}"), "connection"),
        (httpx.ReadError("reset"), "connection"),
        (httpx.RemoteProtocolError("disconnected"), "connection"),
        (httpx.ConnectTimeout("slow"), "timeout"),
        (httpx.ReadTimeout("slow"), "timeout"),
        (TimeoutError("slow"), "timeout"),
    ],
)
async def test_network_faults_produce_sanitized_client_exceptions(error: Exception, category: str) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise error

    fault = await fault_of(handler)
    assert (fault.category, fault.status) == (category, None)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "content",
    [b"", b"<html>Sign in</html>", b'{"results": [', b"\xff\xfe", b'{"results": [NaN]}', b"[" * 100_000, b"9" * 5000],
    ids=["empty", "html", "truncated", "not-text", "not-a-number", "brackets", "long-number"],
)
async def test_invalid_json_produces_sanitized_client_exceptions(operation: str, content: bytes) -> None:
    assert (await fault_of(answering(httpx.Response(200, content=content)), operation)).category == "invalid_json"


@pytest.mark.parametrize("answer", [{}, {"results": {}}, {"results": None}, {"results": "x"}, {"Results": []}, [], 5])
async def test_invalid_response_shapes_produce_sanitized_client_exceptions(answer: Any) -> None:
    assert (await fault_of(answering(httpx.Response(200, json=answer)))).category == "invalid_response"


@pytest.mark.parametrize("operation", ["add", "flush"])
async def test_an_acknowledgement_that_is_no_object_is_none(operation: str) -> None:
    assert (await fault_of(answering(httpx.Response(200, json=["ok"])), operation)).category == "invalid_response"


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_exception_strings_never_contain_the_configured_key(operation: str) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        assert USER_KEY in request.content.decode()
        # Such a cause holds the request, and with it the key.
        raise httpx.ReadError("broken", request=request)

    fault = await fault_of(handler, operation)
    assert str(fault) == f"The memory gateway failed: POST /memories/{operation}: connection"


@pytest.mark.parametrize("error", [httpx.ReadError("broken"), None])
async def test_nothing_is_tried_a_second_time(error: Exception | None) -> None:
    calls: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        calls.append(request.url.path)
        if error:
            raise error
        return httpx.Response(503)

    await fault_of(handler, "add")
    assert calls == ["/memories/add"]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_a_fault_because_it_would_carry_the_key_elsewhere(status: int) -> None:
    asked: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return httpx.Response(status, headers={"Location": "http://elsewhere.test/memories/search"})

    fault = await fault_of(handler)
    assert (fault.category, fault.status) == ("http_error", status)
    assert asked == ["gateway.test"]


class Endless(httpx.AsyncByteStream):
    """An answer that goes on; it knows how much of it was read, and whether it was closed."""

    def __init__(self) -> None:
        self.sent = 0
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.sent += 65_536
            yield b" " * 65_536

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize(("status", "category"), [(200, "too_large"), (500, "http_error")])
async def test_an_endless_answer_is_not_read_past_the_limit(status: int, category: str) -> None:
    body = Endless()
    assert (await fault_of(answering(httpx.Response(status, stream=body)))).category == category
    assert body.sent <= MAX_ANSWER_BYTES + 65_536
    assert body.closed


async def test_an_answer_that_drips_ends_at_the_timeout() -> None:
    class Drip(Endless):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                yield b" "
                await asyncio.sleep(0)

    body = Drip()
    assert (await fault_of(answering(httpx.Response(200, stream=body)), timeout_seconds=0.05)).category == "timeout"
    assert body.closed


async def test_an_answer_in_a_compression_that_was_not_asked_for_is_not_unpacked() -> None:
    packed = httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"\x1f\x8b bomb"))
    asked: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["accept-encoding"])
        return packed

    assert (await fault_of(handler)).category == "invalid_json"
    assert asked == ["identity"]


async def test_a_cancelled_call_is_cancelled_and_not_a_fault() -> None:
    asked = asyncio.Event()

    async def never(request: httpx.Request) -> httpx.Response:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with client_of(never) as client:
        task = asyncio.create_task(call(client, "search"))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_proxy_of_the_environment_does_not_see_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(await reader.readline())
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, address)
    client = GatewayClient(gateway(base_url="http://gateway.invalid"))
    with pytest.raises(GatewayError, match="connection"):
        await client.flush("chat:s1")
    await client.close()
    server.close()
    assert reached == []


async def test_any_characters_of_a_prompt_arrive_or_are_refused_by_the_gateway() -> None:
    queries: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        queries.append(json.loads(request.content)["query"])
        return httpx.Response(200, json={"results": []})

    async with client_of(handler) as client:
        for query in ("Grüße 🦜", "\x00\x1b[31m", "half a pair \ud83e", '"}{'):
            await client.search("s1", query)
            assert queries[-1] == query


@given(st.binary(max_size=200))
@hypothesis(deadline=None)
def test_any_body_is_an_answer_or_a_fault(content: bytes) -> None:
    async def ask() -> None:
        async with client_of(answering(httpx.Response(200, content=content))) as client:
            try:
                await client.search("s1", "x")
            except GatewayError as problem:
                assert problem.category in ("invalid_json", "invalid_response")  # noqa: PT017

    asyncio.run(ask())
