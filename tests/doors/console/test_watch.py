"""The page of changes: what it lists, and the stream behind it, until the server stops."""

import asyncio
import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator

import httpx
import pytest

from recollect.doors.console.routes import watch
from recollect.engine import Engine
from recollect.flows.long_term.memory_requests import Options
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from recollect.settings import Settings
from recollect.storage import embedded
from tests import browsers
from tests.commands import RECOLLECT
from tests.console_visits import Browser, browsing
from tests.rest_servers import listening

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


@pytest.fixture
async def visitor(engine: Engine) -> AsyncIterator[Browser]:
    async with browsing(engine) as visitor:
        yield visitor


def listed(page: str) -> list[int]:
    """The numbers of the changes in a page."""
    return list(map(int, re.findall(r'data-number="(\d+)"', page)))


async def events(lines: AsyncIterator[str]) -> AsyncIterator[tuple[int, str]]:
    """The number and the piece of page in each event; empty for one without data."""
    number, shown = 0, ""
    async for line in lines:
        if line.startswith("id: "):
            number = int(line.removeprefix("id: "))
        elif line.startswith("data: "):
            shown = json.loads(line.removeprefix("data: "))
        elif not line and number:
            yield number, shown
            number, shown = 0, ""


async def test_the_newest_change_comes_first_with_its_text_and_its_place(
    visitor: Browser, engine: Engine, namespace: str
) -> None:
    assert "Nothing has happened yet" in await visitor.text("/console/watch")
    said = (NewMessage("user", "The <b>ferry</b> is late."), NewMessage("assistant", "Noted."))
    (first, _) = await engine.remember.turn(namespace, Turn("talk", said, owner_if_new="ann"))
    scope, options = MemoryScope("ann"), Options(key="home city")
    old = await engine.memories.add(namespace, "Ann lives in Oslo.", "fact", scope, options=options)
    new = await engine.memories.add(namespace, "Ann lives in Bergen.", "fact", scope, options=options)
    page = await visitor.text("/console/watch")
    assert listed(page) == sorted(listed(page), reverse=True)
    assert len(listed(page)) == 4
    assert "The &lt;b&gt;ferry&lt;/b&gt; is late." in page
    assert "and 1 more of its turn" in page
    assert f"/console/session?id=talk&amp;at={first.id}" in page
    assert f"superseded by memory:{new.memory.id}" in page
    assert f"/console/memory?id={old.memory.id}" in page
    assert '<span class="quiet">Now: </span>Ann lives in Bergen.' in page
    assert '<p class="text">Ann lives in Oslo.' in page


async def test_changes_are_filtered_and_paged(
    visitor: Browser, engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "PER_PAGE", 2)
    await engine.remember.document(namespace, "A document.", None, None)
    for number in range(4):
        turn = Turn("talk", (NewMessage("user", f"Line {number}."),), owner_if_new="ann")
        await engine.remember.turn(namespace, turn)
    page = await visitor.text("/console/watch")
    assert listed(page) == [5, 4]
    assert 'href="/console/watch?before=4"' in page
    older = await visitor.text("/console/watch?before=4")
    assert listed(older) == [3, 2]
    assert "data-stream" not in older
    assert listed(await visitor.text("/console/watch?kind=document&event=add")) == [1]
    assert "There are no such changes" in await visitor.text("/console/watch?event=forget")
    for wrong in ("kind=nothing", "event=nothing", "before=x", "before=-1"):
        assert (await visitor.open(f"/console/watch?{wrong}")).status_code == 422


