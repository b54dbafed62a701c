"""Who may see the console: signing in and out, forged forms, frames, and tokens planted or stolen."""

from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette

from recollect.doors.console import cookies, rendering
from recollect.engine import Engine
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from recollect.origin import Limits
from recollect.settings import Settings
from tests.console_visits import Browser, another_browser, browsing, token_of

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


@pytest.fixture
async def browser(engine: Engine) -> AsyncIterator[Browser]:
    async with browsing(engine) as browser:
        yield browser


@pytest.fixture
async def secret(engine: Engine, namespace: str) -> str:
    return (await engine.access.create_key(namespace, "support desk")).secret


async def test_on_loopback_a_namespace_without_keys_needs_no_sign_in(browser: Browser, namespace: str) -> None:
    assert namespace in await browser.text("/console")


async def test_a_page_of_another_host_cannot_reach_an_open_namespace(browser: Browser) -> None:
    answer = await browser.open("/console", Host="evil.example")
    assert (answer.status_code, "text/html" in answer.headers["content-type"]) == (421, True)
    assert "evil.example" in answer.text


async def test_a_key_is_asked_for_and_leads_back_to_the_page(browser: Browser, secret: str) -> None:
    answer = await browser.open("/console?x=1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/sign-in?next=%2Fconsole%3Fx%3D1")
    signed_in = await browser.sign_in(secret, "/console?x=1")
    assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/console?x=1")
    assert "Signed in with the key support desk" in await browser.text("/console")


async def test_a_wrong_key_and_a_users_key_are_refused(browser: Browser, engine: Engine, namespace: str) -> None:
    await engine.access.create_key(namespace)
    user = await engine.access.create_user_key(namespace, "anna")
    for wrong in ("", "rk_12345678_wrong", user.secret):
        answer = await browser.sign_in(wrong)
        assert answer.status_code == 401
        assert "not valid" in answer.text
        assert cookies.NAME not in browser.http.cookies
    assert (await browser.open("/console")).status_code == 303


async def test_the_cookie_holds_no_key_and_is_out_of_reach(browser: Browser, secret: str) -> None:
    answer = await browser.sign_in(secret)
    (cookie,) = [each for each in answer.headers.get_list("set-cookie") if each.startswith(cookies.NAME)]
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/console"} <= attributes
    assert not set(secret.split("_")[1:]) & {browser.http.cookies[cookies.NAME]}
    assert secret.rpartition("_")[2] not in cookie


async def test_behind_tls_the_cookie_is_sent_over_tls_only(browser: Browser, secret: str, engine: Engine) -> None:
    page = await browser.open("/console/sign-in")
    assert "Secure" not in page.headers["set-cookie"]
    # What uvicorn makes of X-Forwarded-Proto of a trusted proxy.
    from starlette.requests import Request
    from starlette.responses import Response

    response = Response()
    app = Starlette()
    app.state.engine = engine
    scope = {"type": "http", "scheme": "https", "path": "/console", "headers": [], "server": ("a", 443), "app": app}
    cookies.keep(response, Request(scope | {"query_string": b""}), "token")
    assert "Secure" in response.headers["set-cookie"]


async def test_a_form_that_another_site_sends_is_refused(browser: Browser, secret: str) -> None:
    """Another server on this host, or on a neighbouring name, could set our cookie."""
    await browser.sign_in(secret)
    token = token_of(await browser.text("/console/forget"))
    host = browser.http.base_url.netloc.decode()
    form = {"csrf": token}
    for headers, status in (
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://localhost:1"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": f"http://{host}"}, 303),
    ):
        answer = await browser.http.post("/console/sign-out", data=form, headers=headers)
        assert answer.status_code == status, headers


