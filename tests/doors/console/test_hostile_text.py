"""Whatever is stored or typed stays text: in every page, after every form."""

import re
from typing import Literal

import pytest

from recollect.doors.console import rendering
from recollect.doors.console.site import ROUTES
from recollect.engine import Engine
from tests import console_pages
from tests.browsers import Browser
from tests.console_crawl import LEFT_OUT
from tests.console_story import tell
from tests.fuzz.console import fed
from tests.hostile_strings import HOSTILE
from tests.rest_servers import serving

# What no link or form of a page leads to here: streams, parts that scripts ask for, what needs a provider's key, and
# what needs passages that wait, jobs that run or texts that are held (tests/doors/console/test_review.py has those).
NOT_LINKED = frozenset(
    {
        "/console/watch/stream",
        "/console/quality/judge",
        "/console/jobs/embed",
        "/console/jobs/stop",
        "/console/review/release",
    }
)


@pytest.fixture
def pooling() -> Literal["session"]:
    """Pages do not depend on it."""
    return "session"


async def test_no_field_of_any_form_makes_text_into_anything_else(engine: Engine) -> None:
    crawl, sent = await fed(engine, strings_per_field=2)
    assert not crawl.faults, "\n".join(crawl.faults[:10])
    assert sent > 20
    known = {(method, route.path) for route in ROUTES for method in (route.methods or ()) if method != "HEAD"}
    missed = {each for each in known - crawl.visited if each[1] not in LEFT_OUT | NOT_LINKED | console_pages.LOADED}
    assert not missed, "no page leads here"


async def test_nothing_stored_runs_in_a_browser_even_without_a_policy(engine: Engine, browser: Browser) -> None:
    async with serving(engine) as http:
        told = await tell(engine, http, hostile=True)
        said = [{"role": "user", "text": text} for text in HOSTILE if "\x00" not in text and text.strip()]
        for start in range(0, len(said), 50):
            answer = await http.post("/sessions/hostile/messages", json={"messages": said[start : start + 50]})
            assert answer.is_success, answer.text
        for text in HOSTILE[:: len(HOSTILE) // 40]:
            memory = {"messages": text, "category": "fact", "user_id": text[:80], "key": text[:80]}
            answer = await http.post("/ltm/memories", json=memory)
            assert answer.status_code in (201, 200, 422), answer.text
        async with browser.visit(str(http.base_url), bypass_csp=True) as page:
            await console_pages.sign_in(page, told.key)
            for address in (*console_pages.every(told), "/console/session?id=hostile"):
                await page.goto(address)
                assert await page.evaluate("window.planted === undefined"), address


@pytest.mark.parametrize(
    "text", ["a\u200db", "a\ufe0fb", "\u200c", "x\u2800y", "\uffa0", "\U0001d173", "pay\u200c\u200dload"]
)
def test_what_nobody_sees_is_written_out(text: str) -> None:
    unseen = [f"U+{ord(each):04X}" for each in text if ord(each) > 127]
    assert all(f">{each}</span>" in rendering.stored(text) for each in unseen)
    assert all(f"[{each}]" in rendering.written_out(text) for each in unseen)
    assert not rendering.has_unseen(rendering.written_out(text))


@pytest.mark.parametrize(
    "text",
    ["\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\U0001f468\u200d\U0001f469", "1\ufe0f\u20e3", "\u2764\ufe0f"],
)
def test_letters_and_emoji_that_need_joiners_or_selectors_stay_as_they_are(text: str) -> None:
    assert str(rendering.stored(text)) == text


def test_the_picture_of_the_graph_writes_out_the_same_characters_as_pages_do() -> None:
    written = re.search(r"const INVISIBLE = /(.*)/gu;", rendering.static_files()["graph.js"].decode())
    assert written is not None
    escapes = re.compile(r"\\(?:u\{(\w+)\}|u(\w{4})|x(\w\w))")
    characters = escapes.sub(lambda escape: chr(int(escape[1] or escape[2] or escape[3], 16)), written[1])
    assert characters == rendering.INVISIBLE.pattern
