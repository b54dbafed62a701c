"""What a key of one user or agent finds in the console: what REST shows it, and no links to what is closed to it."""

import re
from collections.abc import AsyncIterator

import pytest

from recollect.engine import Engine
from recollect.errors import NotFound
from recollect.flows.long_term.memory_requests import Change, Options
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from recollect.origin import Limits, acting
from tests.console_visits import Browser, browsing, words

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

MAY_OPEN = ["/console/recall", "/console/sessions", "/console/memories", "/console/access"]


@pytest.fixture
async def browser(engine: Engine, namespace: str) -> AsyncIterator[Browser]:
    """Of a key for Anna alone."""
    key = await engine.access.create_key(namespace, "Anna's assistant", limits=Limits(user="anna"))
    async with browsing(engine) as browser:
        await browser.sign_in(key.secret)
        yield browser


@pytest.fixture(autouse=True)
async def closed(engine: Engine, namespace: str) -> None:
    """A namespace that has a key without limits."""
    await engine.access.create_key(namespace, "operator")


async def test_only_pages_that_it_may_open_are_offered(browser: Browser) -> None:
    page = await browser.text("/console/memories")
    navigation = page.partition("<nav")[2].partition("</nav>")[0]
    assert re.findall('href="([^"]*)"', navigation) == MAY_OPEN
    assert "/console/forget" not in page
    for path in MAY_OPEN:
        await browser.text(path)
    refused = await browser.open("/console/jobs")
    assert refused.status_code == 403
    assert '<a href="/console/memories">To the memories</a>' in refused.text
    assert 'href="/console"' not in refused.text


async def test_it_sees_its_own_key(browser: Browser) -> None:
    page = words(await browser.text("/console/access"))
    assert "Anna's assistant" in page
    assert "operator" not in page
    assert "Create a key" not in page


async def test_a_memory_that_it_stores_has_a_page_with_its_history(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    fields = {"text": "Anna lives in Rome.", "category": "fact", "key": "home city"}
    stored = await browser.send("/console/memories", "/console/memories", **fields)
    page = stored.headers["location"]
    assert "The memory is stored." in await browser.text(page)
    (memory,) = (await engine.memories.newest(namespace)).memories
    changed = {"id": str(memory.id), "text": "Anna lives in Milan.", "category": "preference", "key": "home city"}
    answer = await browser.send(page, "/console/memory/edit", **changed)
    shown = await browser.text(answer.headers["location"])
    assert "The change is stored." in shown
    assert "<del>Rome</del> <ins>Milan</ins>." in words(shown)
    assert "<del>fact</del> → <ins>preference</ins>" in words(shown)
    then = memory.created_at.isoformat().replace("+00:00", "Z")
    assert "Anna lives in Rome." in words(await browser.text(f"/console/memory?id={memory.id}&as_of={then}"))
    assert (await browser.open(f"/console/text?name=memory:{memory.id}")).text == "Anna lives in Milan."
    deleted = await browser.send(page, "/console/memory/delete", id=str(memory.id), really="yes")
    assert "The memory is deleted." in await browser.text(deleted.headers["location"])


async def test_memories_of_others_are_not_found(browser: Browser, engine: Engine, namespace: str) -> None:
    ben = (await engine.memories.add(namespace, "Ben likes tea.", "fact", MemoryScope("ben"))).memory
    for path in (f"/console/memory?id={ben.id}", f"/console/text?name=memory:{ben.id}", "/console/memory?id=0"):
        answer = await browser.open(path)
        assert (answer.status_code, "tea" in answer.text) == (404, False), path
    assert (await browser.open("/console/item?name=insight:1")).status_code == 403


async def test_of_an_agents_memory_it_says_nothing_of_what_other_agents_were_shown(
    engine: Engine, namespace: str
) -> None:
    """A memory of a user and an agent may take the place of another one of that scope alone."""
    scope, options = MemoryScope("anna", "coder"), Options(key="home city")
    old = (await engine.memories.add(namespace, "Anna lives in Rome.", "fact", scope, options=options)).memory
    new = (await engine.memories.add(namespace, "Anna lives in Milan.", "fact", scope, options=options)).memory
    await engine.memories.update(namespace, str(new.id), Change("Anna lives in Turin."))
    with acting("console", limits=Limits(agent="coder")):
        story = await engine.lineage.of_memory(namespace, str(old.id))
        assert (story.state, story.superseded_by and story.superseded_by.text) == ("superseded", "Anna lives in Turin.")
        assert (story.sources, story.superseded) == ((), ())


async def test_a_session_of_others_is_as_unknown_as_one_that_there_is_not(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    said = (NewMessage("user", "The ferry is late."),)
    await engine.remember.turn(namespace, Turn("bens", said, owner_if_new="ben"))
    told = []
    for session_id in ("bens", "nobodys"):
        answer = await browser.open(f"/console/session?id={session_id}")
        assert answer.status_code == 404
        told.append(words(answer.text).replace(session_id, "X"))
        with acting("rest", limits=Limits(user="anna")), pytest.raises(NotFound, match=f"Unknown session {session_id}"):
            await engine.sessions.get(namespace, session_id)
        with acting("rest", limits=Limits(user="anna")), pytest.raises(NotFound, match=f"Unknown session {session_id}"):
            await engine.sessions.change(namespace, session_id, "mine", None)
    assert told[0] == told[1]


async def test_its_sessions_have_pages(browser: Browser, engine: Engine, namespace: str) -> None:
    said = (NewMessage("user", "The ferry is late."),)
    await engine.remember.turn(namespace, Turn("talk", said, owner_if_new="anna"))
    page = await browser.text("/console/session?id=talk")
    assert "The ferry is late." in page
    assert "/console/forget" not in page