async def test_a_sign_in_that_has_ended_does_not_fall_into_an_open_namespace(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    key = await engine.access.create_key(namespace)
    await browser.sign_in(key.secret)
    token = token_of(await browser.text("/console/forget"))
    await engine.access.revoke(namespace, key.id)
    sent = await browser.http.post("/console/sign-out", data={"csrf": token})
    assert (sent.status_code, "no longer signed in" in sent.text) == (401, True)
    asked = await browser.open("/console")
    assert asked.headers["location"] == "/console/sign-in?next=%2Fconsole"
    assert "You are no longer signed in" in await browser.text("/console/sign-in")
    assert cookies.NAME not in browser.http.cookies


async def test_the_form_works_in_each_of_two_tabs(browser: Browser, secret: str) -> None:
    first = token_of(await browser.text("/console/sign-in"))
    second = token_of(await browser.text("/console/sign-in"))
    before = browser.http.cookies[cookies.BEFORE]
    for token in (first, second):
        answer = await browser.http.post("/console/sign-in", data={"csrf": token, "key": secret})
        assert answer.status_code == 303
        assert before not in browser.http.cookies[cookies.NAME], "what stood before signing in opens nothing after it"


async def test_a_form_token_that_is_none_of_ours_is_replaced(browser: Browser, secret: str) -> None:
    for planted in ("planted", "planted" * 20, "in." + "x" * 43):
        browser.http.cookies.clear()
        browser.http.cookies.set(cookies.BEFORE, planted, path="/console")
        page = await browser.open("/console/sign-in")
        assert token_of(page.text) != cookies.csrf_of(planted)
        assert planted not in page.headers["set-cookie"]


async def test_signing_in_ends_what_the_browser_had_before_and_what_is_over(
    browser: Browser, engine: Engine, namespace: str, secret: str
) -> None:
    async def left() -> int:
        async with engine.database.unscoped() as connection:
            count = "select count(*) from api_keys where namespace = $1 and browser_of is not null"
            return int(await connection.fetchval(count, namespace))

    await browser.sign_in(secret)
    earlier = browser.http.cookies[cookies.NAME]
    await browser.sign_in(secret)
    assert await left() == 1
    assert await engine.access.browser(earlier) is None
    async with another_browser(str(browser.http.base_url)) as other:
        await other.sign_in(secret)
        assert await left() == 2
        async with engine.database.unscoped() as connection:
            await connection.execute(
                "update api_keys set browser_until = now() where namespace = $1 and browser_of is not null", namespace
            )
        browser.http.cookies.clear()
        await browser.sign_in(secret)
    assert await left() == 1


async def test_a_made_up_cookie_is_not_looked_up_and_counts_like_a_wrong_key(
    settings: Settings, namespace: str
) -> None:
    engine = await Engine.open(settings.model_copy(update={"rate_limit_per_minute": 3}))
    try:
        await engine.access.create_key(namespace)
        async with browsing(engine) as browser:
            for path in ("/console", "/console/sign-in"):
                made_up = "in." + "x" * 43
                headers = {"Cookie": f"{cookies.NAME}={made_up}"}
                answers = [(await browser.http.get(path, headers=headers)).status_code for _ in range(4)]
                assert answers[-1] == 429, path
    finally:
        await engine.close()


async def test_a_sign_in_is_read_only_if_it_is_small(browser: Browser, secret: str) -> None:
    token = token_of(await browser.text("/console/sign-in"))
    answer = await browser.http.post("/console/sign-in", data={"csrf": token, "key": "x" * 100_000})
    assert answer.status_code == 413


async def test_nobody_is_sent_to_another_site_after_signing_in(browser: Browser, secret: str) -> None:
    for elsewhere in ("https://evil.example", "//evil.example", "/\\evil.example", "/consoleevil", "javascript:x"):
        assert (await browser.sign_in(secret, elsewhere)).headers["location"] == "/console"


async def test_a_planted_token_is_not_taken_over_by_signing_in(browser: Browser, secret: str) -> None:
    browser.http.cookies.set(cookies.NAME, "planted", path="/console")
    await browser.sign_in(secret)
    token = browser.http.cookies.get(cookies.NAME, domain="127.0.0.1")
    assert token != "planted"
    async with another_browser(str(browser.http.base_url)) as attacker:
        attacker.http.cookies.set(cookies.NAME, "planted", path="/console")
        assert (await attacker.open("/console")).status_code == 303


async def test_signing_out_ends_the_token_for_whoever_has_it(browser: Browser, secret: str) -> None:
    await browser.sign_in(secret)
    token = browser.http.cookies[cookies.NAME]
    answer = await browser.send("/console", "/console/sign-out")
    assert answer.headers["location"] == "/console/sign-in"
    async with another_browser(str(browser.http.base_url)) as thief:
        thief.http.cookies.set(cookies.NAME, token, path="/console")
        assert (await thief.open("/console")).status_code == 303


async def test_revoking_a_key_signs_out_whoever_signed_in_with_it(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    await engine.access.create_key(namespace)
    key = await engine.access.create_key(namespace)
    await browser.sign_in(key.secret)
    await browser.text("/console")
    await engine.access.revoke(namespace, key.id)
    assert (await browser.open("/console")).status_code == 303


async def test_a_token_ends_with_its_time(browser: Browser, engine: Engine, namespace: str, secret: str) -> None:
    await browser.sign_in(secret)
    async with engine.database.unscoped() as connection:
        await connection.execute(
            "update api_keys set browser_until = now() where namespace = $1 and browser_of is not null", namespace
        )
    engine.access.clear_cache()
    assert (await browser.open("/console")).status_code == 303
    await browser.sign_in(secret)
    await browser.send("/console", "/console/sign-out")
    async with engine.database.unscoped() as connection:
        left = "select count(*) from api_keys where namespace = $1 and browser_of is not null"
        assert await connection.fetchval(left, namespace) == 0


async def test_a_browsers_token_is_no_key_for_programs(browser: Browser, secret: str) -> None:
    await browser.sign_in(secret)
    headers = {"Authorization": f"Bearer {browser.http.cookies[cookies.NAME]}"}
    assert (await browser.http.get("/ready", headers=headers)).status_code == 401
    browser.http.cookies.set(cookies.NAME, browser.http.cookies[cookies.NAME], path="/")
    assert (await browser.http.get("/ready")).status_code == 401


async def test_keys_and_figures_do_not_count_browsers(
    browser: Browser, engine: Engine, namespace: str, secret: str
) -> None:
    await browser.sign_in(secret)
    assert len(await engine.access.keys(namespace)) == 1
    assert (await engine.status.report(namespace)).keys.rows == 1


async def test_a_form_without_the_token_of_this_browser_changes_nothing(browser: Browser, secret: str) -> None:
    await browser.sign_in(secret)
    async with another_browser(str(browser.http.base_url)) as other:
        await other.sign_in(secret)
        foreign = token_of(await other.text("/console"))
    for wrong in ("", "0" * 64, foreign, "é"):
        answer = await browser.send("/console", "/console/sign-out", wrong)
        assert (answer.status_code, "did not come from this console" in answer.text) == (403, True)
    await browser.text("/console")
    assert (await browser.http.post("/console/sign-in", data={"key": secret})).status_code == 403


async def test_a_file_of_another_version_is_not_kept(browser: Browser) -> None:
    current = rendering.static("graph.js")
    for address, kept in (
        (current, "public, max-age=31536000, immutable"),
        (current.replace("v=", "v=0"), "no-cache"),
        (current.partition("?")[0], "no-cache"),
    ):
        assert (await browser.open(address)).headers["cache-control"] == kept, address


async def test_no_page_can_be_framed_and_nothing_inline_runs(browser: Browser, secret: str) -> None:
    pages = ["/console", "/console/sign-in", "/console/nowhere"]
    await browser.sign_in(secret)
    for answer in [await browser.open(page) for page in pages]:
        assert answer.headers["x-frame-options"] == "DENY"
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"


async def test_a_link_on_another_site_does_not_sign_anybody_out(browser: Browser, secret: str) -> None:
    await browser.sign_in(secret)
    token = browser.http.cookies[cookies.NAME]
    async with another_browser(str(browser.http.base_url)) as strict:
        # As a browser asks that leaves out a cookie of SameSite=Strict.
        answer = await strict.open("/console?x=1", **{"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert 'http-equiv="refresh" content="0; url=/console?x=1"' in answer.text
    assert "set-cookie" not in answer.headers
    form = await browser.open("/console/sign-in")
    assert all(not each.startswith(cookies.NAME) for each in form.headers.get_list("set-cookie"))
    assert browser.http.cookies[cookies.NAME] == token


async def test_a_form_that_cannot_be_read_is_refused_with_a_page(browser: Browser) -> None:
    await browser.text("/console")
    headers = {"Content-Type": "multipart/form-data"}
    answer = await browser.http.post("/console/sign-out", content=b"nonsense", headers=headers)
    assert answer.status_code in (400, 403)
    assert "text/html" in answer.headers["content-type"]


async def test_a_key_that_may_only_read_can_sign_in_and_out_and_sees_no_forms(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    key = await engine.access.create_key(namespace, "auditor", role="read")
    await browser.sign_in(key.secret)
    assert "read only" in await browser.text("/console")
    assert (await browser.send("/console", "/console/sign-out")).status_code == 303
    assert (await browser.open("/console")).status_code == 303


async def test_a_stream_ends_with_the_right_to_read_it(
    browser: Browser, engine: Engine, namespace: str, secret: str
) -> None:
    await browser.sign_in(secret)
    async with browser.http.stream("GET", "/console/watch/stream") as stream:
        lines = stream.aiter_lines()
        await anext(lines)
        await engine.access.sign_out(namespace, browser.http.cookies[cookies.NAME])
        await engine.remember.document(namespace, "Nobody who signed out reads this.", None, None)
        assert "signed out" not in "".join([line async for line in lines])


async def test_a_key_of_one_user_lands_on_a_page_that_it_may_see(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    key = await engine.access.create_key(namespace, limits=Limits(user="anna"))
    answer = await browser.sign_in(key.secret)
    assert answer.headers["location"] == "/console/memories"
    await browser.text("/console/memories")
    refused = await browser.open("/console")
    assert (refused.status_code, "Sign out" in refused.text) == (403, True)
    assert (await browser.open("/console/jobs/export")).status_code == 403


async def test_ids_are_taken_as_they_are(browser: Browser, engine: Engine, namespace: str) -> None:
    for session in (" lead ", "lead"):
        await engine.remember.turn(
            namespace, Turn(session, (NewMessage("user", f"said in {session!r}"),), owner_if_new="anna")
        )
    assert "said in &#39; lead &#39;" in await browser.text("/console/session?id=+lead+")
    assert "said in &#39;lead&#39;" in await browser.text("/console/session?id=lead")
