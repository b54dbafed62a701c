"""Every page in a real browser: readable at every width, in both colour schemes, with scripts and without."""

from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Page

from recollect.engine import Engine
from recollect.memory.log import NewMessage
from tests import console_pages
from tests.browsers import DESKTOP, HEIGHTS, PHONE, TABLET, Browser, inaccessible
from tests.console_story import tell
from tests.rest_servers import serving

TOO_WIDE = """
    [...document.querySelectorAll("body *")]
        .filter(element => element.getBoundingClientRect().right > innerWidth)
        .map(element => element.cloneNode().outerHTML)
        .slice(-3)
        .join(" ")
"""

OF_COLOURS = ("color-contrast", "link-in-text-block")


@pytest.fixture
def pooling() -> Literal["session"]:
    """What a page looks like does not depend on it."""
    return "session"


@pytest.mark.parametrize(
    ("javascript", "may_erase"), [(True, True), (False, True), (False, False)], ids=["scripts", "no scripts", "reader"]
)
async def test_every_page_is_whole_at_every_width_and_in_both_schemes(
    engine: Engine, browser: Browser, javascript: bool, may_erase: bool
) -> None:
    faults: list[str] = []
    seen: set[str] = set()
    async with serving(engine) as http:
        told = await tell(engine, http, hostile=True)
        assert console_pages.addresses(told).keys() == console_pages.routes(), (
            "a page needs an example in console_pages"
        )
        async with browser.visit(str(http.base_url), javascript=javascript) as page:
            await console_pages.sign_in(page, told.key if may_erase else told.read_key)
            for address in console_pages.every(told, may_erase=may_erase):
                answer = await page.goto(address)
                assert answer is not None
                if answer.status != 200:
                    faults.append(f"{address}: status {answer.status}")
                faults += [f"{address}: {fault}" for fault in await faults_of(page)]
                if javascript:
                    faults += await inaccessible_on_a_phone(page)
                    # Other examples of a page have the same colours.
                    if urlsplit(address).path not in seen:
                        faults += await inaccessible_in_the_dark(page)
                seen.add(urlsplit(address).path)
            assert not faults, "\n".join(faults)


async def test_what_follows_a_form_or_a_wrong_address_is_whole_too(engine: Engine, browser: Browser) -> None:
    async with serving(engine) as http:
        told = await tell(engine, http, hostile=False)
        async with browser.visit(str(http.base_url), complaints=["404"]) as page:
            await console_pages.sign_in(page, told.key)
            await page.goto("/console/nowhere")
            faults = [*await faults_of(page), *await inaccessible_on_a_phone(page)]
            await page.goto("/console/access")
            await page.get_by_text("Create a key").click()
            await page.get_by_label("Label").fill("a new one")
            await page.get_by_role("button", name="Create the key").click()
            await page.get_by_text("rk_").first.wait_for()
            faults += [*await faults_of(page), *await inaccessible_on_a_phone(page)]
            await page.goto(f"/console/forget?name=memory:{told.memory}")
            await page.get_by_role("button", name="Forget").click()
            await page.get_by_role("heading", name="Forgotten").wait_for()
            faults += [*await faults_of(page), *await inaccessible_on_a_phone(page)]
            assert not faults, "\n".join(faults)


async def faults_of(page: Page) -> list[str]:
    """What is wrong with a page besides what the browser says itself."""
    faults: list[str] = []
    if not (await page.title()).removesuffix("· Recollect").strip():
        faults.append("it has no title")
    if (headings := await page.locator("h1").count()) != 1:
        faults.append(f"it has {headings} h1")
    for width in (PHONE, TABLET, DESKTOP):
        await page.set_viewport_size({"width": width, "height": HEIGHTS[width]})
        needed = await page.evaluate("document.documentElement.scrollWidth")
        if needed > width:
            faults.append(f"{needed} pixels wide in a window of {width}, because of {await page.evaluate(TOO_WIDE)}")
    return faults


async def inaccessible_on_a_phone(page: Page) -> list[str]:
    """By all rules, in light colours, where the most must scroll."""
    await page.emulate_media(color_scheme="light")
    await page.set_viewport_size({"width": PHONE, "height": HEIGHTS[PHONE]})
    return [f"light: {fault}" for fault in await inaccessible(page)]


async def inaccessible_in_the_dark(page: Page) -> list[str]:
    """By the rules that colours can break."""
    await page.emulate_media(color_scheme="dark")
    await page.set_viewport_size({"width": DESKTOP, "height": HEIGHTS[DESKTOP]})
    return [f"dark: {fault}" for fault in await inaccessible(page, OF_COLOURS)]


async def test_an_open_namespace_takes_the_forms_of_a_browser(engine: Engine, browser: Browser, namespace: str) -> None:
    async with serving(engine) as http, browser.visit(str(http.base_url)) as page:
        await page.goto("/console/graph")
        await page.get_by_text("Add a node or a relation").click()
        form = page.locator("form[method=post]").first
        for field in await form.locator("input[type=text]:visible").all():
            await field.fill("Lisbon")
        await form.get_by_role("button").first.click()
        await page.wait_for_load_state()
        assert "Not allowed" not in await page.content()
        assert await engine.feed.last(namespace) == 1


async def test_a_long_role_fits_a_small_phone(engine: Engine, browser: Browser, namespace: str) -> None:
    await engine.sessions.add(namespace, "s", [NewMessage("r" * 90, "Hello.")], "anna")
    async with serving(engine) as http, browser.visit(str(http.base_url)) as page:
        await page.set_viewport_size({"width": 360, "height": 740})
        await page.goto("/console/session?id=s")
        for details in await page.locator("details").all():
            await details.evaluate("each => { each.open = true; }")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360, await page.evaluate(TOO_WIDE)


async def test_every_key_can_be_changed_without_scrolling_sideways_beside_its_label(
    engine: Engine, browser: Browser, namespace: str
) -> None:
    secret = (await engine.access.create_key(namespace, "boss")).secret
    for number in range(5):
        await engine.access.create_key(namespace, f"support desk {number} of the northern region", "write")
    async with serving(engine) as http, browser.visit(str(http.base_url)) as page:
        await console_pages.sign_in(page, secret)
        await page.goto("/console/access")
        card = page.get_by_role("listitem").filter(has_text="support desk 2")
        await card.locator("summary").click()
        for width in (360, 768, 1280):
            await page.set_viewport_size({"width": width, "height": 800})
            button = await card.get_by_role("button", name="Revoke").bounding_box()
            label = await card.get_by_role("heading", name="support desk 2").bounding_box()
            assert button is not None
            assert label is not None
            assert label["x"] >= 0
            assert button["x"] + button["width"] <= width
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
