"""The tests' browser notices what is wrong with a page, whatever the page's policy; our own page at /docs is right."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

import pytest

from recollect.engine import Engine
from tests.browsers import DESKTOP, PHONE, Browser, Colours, inaccessible
from tests.rest_servers import listening

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'"
SCRIPTS = {
    "/logs.js": "console.error('planted')",
    "/warns.js": "console.warn('planted')",
    "/throws.js": "undefined.planted",
    "/asks.js": "fetch('/planted')",
}
PAGES = {
    "/": "",
    "/logs": "<script src=/logs.js></script>",
    "/warns": "<script src=/warns.js></script>",
    "/throws": "<script src=/throws.js></script>",
    "/asks": "<script src=/asks.js></script>",
    "/inline": "<p style='color: red'>planted</p>",
    "/elsewhere": "<link rel=stylesheet href=http://elsewhere.example/planted.css>",
    "/missing": "<link rel=stylesheet href=/planted.css>",
    "/unlabelled": "<input type=text>",
}


class Planted(BaseHTTPRequestHandler):
    """A page for each kind of complaint, all of them with a strict policy."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path in PAGES or self.path in SCRIPTS else 404)
        self.send_header("Content-Type", "text/javascript" if self.path in SCRIPTS else "text/html")
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        head = "<!doctype html><html lang=en><title>Planted</title><main><h1>Planted</h1>"
        self.wfile.write((SCRIPTS.get(self.path) or head + PAGES.get(self.path, "")).encode())

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Nothing: the browser tells what it saw."""


@pytest.fixture
def pooling() -> Literal["session"]:
    """What a browser shows does not depend on it."""
    return "session"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Planted) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


@pytest.mark.parametrize(
    ("path", "javascript", "complaint"),
    [
        ("/logs", True, "error: planted"),
        ("/warns", True, "warning: planted"),
        ("/throws", True, "uncaught: .*planted"),
        ("/asks", True, "Content Security Policy"),
        ("/inline", False, "Content Security Policy"),
        ("/elsewhere", False, "planted.css failed: csp"),
        ("/missing", False, "404 .*planted.css"),
        ("/nowhere", True, "404 .*nowhere"),
    ],
)
async def test_a_page_that_the_browser_complains_about_fails(
    browser: Browser, address: str, path: str, javascript: bool, complaint: str
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        async with browser.visit(address, javascript=javascript) as page:
            await page.goto(path)


async def test_an_expected_complaint_must_come(browser: Browser, address: str) -> None:
    async with browser.visit(address, complaints=["planted"]) as page:
        await page.goto("/logs")
    with pytest.raises(AssertionError, match=r"never complained about \['planted'\]"):
        async with browser.visit(address, complaints=["planted"]) as page:
            await page.goto("/")


async def test_axe_finds_what_is_inaccessible_in_spite_of_a_strict_policy(browser: Browser, address: str) -> None:
    async with browser.visit(address) as page:
        await page.goto("/")
        assert await inaccessible(page) == []
        await page.goto("/unlabelled")
        (found,) = await inaccessible(page)
        assert found.startswith(f"{address}/unlabelled: label (critical): ")
        assert '<input type="text">' in found


@pytest.mark.parametrize(("width", "colours"), [(PHONE, "dark"), (DESKTOP, "light")])
async def test_each_visit_has_its_own_window_and_cookies(
    browser: Browser, address: str, width: int, colours: Colours
) -> None:
    async with browser.visit(address, width=width, colours=colours, cookies={"a": "1"}) as page:
        await page.goto("/")
        assert await page.evaluate("innerWidth") == width
        assert await page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == (colours == "dark")
        assert await page.evaluate("document.cookie") == "a=1"
    async with browser.visit(address) as page:
        await page.goto("/")
        assert await page.evaluate("document.cookie") == ""


async def test_scripts_do_not_run_where_there_is_no_javascript(browser: Browser, address: str) -> None:
    async with browser.visit(address, javascript=False) as page:
        await page.goto("/logs")


async def test_the_page_of_the_routes_needs_nothing_from_elsewhere(browser: Browser, engine: Engine) -> None:
    async with listening(engine) as address, browser.visit(address) as page:
        await page.goto("/docs")
        await page.get_by_text("/ltm/memories").first.wait_for()