async def test_the_stream_brings_what_is_new_and_goes_on_where_it_was_interrupted(
    visitor: Browser, engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.remember.text(namespace, "One.")
    async with visitor.http.stream("GET", "/console/watch/stream?since=0&kind=document") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        found = events(answer.aiter_lines())
        number, shown = await anext(found)
        assert (number, listed(shown)) == (1, [1])
        assert '<p class="text">One.</p>' in shown
        await engine.remember.turn(namespace, Turn("talk", (NewMessage("user", "Hi."),), owner_if_new="ann"))
        assert await anext(found) == (2, "")
        await engine.remember.text(namespace, "Three.")
        assert (await anext(found))[0] == 3
    # A stream that has lasted long enough ends by itself.
    monkeypatch.setattr(watch, "STREAM_SECONDS", 0.0)
    await engine.remember.text(namespace, "Four.")
    async with visitor.http.stream("GET", "/console/watch/stream?since=0", headers={"Last-Event-ID": "2"}) as answer:
        found = events(answer.aiter_lines())
        assert [(await anext(found))[0] for _ in range(2)] == [3, 4]
        await engine.remember.text(namespace, "Five.")
        assert [number async for number, _ in found] == [5]
    assert (await visitor.open("/console/watch/stream?since=100")).status_code == 409


async def test_another_namespace_hears_nothing(engine: Engine, namespace: str) -> None:
    await engine.remember.text(f"{namespace}-other", "A secret of others.")
    async with browsing(engine) as visitor:
        assert "secret" not in await visitor.text("/console/watch")
        async with visitor.http.stream("GET", "/console/watch/stream?since=0") as answer:
            found = events(answer.aiter_lines())
            await engine.remember.text(namespace, "Ours.")
            assert "Ours." in (await anext(found))[1]


async def test_new_changes_appear_in_the_browser_until_it_pauses(
    engine: Engine, namespace: str, browser: browsers.Browser
) -> None:
    await engine.remember.text(namespace, "There before.")
    async with listening(engine) as url, browser.visit(url) as page:
        await page.goto("/console/watch")
        await page.get_by_text("Live. No new changes yet.").wait_for()
        await engine.remember.text(namespace, "Come <script>alert(1)</script> later.")
        await page.get_by_text("Come <script>alert(1)</script> later.").wait_for()
        assert await page.locator("#changes > li").count() == 2
        await page.get_by_role("button", name="Pause").click()
        await page.get_by_text("Paused. 1 new change.").wait_for()
        await engine.remember.text(namespace, "While nobody looked.")
        await page.get_by_role("button", name="Go on").click()
        await page.get_by_text("While nobody looked.").wait_for()
        assert await page.locator("#changes > li").first.get_attribute("data-number") == "3"


async def test_older_changes_begin_where_the_list_ends(
    engine: Engine, namespace: str, browser: browsers.Browser
) -> None:
    await engine.remember.text(namespace, "There before.")
    async with listening(engine) as url, browser.visit(url) as page:
        await page.goto("/console/watch")
        await page.get_by_text("Live. No new changes yet.").wait_for()
        assert await page.get_by_role("link", name="Older").count() == 0
        await asyncio.gather(*(engine.remember.text(namespace, f"Text {number}.") for number in range(204)))
        await page.locator("#changes > li").first.get_by_text("no. 205").wait_for()
        assert await page.locator("#changes > li").count() == 200
        assert await page.locator("#changes > li").last.get_attribute("data-number") == "6"
        await page.get_by_role("link", name="Older").click()
        await page.wait_for_url("**/console/watch?before=6")
        assert await page.locator("#changes > li").first.get_attribute("data-number") == "5"


def test_ctrl_c_stops_a_server_at_once_though_a_stream_is_open(settings: Settings, server: embedded.Lease) -> None:
    quiet = os.environ | {"RECOLLECT_LOG_LEVEL": "WARNING"}
    command = [str(RECOLLECT), "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=quiet) as process:
        assert process.stdout is not None
        url = next(found[0] for line in process.stdout if (found := re.search(r"http://[\d.]+:\d+", line)))
        with httpx.stream("GET", f"{url}/console/watch/stream", timeout=60) as answer:
            lines = answer.iter_lines()
            assert next(lines) == ": nothing new"
            process.send_signal(signal.SIGINT)
            assert list(lines) == [""], "the stream ends, and is not cut off"
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said.strip()) == (130, "")
