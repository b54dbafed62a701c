"""A real browser for tests: Debian's Chromium, one a test process, and for each visit a fresh profile.

A visit fails if the browser complained about anything: an error in its console, a blocked or failed request, a breach
of the page's Content-Security-Policy.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import pytest
from playwright.async_api import Browser as Connected
from playwright.async_api import BrowserContext, ConsoleMessage, Page, Request, WebError, async_playwright

from tests.waiting import wait_until

CHROMIUM = shutil.which("chromium")
MISSING = "There is no Chromium here. On Debian `apt-get install chromium` installs it, and so does .ci/run."
PHONE, TABLET, DESKTOP = 390, 820, 1280
HEIGHTS = {PHONE: 844, TABLET: 1180, DESKTOP: 800}
COMPLAINTS = ("error", "warning", "assert")

Colours = Literal["light", "dark"]

FLAGS = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--no-sandbox",  # tests run as root in containers, where the sandbox cannot
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-extensions",
    "--disable-default-apps",
    "--disable-breakpad",
    "--no-first-run",
    "--no-startup-window",
    # A page in the background is as awake as one that somebody looks at.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    # The same picture on every machine.
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--hide-scrollbars",
    # Whatever a page asks of another host fails, with or without a network.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
)
# The browser ends with the standard input of this shell, so also if the test process is killed; all of its processes at
# once, or one would still write to the profile.
WATCHED = '"$@" & cat >/dev/null; kill -9 0'


@contextmanager
def chromium() -> Iterator[str]:
    """The address of a browser that has started; the test is skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip(MISSING)
    with (
        tempfile.TemporaryDirectory(prefix="recollect-chromium-", ignore_cleanup_errors=True) as profile,
        subprocess.Popen(
            ["sh", "-c", WATCHED, "sh", CHROMIUM, *FLAGS, f"--user-data-dir={profile}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ),
    ):
        port = Path(profile) / "DevToolsActivePort"
        wait_until(lambda: port.exists() and port.read_text().count("\n"), "Chromium has started")
        yield "ws://127.0.0.1:{}{}".format(*port.read_text().split())


class Browser:
    """What a test sees of it."""

    def __init__(self, connected: Connected) -> None:
        self._connected = connected

    @asynccontextmanager
    async def visit(
        self,
        address: str,
        *,
        width: int = DESKTOP,
        colours: Colours = "light",
        javascript: bool = True,
        bypass_csp: bool = False,
        cookies: Mapping[str, str] = MappingProxyType({}),
        complaints: Sequence[str] = (),
    ) -> AsyncIterator[Page]:
        """A page of somebody who has never been there; `page.goto("/path")` goes to a path of the address.

        At the end it fails if the browser complained, but for complaints that match one of these patterns, and if one
        of those did not come.
        """
        context = await self._connected.new_context(
            base_url=address,
            viewport={"width": width, "height": HEIGHTS[width]},
            color_scheme=colours,
            java_script_enabled=javascript,
            bypass_csp=bypass_csp,
            reduced_motion="reduce",
            service_workers="block",
            locale="en-GB",
            timezone_id="UTC",
        )
        try:
            await context.add_cookies([{"name": name, "value": cookies[name], "url": address} for name in cookies])
            heard = Complaints(context)
            yield await context.new_page()
            heard.compare(complaints, await heard.all())
        finally:
            await context.close()


class Complaints:
    """All that the browser finds wrong with the pages of a visit."""

    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._heard: list[str] = []
        context.on("console", self._console)
        context.on("weberror", self._page_error)
        context.on("requestfailed", self._request_failed)

    async def all(self) -> list[str]:
        """Those until now: an answer of the page comes after what it complained about before."""
        for page in self._context.pages:
            await page.evaluate("0")
        return self._heard

    @staticmethod
    def compare(expected: Sequence[str], heard: Sequence[str]) -> None:
        surprising = [text for text in heard if not any(re.search(pattern, text) for pattern in expected)]
        assert not surprising, "the browser complained:\n" + "\n".join(surprising)
        missing = [pattern for pattern in expected if not any(re.search(pattern, text) for text in heard)]
        assert not missing, f"the browser never complained about {missing}"

    def _note(self, text: str) -> None:
        print(text)  # beside a failure of another kind, for which it may be the reason
        self._heard.append(text)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in COMPLAINTS:
            place = message.page.url if message.page else ""
            self._note(f"{place}: {message.type}: {message.text} ({message.location['url']})")

    def _page_error(self, failure: WebError) -> None:
        self._note(f"{failure.page.url if failure.page else ''}: uncaught: {failure.error}")

    def _request_failed(self, request: Request) -> None:
        # What the page itself gives up, such as a stream when its reader leaves, is no failure.
        if request.failure != "net::ERR_ABORTED":
            self._note(f"{request.method} {request.url} failed: {request.failure}")


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[Browser]:
    """The browser at an address of `chromium`. Its driver lives in the event loop of the test, so each has its own."""
    async with async_playwright() as driver:
        browser = await driver.chromium.connect_over_cdp(address)
        yield Browser(browser)
        await browser.close()


@cache
def axe_source() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text()


async def inaccessible(page: Page, rules: Sequence[str] = ()) -> list[str]:
    """What axe finds wrong that keeps people from using the page: each rule with the elements that break it.

    All rules, or only some. It runs beside the page's own Content-Security-Policy, which does not bind the debugger.
    """
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(axe_source())
    chosen = {"runOnly": {"type": "rule", "values": rules}} if rules else {}
    options = {"resultTypes": ["violations"], "preload": False, **chosen}
    found = await page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{page.url}: {broken['id']} ({broken['impact']}): {broken['help']}"
        + "".join(f"\n  {node['html']}\n    {node['failureSummary']}" for node in broken["nodes"])
        for broken in found["violations"]
        if broken["impact"] in ("serious", "critical")
    ]
