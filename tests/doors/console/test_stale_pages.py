"""Pages that stay open while somebody signs in to another namespace in the same browser: their scripts are refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page

from recollect.engine import Engine
from tests import console_pages
from tests.browsers import Browser
from tests.console_visits import browsing
from tests.ended_jobs import Lasting
from tests.rest_servers import listening

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

SENTENCE = "because somebody signed in or out: reload the page"


@pytest.fixture
async def keys(engine: Engine, namespace: str) -> tuple[str, str]:
    """Of the namespace of the page, and of another one."""
    names = (namespace, f"{namespace}-other")
    first, other = [(await engine.access.create_key(name, "support")).secret for name in names]
    return first, other


async def test_scripts_of_a_page_of_another_namespace_are_refused(
    engine: Engine, namespace: str, keys: tuple[str, str]
) -> None:
    other = f"{namespace}-other"
    await engine.remember.text(other, "A secret of others.")
    async with browsing(engine) as visitor:
        await visitor.sign_in(keys[1])
        assert f'data-namespace="{other}"' in await visitor.text("/console/watch")
        for path in (
            "/console/watch/stream?since=0",
            "/console/recall/answer?query=secret",
            "/console/graph/around?limit=5",
            "/console/jobs/state?id=1",
        ):
            answer = await visitor.open(f"{path}&of_namespace={namespace}")
            assert (answer.status_code, SENTENCE in answer.text) == (409, True), path
        assert "secret" in await visitor.text(f"/console/recall/answer?query=secret&of_namespace={other}")


@asynccontextmanager
async def two_tabs(engine: Engine, browser: Browser, keys: tuple[str, str], path: str) -> AsyncIterator[Page]:
    """A page on which a script works, after the browser has signed in to another namespace."""
    async with listening(engine) as url, browser.visit(url, complaints=["409"]) as page:
        await console_pages.sign_in(page, keys[0])
        await page.goto(path)
        yield page


async def sign_in_elsewhere(page: Page, key: str) -> None:
    """In a second tab."""
    tab = await page.context.new_page()
    await tab.goto("/console/sign-in")
    await tab.get_by_label("Key").fill(key)
    await tab.get_by_role("button", name="Sign in").click()
    await tab.get_by_role("heading", name="Overview").wait_for()
    await tab.close()


async def test_a_live_page_of_changes_ends(
    engine: Engine, namespace: str, keys: tuple[str, str], browser: Browser
) -> None:
    async with two_tabs(engine, browser, keys, "/console/watch") as page:
        await page.get_by_text("Live. No new changes yet.").wait_for()
        await sign_in_elsewhere(page, keys[1])
        await engine.remember.text(f"{namespace}-other", "A secret of others.")
        await page.get_by_role("button", name="Pause").click()
        await page.get_by_role("button", name="Go on").click()
        await page.get_by_text("The stream has ended. Reload the page to go on.").wait_for()
        assert "secret" not in await page.content()


async def test_a_picture_of_the_graph_does_not_grow(
    engine: Engine, namespace: str, keys: tuple[str, str], browser: Browser
) -> None:
    for name in (namespace, f"{namespace}-other"):
        await engine.graph.add_node(name, "City", "Lisbon")
    async with two_tabs(engine, browser, keys, "/console/graph") as page:
        await page.get_by_text("1 node and 0 relations added.").wait_for()
        await sign_in_elsewhere(page, keys[1])
        await page.get_by_role("button", name="Load the busiest nodes").click()
        await page.get_by_text(SENTENCE).wait_for()


async def test_a_job_is_not_followed_any_more(
    engine: Engine, namespace: str, keys: tuple[str, str], browser: Browser
) -> None:
    job_id = await engine.jobs.start(namespace, "embed", {}, Lasting())
    async with two_tabs(engine, browser, keys, f"/console/jobs/job?id={job_id}") as page:
        await sign_in_elsewhere(page, keys[1])
        await page.get_by_text(SENTENCE).wait_for()
