"""The page on which a person connects an MCP client, in a real browser: it needs no script and leads back."""

import html

import pytest
from playwright.async_api import expect

from recollect.engine import Engine
from recollect.settings import Settings
from tests.browsers import PHONE, Browser, inaccessible
from tests.console_visits import browsing, token_of
from tests.oauth_clients import OAuthClient
from tests.rest_servers import serving

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

ISSUER = "https://memory.example.org"
HOSTILE = "<script>alert(1)</script>\u202e gro.elpmaxe"


@pytest.fixture
async def engine(settings: Settings) -> Engine:
    return await Engine.open(settings.model_copy(update={"public_url": ISSUER, "console": False}))


@pytest.mark.parametrize("javascript", [True, False], ids=["scripts", "no scripts"])
async def test_a_person_connects_a_client_and_is_sent_back_to_it(
    engine: Engine, browser: Browser, namespace: str, javascript: bool
) -> None:
    key = await engine.access.create_key(namespace, role="write")
    async with serving(engine) as http:
        address = str(http.base_url).rstrip("/")
        # Of another origin, as clients are; the test's browser reaches no other host.
        place = address.replace("127.0.0.1", "localhost")
        client = await OAuthClient.register(
            http, f"{ISSUER}/mcp", client_name=HOSTILE, redirect_uris=[f"{place}/health"]
        )
        asked = http.build_request("GET", "/authorize", params=client.request()).url
        wrong = r"401 \(Unauthorized\)"
        async with browser.visit(address, width=PHONE, javascript=javascript, complaints=[wrong]) as page:
            await page.goto(str(asked))
            await expect(page.get_by_role("heading", level=1)).to_have_text("Connect a program?")
            assert "<script>alert(1)</script>" in await page.inner_text("main")
            assert "U+202E" in await page.inner_text("main")
            if javascript:
                assert not await inaccessible(page)
            await page.get_by_label("Your key").fill("wrong")
            await page.get_by_role("button", name="Allow").click()
            await expect(page.get_by_role("alert")).to_contain_text("That key is not valid")
            await page.get_by_label("Only read").check()
            await page.get_by_label("Your key").fill(key.secret)
            await page.get_by_role("button", name="Allow").click()
            await page.wait_for_url(f"{place}/health?code=*")
            code = html.unescape(page.url).partition("code=")[2].partition("&")[0]
        tokens = (await client.exchanged(code)).json()
        assert tokens["scope"] == "read"


async def test_a_page_of_another_site_cannot_frame_it(engine: Engine, browser: Browser) -> None:
    async with serving(engine) as http:
        address = str(http.base_url).rstrip("/")
        client = await OAuthClient.register(http, f"{ISSUER}/mcp", redirect_uris=[f"{address}/health"])
        asked = http.build_request("GET", "/authorize", params=client.request()).url
        refused = ["frame-ancestors", "ERR_BLOCKED_BY_RESPONSE"]
        async with browser.visit("about:blank", complaints=refused) as page:
            await page.set_content(f'<iframe src="{html.escape(str(asked))}"></iframe>')
            await expect(page.frame_locator("iframe").get_by_role("button", name="Allow")).to_have_count(0)


async def test_the_form_works_in_each_of_two_tabs(engine: Engine, namespace: str) -> None:
    async with browsing(engine) as visitor:
        client = await OAuthClient.register(visitor.http, f"{ISSUER}/mcp", redirect_uris=["https://a.example/back"])
        pages = [await visitor.http.get("/authorize", params=client.request()) for _ in range(2)]
        for page in pages:
            form = {"csrf": token_of(page.text), "decision": "deny", **client.request()}
            answer = await visitor.http.post("/authorize", data=form)
            assert answer.headers["location"].startswith("https://a.example/back?error=access_denied")
