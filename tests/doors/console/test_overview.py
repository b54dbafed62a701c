"""The overview: what `recollect status` knows, and what is degraded."""

from collections.abc import AsyncIterator

import pytest

from recollect.engine import Engine
from recollect.flows.remember import Turn
from recollect.inference.requests.meter import Purpose, Tokens
from recollect.memory.log import NewMessage
from tests.console_visits import Browser, browsing

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


@pytest.fixture
async def browser(engine: Engine) -> AsyncIterator[Browser]:
    async with browsing(engine) as browser:
        yield browser


async def test_the_overview_tells_what_is_stored_and_spent(browser: Browser, engine: Engine, namespace: str) -> None:
    await engine.remember.turn(namespace, Turn("s", (NewMessage("user", "Hello"),), "anna"))
    await engine.recall.recall(namespace, "Hello")
    await engine.activity.flush()
    reserved = await engine.spending.reserve(Purpose(namespace, "summary", "a-model"), 5000)
    await engine.spending.settle(reserved, Tokens(1000, 234))
    page = await browser.text("/console")
    for expected in (
        "<b>1</b> messages",
        "Nothing needs attention",
        "1 writes, 1 recalls",
        "Today: 1,234 of 1,000,000",
        "summary 1,234",
        "1,234 of 1,000,000 tokens of today are spent",
        "Tokens of the last 14 days",
    ):
        assert expected in page
