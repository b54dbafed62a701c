"""The gate before every HTTP route, on a real socket: keys, hosts, sizes, rates, headers, log lines."""

import asyncio
import logging
from collections.abc import AsyncIterator

import httpx
import pytest

from recollect.doors.rest.edge import body_limits
from recollect.engine import Engine
from recollect.settings import Settings
from tests.rest_servers import listening, serving

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

GUARDED = ("/ready", "/mcp")


@pytest.fixture
async def client(engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(engine) as client:
        yield client


async def status(client: httpx.AsyncClient, path: str, **headers: str) -> int:
    return (await asked(client, path, **headers)).status_code


async def asked(client: httpx.AsyncClient, path: str, **headers: str) -> httpx.Response:
    # A GET of /mcp would open a stream that never ends.
    return await client.request("POST" if path == "/mcp" else "GET", path, headers=headers)


async def test_on_loopback_a_namespace_without_keys_is_open(client: httpx.AsyncClient, namespace: str) -> None:
    answer = await client.get("/ready")
    assert answer.status_code == 200
    assert answer.json()["namespace"] == namespace


@pytest.mark.parametrize("path", GUARDED)
async def test_a_namespace_with_a_key_asks_for_it(
    client: httpx.AsyncClient, engine: Engine, namespace: str, path: str
) -> None:
    key = await engine.access.create_key(namespace)
    answer = await asked(client, path)
    assert answer.status_code == 401
    assert "Authorization: Bearer" in answer.json()["detail"]
    assert answer.headers["www-authenticate"] == "Bearer"
    assert await status(client, path, Authorization=f"Bearer {key.secret}") not in (401, 403)
    assert await status(client, path, Authorization=f"Bearer {key.secret[:-1]}") == 401
    assert await status(client, "/health") == 200


async def test_the_key_decides_the_namespace(client: httpx.AsyncClient, engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(f"{namespace}-other")
    answer = await client.get("/ready", headers={"Authorization": f"bearer {key.secret}"})
    assert answer.json()["namespace"] == f"{namespace}-other"


MALFORMED = [
    {"Authorization": "Bearer wrong"},
    {"Authorization": "rk_12345678_secret"},
    {"Authorization": "Basic YTpi"},
    {"Authorization": "Bearer"},
    {"Authorization": ""},
    {"X-API-Key": "rk_12345678_secret"},
    {"Api-Key": "mine"},
    {"X-Auth-Token": "mine"},
    {"Proxy-Authorization": "Bearer rk_12345678_secret"},
    {"Cookie": "session=rk_12345678_secret"},
]


@pytest.mark.parametrize("headers", MALFORMED, ids=str)
async def test_a_malformed_or_unknown_key_is_refused_even_where_none_is_needed(
    client: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    for path in (*GUARDED, "/stm/s/messages", "/ltm/memories", "/metrics", "/nowhere"):
        answer = await asked(client, path, **headers)
        assert answer.status_code == 401, path
        assert "Authorization: Bearer KEY" in answer.json()["detail"] or "not valid" in answer.json()["detail"]
        assert "secret" not in answer.text
    assert (await client.post("/memories/search", headers=headers, json={})).status_code == 401


@pytest.mark.parametrize("headers", MALFORMED, ids=str)
async def test_public_routes_look_at_no_key(client: httpx.AsyncClient, headers: dict[str, str]) -> None:
    for path in ("/health", "/docs", "/openapi.json"):
        assert await status(client, path, **headers) == 200


async def test_a_key_in_the_address_is_refused(client: httpx.AsyncClient) -> None:
    for path in ("/ready?api_key=rk_12345678_secret", "/ltm/memories?user_id=u&key=rk_12345678_secret"):
        answer = await client.get(path)
        assert answer.status_code == 401
        assert "Authorization: Bearer KEY" in answer.json()["detail"]
    assert await status(client, "/ready", Cookie="theme=dark", **{"X-CSRF-Token": "x"}) == 200


async def test_a_key_beside_another_is_refused(client: httpx.AsyncClient, engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace)
    both = [("Authorization", f"Bearer {key.secret}"), ("Authorization", "Bearer other")]
    assert (await client.get("/ready", headers=both)).status_code == 401


async def test_public_routes_answer_head_as_they_answer_get(client: httpx.AsyncClient) -> None:
    for path in ("/health", "/docs", "/openapi.json", "/docs/assets/swagger-ui.css"):
        head, get = await client.head(path), await client.get(path)
        assert head.status_code == get.status_code == 200, path
        assert head.content == b""
        assert head.headers["content-length"] == get.headers["content-length"]


async def test_a_server_may_always_want_a_key(settings: Settings, namespace: str) -> None:
    engine = await Engine.open(settings.model_copy(update={"require_key": True}))
    async with serving(engine) as client:
        assert await status(client, "/ready") == 401
        assert await status(client, "/health") == 200
        key = await engine.access.create_key(namespace)
        assert await status(client, "/ready", Authorization=f"Bearer {key.secret}") == 200


async def test_a_users_key_is_no_key_of_the_namespace(
    client: httpx.AsyncClient, engine: Engine, namespace: str
) -> None:
    key = await engine.access.create_user_key(namespace, "alice")
    assert await status(client, "/ready", Authorization=f"Bearer {key.secret}") == 401


async def test_off_loopback_nothing_is_open(engine: Engine, namespace: str) -> None:
    async with serving(engine, "192.0.2.1") as client:
        assert await status(client, "/ready") == 401
        assert await status(client, "/health") == 200
        key = await engine.access.create_key(namespace)
        # Behind a proxy the Host is the proxy's: a key is proof enough.
        assert await status(client, "/ready", Authorization=f"Bearer {key.secret}", Host="memory.example.org") == 200


FOREIGN = (
    "evil.example:8000",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "[::1].evil.example",
    "[::1]evil.example",
    "[::1]:80.evil.example",
    "[::1]:80@evil.example",
    "localhost@evil.example",
    "localhost:80.evil.example",
    "localhost/evil.example",
    "[localhost]",
    "[127.0.0.1]",
    "::1",
    "[::2]:80",
)


@pytest.mark.parametrize("path", GUARDED)
@pytest.mark.parametrize(("header", "refusal"), [("Host", 421), ("Origin", 403)])
async def test_a_page_of_another_site_is_turned_away(
    client: httpx.AsyncClient, path: str, header: str, refusal: int
) -> None:
    scheme = "http://" if header == "Origin" else ""
    for host in FOREIGN:
        assert await status(client, path, **{header: scheme + host}) == refusal, host
    for host in ("localhost:8000", "127.0.0.1", "127.0.0.2:80", "[::1]:8000", "[::1]", "LOCALHOST"):
        assert await status(client, path, **{header: scheme + host}) not in (401, 403, 421), host


async def test_a_host_has_no_scheme_and_an_origin_has_one(client: httpx.AsyncClient) -> None:
    assert await status(client, "/ready", Host="http://127.0.0.1") == 421
    for origin in ("null", "127.0.0.1", "file://localhost", "https://evil.example/http://localhost"):
        assert await status(client, "/ready", Origin=origin) == 403, origin


async def test_a_body_that_is_too_large_is_refused_announced_or_not(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_limits, "MAX_BODY_BYTES", 1000)
    body = b'"' + b"x" * 2000 + b'"'

    async def in_parts() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 100):
            yield body[start : start + 100]

    for content in (body, in_parts()):
        answer = await client.post("/ltm/memories", content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 413
        assert "limit" in answer.json()["detail"]


async def test_a_client_that_falls_silent_is_told_so(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limits, "MAX_SILENCE_SECONDS", 0.05)
    async with listening(engine) as url:
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /ltm/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 10\r\n\r\n{"
        )
        assert b" 408 " in await reader.readline()
        writer.close()
        await writer.wait_closed()


async def test_the_rate_limit_holds_for_each_key(settings: Settings, namespace: str) -> None:
    limited = await Engine.open(settings.model_copy(update={"rate_limit_per_minute": 3}))
    one, two = [await limited.access.create_key(namespace) for _ in range(2)]
    # Somebody may give a key of another namespace the same id.
    elsewhere = await limited.access.create_key(f"{namespace}-other", new_id=one.id)
    async with serving(limited) as client:
        for key in (one, two, elsewhere):
            seen = [await status(client, "/ready", Authorization=f"Bearer {key.secret}") for _ in range(4)]
            assert seen == [200, 200, 200, 429]
        answer = await client.get("/ready", headers={"Authorization": f"Bearer {one.secret}"})
        assert 1 <= int(answer.headers["retry-after"]) <= 20
        assert await status(client, "/health") == 200
        credentials = {"user_id": "anna", "user_key": "wrong", "session_id": "chat:1"}
        tries = [(await client.post("/memories/flush", json=credentials)).status_code for _ in range(4)]
        assert tries == [401, 401, 401, 429]


async def test_requests_without_a_key_are_counted_by_address_where_one_is_needed(
    settings: Settings, namespace: str
) -> None:
    limited = await Engine.open(settings.model_copy(update={"rate_limit_per_minute": 3}))
    await limited.access.create_key(namespace)
    async with serving(limited) as client:
        assert [await status(client, "/ready") for _ in range(4)] == [401, 401, 401, 429]


@pytest.mark.parametrize(
    ("trusted", "seen"), [((), [401, 401, 401, 429]), (("127.0.0.0/8",), [401, 401, 401, 401])], ids=str
)
async def test_a_forwarded_address_counts_only_if_a_trusted_proxy_names_it(
    settings: Settings, trusted: tuple[str, ...], seen: list[int]
) -> None:
    limited = await Engine.open(settings.model_copy(update={"rate_limit_per_minute": 3, "trusted_proxies": trusted}))
    async with serving(limited) as client:
        tries = [
            await status(client, "/ready", **{"Authorization": "Bearer wrong", "X-Forwarded-For": f"192.0.2.{number}"})
            for number in range(4)
        ]
    assert tries == seen


async def test_pages_of_allowed_origins_may_call_and_no_others(settings: Settings, namespace: str) -> None:
    allowed = "https://app.example.org"
    engine = await Engine.open(settings.model_copy(update={"cors_origins": (allowed,)}))
    key = await engine.access.create_key(namespace)
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    async with serving(engine) as client:
        for origin, permission in ((allowed, allowed), ("https://evil.example", None)):
            asked_first = await client.options("/ltm/memories", headers={"Origin": origin, **preflight})
            assert asked_first.headers.get("access-control-allow-origin") == permission
            refused = await client.get("/ready", headers={"Origin": origin})
            assert refused.status_code == 401
            assert refused.headers.get("access-control-allow-origin") == permission
            answer = await client.get("/ready", headers={"Origin": origin, "Authorization": f"Bearer {key.secret}"})
            assert answer.status_code == 200
            assert answer.headers.get("access-control-allow-origin") == permission


async def test_an_allowed_origin_may_use_an_open_namespace_and_any_origin_may_not(settings: Settings) -> None:
    for origins, expected in ((("https://app.example.org",), 200), (("*",), 403), ((), 403)):
        engine = await Engine.open(settings.model_copy(update={"cors_origins": origins}))
        async with serving(engine) as client:
            assert await status(client, "/ready", Origin="https://app.example.org") == expected


async def test_every_answer_has_security_headers_and_a_request_id(client: httpx.AsyncClient) -> None:
    for path in ("/health", "/nowhere", "/docs", "/ready"):
        answer = await client.get(path, headers={"X-Request-ID": "from-the-proxy.1"})
        assert answer.headers["x-request-id"] == "from-the-proxy.1"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors" in answer.headers["content-security-policy"] or path == "/docs"
    strange = await client.get("/health", headers={"X-Request-ID": "a b\tc"})
    assert strange.headers["x-request-id"] != "a b\tc"
    assert len(strange.headers["x-request-id"]) == 36


async def test_the_log_tells_of_each_request_without_its_key(
    client: httpx.AsyncClient, engine: Engine, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    key = await engine.access.create_key(namespace)
    with caplog.at_level(logging.INFO, "recollect.requests"):
        await client.get("/ready", headers={"Authorization": f"Bearer {key.secret}", "X-Request-ID": "abc"})
        await client.get(f"/ready?key={key.secret}")
    told = [vars(record) for record in caplog.records if record.name == "recollect.requests"]
    assert [line["message"] for line in map(dict, told)] == ["GET /ready 200", "GET - 401"]
    assert told[0]["request_id"] == "abc"
    assert told[0]["namespace"] == namespace
    assert told[0]["door"] == "rest"
    assert told[0]["ms"] >= 0
    assert key.secret not in str(told)


async def test_the_page_of_the_api_needs_no_other_host(client: httpx.AsyncClient) -> None:
    page = (await client.get("/docs")).text
    addresses = [part.split('"')[0] for part in page.split('src="')[1:] + page.split('href="')[1:]]
    assert len(addresses) == 3
    for address in addresses:
        assert address.startswith("/")
        assert await status(client, address) == 200
    assert (await client.get("/openapi.json")).json()["info"]["title"] == "Recollect"
