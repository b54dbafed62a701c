"""OAuth for MCP clients, on a real socket: what works, and everything that must not."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated

from recollect.engine import Engine
from recollect.errors import LimitReached
from recollect.flows.accounts import clients
from recollect.origin import Limits
from recollect.settings import Settings
from tests.oauth_clients import CALLBACK, VERIFIER, OAuthClient, form_of, query_of
from tests.rest_servers import listening, serving

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

# As behind a proxy: the server is reached at another address than the one it listens at.
ISSUER = "https://memory.example.org"
RESOURCE = f"{ISSUER}/mcp"


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    engine = await Engine.open(settings.model_copy(update={"public_url": ISSUER}))
    yield engine
    await engine.close()


@pytest.fixture
async def http(engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(engine) as client:
        yield client


@pytest.fixture
async def key(engine: Engine, namespace: str) -> str:
    return (await engine.access.create_key(namespace, "laptop", "write")).secret


@pytest.fixture
async def client(http: httpx.AsyncClient, key: str) -> OAuthClient:
    return await OAuthClient.register(http, RESOURCE)


def refusal(answer: httpx.Response) -> str:
    assert answer.status_code in (400, 401), answer.text
    assert "access_token" not in answer.text
    error: str = answer.json()["error"]
    assert answer.json()["error_description"]
    return error


async def test_a_client_finds_its_way_from_a_refused_request(http: httpx.AsyncClient, key: str) -> None:
    refused = await http.post("/mcp")
    metadata = f"{ISSUER}/.well-known/oauth-protected-resource/mcp"
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == f'Bearer resource_metadata="{metadata}", scope="read write"'
    resource = (await http.get(metadata.removeprefix(ISSUER))).json()
    assert (resource["resource"], resource["authorization_servers"]) == (RESOURCE, [ISSUER])
    server = (await http.get("/.well-known/oauth-authorization-server")).json()
    assert server["issuer"] == ISSUER
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["authorization_response_iss_parameter_supported"] is True
    assert refused.json()["detail"].startswith("Sign in with OAuth, or send a key")
    wrong = await http.post("/mcp", headers={"Authorization": "Bearer wrong"})
    assert "or sign in with OAuth" in wrong.json()["detail"]
    assert wrong.headers["www-authenticate"].startswith('Bearer error="invalid_token", resource_metadata=')
    # Other routes take keys alone.
    assert (await http.get("/ready")).headers["www-authenticate"] == "Bearer"


async def test_a_client_is_connected_with_a_key_and_stores_for_its_namespace(
    client: OAuthClient, engine: Engine, namespace: str, key: str
) -> None:
    page = await client.asked()
    assert "calls itself" in page.text
    assert "app.example.org" in page.text
    back = await client.answered(page, key=key)
    assert back.headers["location"].startswith(f"{CALLBACK}?code=")
    assert (query_of(back)["state"], query_of(back)["iss"]) == ("a state", ISSUER)
    answer = await client.exchanged(query_of(back)["code"])
    assert answer.headers["cache-control"] == "no-store"
    tokens = answer.json()
    assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == ("Bearer", 3600, "read write")
    stored = await client.calls(tokens["access_token"])
    assert '"isError":false' in stored.text
    assert {entry.change.author for entry in (await engine.feed.page(namespace)).entries} == {"laptop"}
    (connection,) = await engine.connections.of_namespace(namespace, 10)
    assert (connection.client_name, connection.role, connection.redirect_uri) == ("Test", "write", CALLBACK)
    assert connection.last_used_at is not None


async def test_only_hashes_are_stored(client: OAuthClient, engine: Engine, http: httpx.AsyncClient, key: str) -> None:
    tokens = await client.connected(key)
    secret = (await OAuthClient.register(http, RESOURCE, token_endpoint_auth_method=None)).registered["client_secret"]
    async with engine.database.unscoped() as connection:
        rows = [
            row["all_of_it"]
            for table in ("connections", "connection_tokens")
            for row in await connection.fetch(f"select t::text as all_of_it from {table} t")
        ]
    async with engine.database.shared_transaction() as tx:
        rows += [r["all_of_it"] for r in await tx._connection.fetch("select t::text as all_of_it from oauth_clients t")]
    assert len(rows) > 3
    for given in (tokens["access_token"], tokens["refresh_token"], secret):
        assert not any(given in row or given.partition("_")[2] in row for row in rows)


async def test_a_person_can_deny_without_a_key(client: OAuthClient) -> None:
    back = await client.answered(await client.asked(), decision="deny", role=None)
    assert back.headers["location"].startswith(f"{CALLBACK}?error=access_denied&")
    assert query_of(back)["state"] == "a state"


async def test_a_person_can_allow_less_than_was_asked_for(client: OAuthClient, key: str) -> None:
    tokens = await client.connected(key, "read")
    assert tokens["scope"] == "read"
    assert "allowed only to read: connect again" in (await client.calls(tokens["access_token"])).text
    more = await client.refreshed(tokens["refresh_token"], scope="read write")
    assert refusal(more) == "invalid_scope"


async def test_a_token_can_do_no_more_than_its_key(client: OAuthClient, engine: Engine, namespace: str) -> None:
    reading = (await engine.access.create_key(namespace, role="read")).secret
    page = await client.asked()
    refused = await client.answered(page, key=reading, role="write")
    assert refused.status_code == 401
    assert "This key may only read" in refused.text
    # Nor is it given more than it asked for.
    beyond = await client.answered(await client.asked(scope="read"), key=reading, role="write")
    assert "choose no more than that" in beyond.text
    admin = await client.answered(await client.asked(), key=reading, role="admin")
    assert "choose no more than that" in admin.text
    tokens = await client.connected(reading, "read")
    assert "connect again with a key with role write" in (await client.calls(tokens["access_token"])).text


@pytest.mark.parametrize("limits", [Limits(), Limits("anna")])
async def test_no_connection_deletes_for_good_not_even_with_a_key_that_may(
    client: OAuthClient, engine: Engine, namespace: str, limits: Limits
) -> None:
    admin = await engine.access.create_key(namespace, role="admin", limits=limits)
    tokens = await client.connected(admin.secret)
    refused = await client.calls(tokens["access_token"], tool="forget", id="user:anna")
    assert "A connected client cannot delete for good" in refused.text


async def test_a_limit_of_the_key_is_one_of_the_token(client: OAuthClient, engine: Engine, namespace: str) -> None:
    limited = await engine.access.create_key(namespace, role="write", limits=Limits("anna"))
    tokens = await client.connected(limited.secret)
    found = await engine.connections.credential(tokens["access_token"])
    assert found is not None
    assert (found.only_user, found.role, found.key_id) == ("anna", "write", limited.id)
    assert "store a memory instead, with the tool add_memory" in (await client.calls(tokens["access_token"])).text
    stored = await client.calls(tokens["access_token"], tool="add_memory", text="The kettle is new.")
    assert '"isError":false' in stored.text


@pytest.mark.parametrize("given", ["", "wrong", "of a user"])
async def test_without_a_key_of_a_namespace_nobody_is_connected(
    client: OAuthClient, engine: Engine, namespace: str, given: str
) -> None:
    secret = (await engine.access.create_user_key(namespace, "anna")).secret if given == "of a user" else given
    answer = await client.answered(await client.asked(), key=secret)
    assert answer.status_code == 401
    assert "That key is not valid" in answer.text
    assert "a gateway user&#39;s key (uk_...)" in answer.text


WRONG_REQUESTS: dict[str, tuple[dict[str, str | None], str]] = {
    "no PKCE": ({"code_challenge": None, "code_challenge_method": None}, "PKCE is required"),
    "plain PKCE": ({"code_challenge": VERIFIER, "code_challenge_method": "plain"}, "PKCE is required"),
    "a method left out, which means plain": ({"code_challenge_method": None}, "PKCE is required"),
    "an empty challenge": ({"code_challenge": ""}, "PKCE is required"),
    "another resource": ({"resource": "https://other.example.org/mcp"}, f"resource must be {RESOURCE}"),
    "the whole server": ({"resource": ISSUER}, f"resource must be {RESOURCE}"),
    "the implicit grant": ({"response_type": "token"}, "response_type must be code"),
    "the role admin": ({"scope": "read admin"}, "scope must be within read write"),
}


async def test_a_wrong_request_is_shown_to_the_person_and_redirects_nobody(client: OAuthClient) -> None:
    for case, (changes, sentence) in WRONG_REQUESTS.items():
        page = await client.asked(**changes)
        assert (page.status_code, "location" in page.headers) == (400, False), case
        assert f"app.example.org sent an invalid request. Tell its developer: {sentence}" in page.text
        changed = {name: value or "" for name, value in changes.items()}
        form = form_of(await client.asked()) | {"decision": "deny"} | changed
        assert "location" not in (await client.http.post("/authorize", data=form)).headers, case


@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example.org/callback",
        f"{CALLBACK}/more",
        f"{CALLBACK}?more=1",
        "https://app.example.org:444/callback",
        "https://app.example.org@evil.example.org/callback",
        "//evil.example.org/callback",
        "javascript:alert(1)",
        CALLBACK.upper(),
    ],
)
async def test_a_redirect_that_is_not_registered_is_not_followed(client: OAuthClient, uri: str) -> None:
    for answer in (await client.asked(redirect_uri=uri), await client.asked(redirect_uri=uri, response_type="token")):
        assert answer.status_code == 400
        assert "location" not in answer.headers
        assert "did not register" in answer.text
    page = form_of(await client.asked())
    forged = await client.http.post("/authorize", data=page | {"redirect_uri": uri, "decision": "deny"})
    assert "location" not in forged.headers


async def test_an_unknown_client_is_not_sent_anywhere(client: OAuthClient) -> None:
    for unknown in ("nobody", "", "oc_\0"):
        answer = await client.asked(client_id=unknown)
        assert answer.status_code == 400
        assert "not registered" in answer.text


async def test_a_parameter_that_stands_twice_is_refused(client: OAuthClient) -> None:
    twice = (*client.request().items(), ("redirect_uri", "https://evil.example.org"))
    assert (await client.http.get("/authorize", params=twice)).status_code == 400
    form = "grant_type=refresh_token&grant_type=authorization_code"
    answer = await client.http.post(
        "/token", content=form, headers={"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert refusal(answer) == "invalid_request"


async def test_a_code_works_once_and_a_second_use_ends_the_connection(client: OAuthClient, key: str) -> None:
    code = await client.code(key)
    tokens = (await client.exchanged(code)).json()
    assert (await client.calls(tokens["access_token"])).status_code == 200
    assert refusal(await client.exchanged(code)) == "invalid_grant"
    assert (await client.calls(tokens["access_token"])).status_code == 401
    assert refusal(await client.refreshed(tokens["refresh_token"])) == "invalid_grant"


async def test_of_many_who_bring_a_code_at_once_at_most_one_is_let_in(client: OAuthClient, key: str) -> None:
    code = await client.code(key)
    answers = await asyncio.gather(*(client.exchanged(code) for _ in range(8)))
    assert sum(answer.status_code == 200 for answer in answers) <= 1


WRONG_EXCHANGES: dict[str, tuple[dict[str, str | None], str]] = {
    "no verifier": ({"code_verifier": None}, "invalid_grant"),
    "another verifier": ({"code_verifier": "x" * 43}, "invalid_grant"),
    "another redirect": ({"redirect_uri": "https://evil.example.org/callback"}, "invalid_grant"),
    "another resource": ({"resource": "https://other.example.org/mcp"}, "invalid_target"),
    "another grant": ({"grant_type": "password"}, "unsupported_grant_type"),
    "no client": ({"client_id": None}, "invalid_client"),
    "an unknown code": ({"code": "oac_unknown"}, "invalid_grant"),
}


async def test_a_wrong_exchange_gets_nothing(client: OAuthClient, key: str) -> None:
    code = await client.code(key)
    for changes, error in WRONG_EXCHANGES.values():
        assert refusal(await client.token(**(await exchange_form(client, code) | changes))) == error
    assert (await client.exchanged(code)).status_code == 200


async def exchange_form(client: OAuthClient, code: str) -> dict[str, str | None]:
    return {
        "grant_type": "authorization_code",
        "code": code,
        "code_verifier": VERIFIER,
        "redirect_uri": client.registered["redirect_uris"][0],
    }


async def test_codes_and_tokens_of_another_client_are_refused_and_stay_valid(client: OAuthClient, key: str) -> None:
    other = await OAuthClient.register(client.http, RESOURCE)
    code = await client.code(key)
    assert refusal(await other.exchanged(code)) == "invalid_grant"
    tokens = (await client.exchanged(code)).json()
    assert refusal(await other.refreshed(tokens["refresh_token"])) == "invalid_grant"
    for token in (tokens["access_token"], tokens["refresh_token"]):
        assert (await other.http.post("/revoke", data={"client_id": other.id, "token": token})).status_code == 200
    assert (await client.calls(tokens["access_token"])).status_code == 200


async def test_a_code_that_is_used_again_much_later_ends_the_connection_too(
    client: OAuthClient, engine: Engine, namespace: str, key: str
) -> None:
    code = await client.code(key)
    tokens = (await client.exchanged(code)).json()
    async with engine.database.unscoped() as connection:
        await connection.execute(
            "update connection_tokens set expires_at = now() - interval '1 day' where namespace = $1 and kind = 'code'",
            namespace,
        )
    # Whoever is connected or refreshed next has what expired removed.
    tokens = (await client.refreshed(tokens["refresh_token"])).json()
    await client.connected(key)
    assert refusal(await client.exchanged(code)) == "invalid_grant"
    assert (await client.calls(tokens["access_token"])).status_code == 401
    assert refusal(await client.refreshed(tokens["refresh_token"])) == "invalid_grant"
    await overdue(engine, namespace)
    await client.code(key)
    async with engine.database.unscoped() as connection:
        left = await connection.fetch("select kind from connection_tokens where namespace = $1", namespace)
    assert [row["kind"] for row in left] == ["code"]


async def test_a_code_expires(client: OAuthClient, engine: Engine, namespace: str, key: str) -> None:
    code = await client.code(key)
    await overdue(engine, namespace)
    assert refusal(await client.exchanged(code)) == "invalid_grant"


async def overdue(engine: Engine, namespace: str) -> None:
    """Let everything that was given out in a namespace expire."""
    async with engine.database.unscoped() as connection:
        await connection.execute("update connection_tokens set expires_at = now() where namespace = $1", namespace)


async def test_tokens_expire(client: OAuthClient, engine: Engine, namespace: str, key: str) -> None:
    tokens = await client.connected(key)
    await overdue(engine, namespace)
    assert (await client.calls(tokens["access_token"])).status_code == 401
    assert refusal(await client.refreshed(tokens["refresh_token"])) == "invalid_grant"
    assert await engine.connections.of_namespace(namespace, 10) == []


async def test_a_refresh_token_works_once_and_its_reuse_ends_the_connection(client: OAuthClient, key: str) -> None:
    first = await client.connected(key)
    second = (await client.refreshed(first["refresh_token"])).json()
    assert (await client.calls(second["access_token"])).status_code == 200
    less = (await client.refreshed(second["refresh_token"], scope="read")).json()
    assert less["scope"] == "read"
    assert "allowed only to read: connect again" in (await client.calls(less["access_token"])).text
    assert refusal(await client.refreshed(first["refresh_token"])) == "invalid_grant"
    for tokens in (first, second, less):
        assert (await client.calls(tokens["access_token"])).status_code == 401
        assert refusal(await client.refreshed(tokens["refresh_token"])) == "invalid_grant"


async def test_a_client_that_has_a_secret_must_use_it(http: httpx.AsyncClient, key: str) -> None:
    client = await OAuthClient.register(http, RESOURCE, token_endpoint_auth_method="client_secret_basic")
    code = await client.code(key)
    for secret in (None, "", "wrong"):
        assert refusal(await client.exchanged(code, client_secret=secret)) == "invalid_client"
    form = {name: value for name, value in (await exchange_form(client, code)).items() if value is not None}
    for wrong in ((client.id, "wrong"), ("nobody", client.registered["client_secret"])):
        answer = await http.post("/token", data=form, auth=wrong)
        assert (refusal(answer), answer.headers["www-authenticate"]) == ("invalid_client", "Basic")
    answer = await http.post("/token", data=form, auth=(client.id, client.registered["client_secret"]))
    assert answer.status_code == 200


async def test_a_client_without_a_secret_cannot_bring_one(client: OAuthClient, key: str) -> None:
    code = await client.code(key)
    assert refusal(await client.exchanged(code, client_secret="ocs_guessed")) == "invalid_client"
    form = {name: value for name, value in (await exchange_form(client, code)).items() if value is not None}
    answer = await client.http.post("/token", data=form, auth=(client.id, "ocs_guessed"))
    assert refusal(answer) == "invalid_client"
    assert (await client.exchanged(code)).status_code == 200


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
async def test_a_revoked_token_ends_the_connection(client: OAuthClient, key: str, which: str) -> None:
    tokens = await client.connected(key)
    assert (await client.http.post("/revoke", data={"client_id": client.id, "token": tokens[which]})).status_code == 200
    assert (await client.calls(tokens["access_token"])).status_code == 401
    assert refusal(await client.refreshed(tokens["refresh_token"])) == "invalid_grant"
    assert (await client.http.post("/revoke", data={"client_id": client.id, "token": "unknown"})).status_code == 200


async def test_connections_that_a_client_ends_are_in_the_audit_log(settings: Settings, namespace: str) -> None:
    engine = await Engine.open(settings.model_copy(update={"public_url": ISSUER, "audit": "changes"}))
    key = await engine.access.create_key(namespace, "laptop", "write")
    async with serving(engine) as http:
        client = await OAuthClient.register(http, RESOURCE)
        token = (await client.connected(key.secret))["access_token"]
        await http.post("/revoke", data={"client_id": client.id, "token": token})
        code = await client.code(key.secret)
        for _ in range(2):
            await client.exchanged(code)
        entries = [line.entry for line in (await engine.audit_trail.page(namespace)).lines[::-1]]
    ended = [each for each in entries if each.touched[0]["event"] == "delete"]
    assert [(each.action, each.key_id, each.author) for each in ended] == [
        ("POST /revoke", key.id, "laptop"),
        ("POST /token", key.id, "laptop"),
    ]
    added = [each.touched[0]["ids"] for each in entries if each.touched[0]["event"] == "add"]
    assert [each.touched[0]["ids"] for each in ended] == added


@pytest.mark.parametrize("how", ["revoked", "rotated", "disconnected"])
async def test_tokens_end_with_their_key_or_connection(
    client: OAuthClient, engine: Engine, namespace: str, key: str, how: str
) -> None:
    tokens = await client.connected(key)
    key_id = key.split("_")[1]
    if how == "revoked":
        await engine.access.revoke(namespace, key_id)
    elif how == "rotated":
        await engine.access.rotate(namespace, key_id, 0)
    else:
        (connection,) = await engine.connections.of_namespace(namespace, 10)
        await engine.connections.end(namespace, connection.id)
    assert (await client.calls(tokens["access_token"])).status_code == 401
    assert refusal(await client.refreshed(tokens["refresh_token"])) == "invalid_grant"
    assert await engine.connections.of_namespace(namespace, 10) == []


@pytest.mark.parametrize("how", ["revoked", "disconnected"])
async def test_a_stream_that_is_listened_to_ends_with_its_key_or_connection(
    engine: Engine, namespace: str, key: str, how: str
) -> None:
    async with listening(engine) as url, httpx.AsyncClient(base_url=url) as http:
        signed_in = await OAuthClient.register(http, RESOURCE)
        token = (await signed_in.connected(key))["access_token"]
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as mcp,
            Client(streamable_http_client(f"{url}/mcp", http_client=mcp)) as client,
            client.listen(resource_subscriptions=["memory://changes"]) as subscription,
        ):
            events = aiter(subscription)
            await engine.remember.text(namespace, "The kettle is new.")
            assert isinstance(await anext(events), ResourceUpdated)
            if how == "revoked":
                await engine.access.revoke(namespace, key.split("_")[1])
            else:
                (connection,) = await engine.connections.of_namespace(namespace, 10)
                await engine.connections.end(namespace, connection.id)
            await engine.remember.text(namespace, "The kettle is old.")
            assert [event async for event in events] == []


async def test_a_token_opens_mcp_of_this_server_and_nothing_else(
    client: OAuthClient, engine: Engine, namespace: str, key: str
) -> None:
    tokens = await client.connected(key)
    for path in ("/recall", "/ltm/memories", "/console/access", "/authorize"):
        answer = await client.calls(tokens["access_token"], path)
        assert answer.status_code in (401, 403), path
    assert "work only at /mcp" in (await client.calls(tokens["access_token"], "/recall")).json()["detail"]
    assert (await client.calls(tokens["refresh_token"])).status_code == 401
    headers = {"Cookie": f"recollect_console={tokens['access_token']}"}
    assert (await client.http.get("/console/access", headers=headers)).status_code == 303
    # A token that another server gave out, over the same database.
    async with engine.database.unscoped() as connection:
        await connection.execute(
            "update connections set resource = 'https://other/mcp' where namespace = $1", namespace
        )
    engine.connections._known.clear()
    assert (await client.calls(tokens["access_token"])).status_code == 401


async def test_a_server_takes_nothing_that_another_gave_out_over_the_same_database(
    client: OAuthClient, settings: Settings, key: str
) -> None:
    code, tokens = await client.code(key), await client.connected(key)
    elsewhere = await Engine.open(settings.model_copy(update={"public_url": "https://other.example.org"}))
    async with serving(elsewhere) as http:
        for resource in (RESOURCE, "https://other.example.org/mcp"):
            there = OAuthClient(http, client.registered, resource)
            assert (await there.calls(tokens["access_token"])).status_code == 401
            assert refusal(await there.exchanged(code)) == "invalid_grant"
            assert refusal(await there.refreshed(tokens["refresh_token"])) == "invalid_grant"
    # Nothing was used up by that.
    assert (await client.exchanged(code)).status_code == 200
    assert (await client.refreshed(tokens["refresh_token"])).status_code == 200


async def test_a_client_that_names_two_resources_gets_a_token_for_none(client: OAuthClient, key: str) -> None:
    other = ("resource", "https://other.example.org/mcp")
    asked = await client.http.get("/authorize", params=(*client.request().items(), other))
    assert (asked.status_code, "location" in asked.headers) == (400, False)
    code = await client.code(key)
    form = {**await exchange_form(client, code), "client_id": client.id, "resource": [RESOURCE, other[1]]}
    assert refusal(await client.http.post("/token", data=form)) == "invalid_request"
    assert (await client.exchanged(code)).status_code == 200


async def test_an_empty_parameter_counts_as_left_out(client: OAuthClient, key: str) -> None:
    code = await client.code(key, resource="", scope="")
    tokens = (await client.exchanged(code, redirect_uri="", resource="")).json()
    again = await client.refreshed(tokens["refresh_token"], scope="", resource="")
    assert (again.status_code, again.json()["scope"]) == (200, "read write")


FORGED = ["no cookie", "no token", "another token"]


@pytest.mark.parametrize("case", FORGED)
async def test_a_form_of_another_site_connects_nothing(client: OAuthClient, key: str, case: str) -> None:
    form = form_of(await client.asked()) | {"decision": "allow", "role": "write", "key": key}
    if case == "no cookie":
        client.http.cookies.clear()
    elif case == "no token":
        del form["csrf"]
    else:
        form["csrf"] = "0" * 64
    answer = await client.http.post("/authorize", data=form)
    assert answer.status_code == 403
    assert "location" not in answer.headers


async def test_the_page_cannot_be_framed_and_names_where_it_leads(client: OAuthClient) -> None:
    page = await client.asked()
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["cache-control"] == "no-store"
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' https://app.example.org;" in policy
    cookie = page.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


async def test_what_a_client_says_of_itself_is_text(http: httpx.AsyncClient, key: str) -> None:
    uris = [f"{CALLBACK}?a=';alert(1)//"]
    client = await OAuthClient.register(
        http, RESOURCE, client_name=HOSTILE, logo_uri="javascript:x", redirect_uris=uris
    )
    page = await client.asked(state=HOSTILE, scope="read")
    assert "<script>alert" not in page.text
    assert "<img" not in page.text
    assert "&lt;script&gt;" in page.text
    assert form_of(page)["state"] == HOSTILE
    back = await client.answered(page, key=key, role="read")
    assert back.headers["location"].startswith(f"{uris[0]}&code=")
    assert query_of(back)["state"] == HOSTILE


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "state", "scope", "resource", "code_challenge"])
async def test_whatever_a_request_brings_is_text_on_the_page_and_leads_nowhere_else(
    client: OAuthClient, name: str
) -> None:
    for hostile in (HOSTILE, "javascript:alert(1)", "\r\nSet-Cookie: a=b", "https://evil.example.org/", "\0", "%00"):
        page = await client.asked(**{name: hostile})
        assert page.status_code in (200, 400), (hostile, page.text)
        assert "location" not in page.headers
        assert "a=b" not in page.headers.get("set-cookie", "")
        assert "evil.example.org" not in page.headers.get("content-security-policy", "")
        assert "<script>alert" not in page.text
        assert "<img" not in page.text
        assert f'href="{hostile}' not in page.text
        if page.status_code == 200:
            back = await client.answered(page, decision="deny", role=None)
            assert back.headers["location"].startswith(f"{CALLBACK}?error=access_denied&")
            assert query_of(back)["iss"] == ISSUER


REFUSED_CLIENTS: dict[str, dict[str, Any]] = {
    "no redirect": {"redirect_uris": []},
    "a redirect without TLS": {"redirect_uris": ["http://app.example.org/callback"]},
    "a script": {"redirect_uris": ["javascript:alert(1)"]},
    "data": {"redirect_uris": ["data:text/html,x"]},
    "a tool of the system": {"redirect_uris": ["ms-msdt:/id"]},
    "a search of the system": {"redirect_uris": ["search-ms://query"]},
    "a page of the browser": {"redirect_uris": ["chrome://settings"]},
    "a drive": {"redirect_uris": ["x://callback"]},
    "a scheme without a dot or a host": {"redirect_uris": ["app:callback"]},
    "a fragment": {"redirect_uris": [f"{CALLBACK}#part"]},
    "a password": {"redirect_uris": ["https://a:b@app.example.org/"]},
    "no host": {"redirect_uris": ["https:///callback"]},
    "spaces": {"redirect_uris": ["https://app.example.org/a b"]},
    "a second header": {"redirect_uris": ["https://app.example.org/\r\nSet-Cookie: a=b"]},
    "a backslash": {"redirect_uris": ["https://app.example.org\\@evil.example.org/"]},
    "another policy": {"redirect_uris": ["https://app.example.org;report-uri/"]},
    "a second policy": {"redirect_uris": ["https://app.example.org,default-src/"]},
    "too many": {"redirect_uris": [CALLBACK] * 11},
    "no list": {"redirect_uris": CALLBACK},
    "a long one": {"redirect_uris": [f"{CALLBACK}/{'a' * 1000}"]},
    "a port that is none": {"redirect_uris": ["https://app.example.org:99999/"]},
    "a long name": {"client_name": "a" * 300},
    "a name that is none": {"client_name": {"a": 1}},
    "a name with a NUL": {"client_name": "a\0b"},
    "another method": {"token_endpoint_auth_method": "private_key_jwt"},
    "another grant": {"grant_types": ["client_credentials"]},
    "another response": {"response_types": ["token"]},
}


@pytest.mark.unindexed("many registrations, and nothing to find")
async def test_clients_that_could_harm_a_person_cannot_register(http: httpx.AsyncClient, engine: Engine) -> None:
    for case, metadata in REFUSED_CLIENTS.items():
        engine.connections.clients._registered.clear()
        answer = await http.post("/register", json={"redirect_uris": [CALLBACK]} | metadata)
        assert refusal(answer).startswith("invalid_"), case
    engine.connections.clients._registered.clear()
    for body in (b"", b"[]", b"{", b"[" * 5000):
        assert refusal(await http.post("/register", content=body)) == "invalid_client_metadata"
    assert (await http.post("/register", content=b" " * 70_000)).status_code == 413


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:3000/callback",
        "http://localhost/callback",
        "http://[::1]:3000/callback",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "vscode-insiders://vscode.github-authentication/did-authenticate",
        "org.example.app:/callback",
    ],
)
async def test_programs_on_the_persons_device_can_be_connected(http: httpx.AsyncClient, key: str, uri: str) -> None:
    client = await OAuthClient.register(http, RESOURCE, redirect_uris=[uri])
    back = await client.answered(await client.asked(), key=key)
    assert back.headers["location"].startswith(f"{uri}?code=")
    assert (await client.exchanged(query_of(back)["code"])).status_code == 200


async def test_on_loopback_a_client_may_come_back_at_another_port(http: httpx.AsyncClient, key: str) -> None:
    client = await OAuthClient.register(http, RESOURCE, redirect_uris=["http://127.0.0.1:3000/callback"])
    other = "http://127.0.0.1:4000/callback"
    code = await client.code(key, redirect_uri=other)
    assert refusal(await client.exchanged(code)) == "invalid_grant"
    assert (await client.exchanged(code, redirect_uri=other)).status_code == 200
    assert (await client.asked(redirect_uri="http://127.0.0.1:3000/other")).status_code == 400


@pytest.mark.parametrize(
    ("uris", "sentence"),
    [
        (None, "redirect_uris must be a list of 1 to 10 addresses"),
        (
            [CALLBACK, "http://app.example.org/"],
            "redirect_uris[1] has the scheme http, which is allowed only on loopback",
        ),
        (["javascript:alert(1)"], "redirect_uris[0] has the scheme javascript, which is not allowed"),
        ([f"{CALLBACK}#part"], "redirect_uris[0] must not have a fragment"),
        (["https://a:b@app.example.org/"], "redirect_uris[0] must not have a user name or a password"),
        (["https:///callback"], "redirect_uris[0] has no valid host"),
        (["app:callback"], "redirect_uris[0] has no scheme of an application"),
        (["https://app.example.org/a b"], "redirect_uris[0] is not an address"),
        ([1], "redirect_uris[0] must be a string"),
    ],
)
async def test_a_refused_redirect_says_which_and_why(http: httpx.AsyncClient, uris: Any, sentence: str) -> None:
    answer = await http.post("/register", json={"redirect_uris": uris})
    assert refusal(answer) == "invalid_redirect_uri"
    assert sentence in answer.json()["error_description"]


async def test_nobody_is_pushed_out_by_many_who_register(
    http: httpx.AsyncClient, client: OAuthClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "MAX_UNUSED", 1)
    refused = await http.post("/register", json={"redirect_uris": [CALLBACK]})
    assert (refused.status_code, refused.json()["error"]) == (429, "temporarily_unavailable")
    assert "Too many clients have registered in the last hour" in refused.json()["error_description"]
    assert (await client.asked()).status_code == 200


async def test_addresses_of_one_ipv6_network_count_together(engine: Engine) -> None:
    register, given = engine.connections.clients.register, {"redirect_uris": [CALLBACK]}
    for number in range(clients.REGISTRATIONS_PER_MINUTE):
        await register(given, f"2001:db8:1:2:{number:x}::1")
    with pytest.raises(LimitReached):
        await register(given, "2001:db8:1:2:ffff::1")
    await register(given, "2001:db8:1:3::1")
    await register(given, "198.51.100.7")
    await register(given, "198.51.100.8")


async def test_registrations_of_one_address_are_limited(http: httpx.AsyncClient) -> None:
    given = {"redirect_uris": [CALLBACK], "client_name": "One of many"}
    answers = [await http.post("/register", json=given) for _ in range(21)]
    assert [answer.status_code for answer in answers] == [201] * 20 + [429]
    assert answers[-1].headers["retry-after"] == "60"


async def test_a_server_with_a_public_address_asks_everybody_to_sign_in(http: httpx.AsyncClient) -> None:
    refused = await http.post("/mcp")
    assert refused.status_code == 401
    assert "resource_metadata=" in refused.headers["www-authenticate"]


async def test_without_a_public_address_there_is_no_oauth(settings: Settings, namespace: str) -> None:
    engine = await Engine.open(settings)
    key = await engine.access.create_key(namespace)
    async with serving(engine, headers={"Authorization": f"Bearer {key.secret}"}) as http:
        for path in ("/.well-known/oauth-authorization-server", "/authorize"):
            assert (await http.get(path)).status_code == 404
        for path in ("/register", "/token", "/revoke"):
            assert (await http.post(path)).status_code == 404
        refused = await http.post("/mcp", headers={"Authorization": "Bearer wrong"})
        assert refused.headers["www-authenticate"] == "Bearer"


@pytest.fixture
async def behind_a_proxy(
    settings: Settings, request: pytest.FixtureRequest
) -> AsyncIterator[tuple[Engine, httpx.AsyncClient]]:
    proxies = getattr(request, "param", ("127.0.0.1",))
    update = {"public_url": ISSUER, "trusted_proxies": proxies, "sign_in_header": "X-Signed-In"}
    engine = await Engine.open(settings.model_copy(update=update))
    headers = {"X-Signed-In": "anna@example.org", "X-Forwarded-For": "192.0.2.7"}
    async with serving(engine, headers=headers) as http:
        yield engine, http


async def test_whom_a_trusted_proxy_signed_in_needs_no_key_and_gets_only_that_users_memory(
    behind_a_proxy: tuple[Engine, httpx.AsyncClient], namespace: str
) -> None:
    engine, http = behind_a_proxy
    client = await OAuthClient.register(http, RESOURCE)
    page = await client.asked()
    assert "signed in as" in page.text
    over_tls = await http.get("/authorize", params=client.request(), headers={"X-Forwarded-Proto": "https"})
    assert "secure" in over_tls.headers["set-cookie"].lower()
    http.cookies.clear()
    seen_by_anna = await client.asked()
    http.headers["X-Signed-In"] = "ben@example.org"
    assert "somebody else" in (await client.answered(seen_by_anna, key="")).text
    http.headers["X-Signed-In"] = "anna@example.org"
    tokens = [await client.connected("") for _ in range(2)]
    found = await engine.connections.credential(tokens[0]["access_token"])
    assert found is not None
    assert (found.namespace, found.role, found.only_user) == (namespace, "write", "anna@example.org")
    # One key for both, which ends with the person.
    (key,) = await engine.access.keys(namespace)
    assert (key.only_user, key.state) == ("anna@example.org", "valid")
    assert await engine.access.remove_user(namespace, "anna@example.org") == 1
    assert await engine.access.keys(namespace) == []


async def test_a_first_sign_in_makes_one_key_and_says_so_in_the_audit_log(settings: Settings, namespace: str) -> None:
    update = {"public_url": ISSUER, "trusted_proxies": ("127.0.0.1",), "sign_in_header": "X-Signed-In"}
    engine = await Engine.open(settings.model_copy(update={**update, "audit": "changes"}))
    async with serving(engine, headers={"X-Signed-In": "anna@example.org"}) as http:
        client = await OAuthClient.register(http, RESOURCE)
        pages = [await client.asked()] * 8
        answers = await asyncio.gather(*(client.answered(page, key="") for page in pages))
        assert {answer.status_code for answer in answers} == {303}
        (key,) = await engine.access.keys(namespace)
        lines = [line.entry for line in (await engine.audit_trail.page(namespace)).lines]
    made = [(each["event"], each["kind"], each["ids"]) for line in lines for each in line.touched]
    assert [each for each in made if each[1] == "key"] == [("change", "key", [key.id])]
    assert {(line.action, line.key_id) for line in lines} == {("POST /authorize", key.id)}


@pytest.mark.parametrize("behind_a_proxy", [("192.0.2.1",)], indirect=True)
async def test_the_header_of_anybody_else_is_not_believed(
    behind_a_proxy: tuple[Engine, httpx.AsyncClient], namespace: str
) -> None:
    engine, http = behind_a_proxy
    client = await OAuthClient.register(http, RESOURCE)
    page = await client.asked()
    assert "signed in as" not in page.text
    assert (await client.answered(page, key="")).status_code == 401
    assert await engine.access.keys(namespace) == []


async def test_a_header_that_names_two_persons_names_nobody(
    behind_a_proxy: tuple[Engine, httpx.AsyncClient],
) -> None:
    _, http = behind_a_proxy
    client = await OAuthClient.register(http, RESOURCE)
    two = [("X-Signed-In", "anna@example.org"), ("X-Signed-In", "ben@example.org")]
    http.headers.pop("X-Signed-In")
    assert "signed in as" not in (await http.get("/authorize", params=client.request(), headers=two)).text


async def test_the_audit_log_tells_who_connected_a_client_and_what_it_does(settings: Settings, namespace: str) -> None:
    engine = await Engine.open(settings.model_copy(update={"public_url": ISSUER, "audit": "changes"}))
    key = await engine.access.create_key(namespace, "laptop", "write")
    async with serving(engine) as http:
        client = await OAuthClient.register(http, RESOURCE)
        tokens = await client.connected(key.secret)
        assert (await client.calls(tokens["access_token"])).status_code == 200
        (connection,) = await engine.connections.of_namespace(namespace, 10)
        used, allowed = (line.entry for line in (await engine.audit_trail.page(namespace)).lines)
    assert (allowed.door, allowed.action, allowed.author, allowed.key_id) == (
        "console",
        "POST /authorize",
        "laptop",
        key.id,
    )
    assert [(each["kind"], each["ids"]) for each in allowed.touched] == [("connection", [connection.id])]
    assert (used.door, used.key_id, used.author) == ("mcp", key.id, "laptop")
    assert [(each["event"], each["kind"]) for each in used.touched] == [("add", "document"), ("use", "connection")]
    assert used.touched[1]["ids"] == [connection.id]
