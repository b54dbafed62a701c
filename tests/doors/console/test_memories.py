"""The pages of long-term memories: lists, one memory with its story, and every change that a form makes."""

import io
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import httpx
import pytest

from recollect import origin
from recollect.engine import Engine
from recollect.flows.kinds.target import Target
from recollect.flows.long_term.memory_requests import Change, Options
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope, StoredMemory
from tests.console_story import HOSTILE
from tests.console_visits import Browser, browsing, words

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

ANNA = MemoryScope("anna")


@pytest.fixture
async def browser(engine: Engine) -> AsyncIterator[Browser]:
    async with browsing(engine) as browser:
        yield browser


async def add(engine: Engine, namespace: str, text: str, scope: MemoryScope = ANNA, **options: Any) -> StoredMemory:
    return (await engine.memories.add(namespace, text, "fact", scope, options=Options(**options))).memory


def address(memory: StoredMemory, **parameters: str) -> str:
    return str(httpx.URL("/console/memory", params={"id": str(memory.id)} | parameters))


async def send(browser: Browser, memory: StoredMemory, action: str, **fields: str) -> httpx.Response:
    """A form on the page of a memory, as it was when it was stored."""
    known = {"id": str(memory.id), "since": memory.since.isoformat()}
    return await browser.send(address(memory), f"/console/memory/{action}", **known | fields)


def done(answer: httpx.Response) -> str:
    """The code of what was done, from where the browser is sent."""
    assert answer.status_code == 303, answer.text
    return parse_qs(urlsplit(answer.headers["location"]).query)["done"][0]


async def test_a_list_is_filtered_and_paged(
    browser: Browser, engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.doors.console.routes.memories.LIMIT", 2)
    for number in range(3):
        await add(engine, namespace, f"Anna planted tree {number}.")
    await add(engine, namespace, "Anna lives in Rome.", key="home city", pinned=True)
    await add(engine, namespace, "Anna lives in Milan.", key="home city")
    await add(engine, namespace, "Ben likes tea.", MemoryScope("ben"), expires_at=datetime.now(UTC) + timedelta(days=2))
    first = words(await browser.text("/console/memories?user=anna"))
    assert "Anna lives in Milan." in first
    assert ("Anna planted tree 2." in first, "Anna planted tree 1." in first) == (True, False)
    assert "Ben" not in first
    page = await browser.text("/console/memories?user=anna")
    following = re.search(r'href="([^"]*cursor=[^"]*)"', page)
    assert following is not None
    second = words(await browser.text(unescape(following[1])))
    assert ("Anna planted tree 1." in second, "Anna planted tree 2." in second) == (True, False)
    assert "Anna lives in Rome." in words(await browser.text("/console/memories?state=superseded"))
    assert "Ben likes tea." in words(await browser.text("/console/memories?expiring=7"))
    assert "No memory matches." in words(await browser.text("/console/memories?user=anna&pinned=yes"))


async def test_a_search_marks_the_words_and_says_which_filters_it_ignores(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    await add(engine, namespace, "Anna lives in Rome.")
    page = words(await browser.text("/console/memories?q=who+lives+in+Rome&key=home"))
    assert "Anna <mark>lives</mark> in <mark>Rome</mark>." in page
    (memory,) = (await engine.memories.newest(namespace, ANNA)).memories
    found = await browser.text("/console/memories?q=Rome")
    assert f'href="/console/memory?id={memory.id}&amp;q=Rome"' in found
    assert "Anna lives in <mark>Rome</mark>." in words(await browser.text(address(memory, q="Rome")))
    assert "A search does not filter by key." in page
    refused = await browser.open("/console/memories?q=%3F%21&since=yesterday")
    assert (refused.status_code, "since must be a date and time" in words(refused.text)) == (422, True)


async def test_why_it_was_believed_is_told_at_a_glance(browser: Browser, engine: Engine, namespace: str) -> None:
    """Why did the agent think that Anna lives in Rome?"""
    with origin.acting("gateway", "anna"):
        turn = Turn("talk", (NewMessage("user", "I moved to Rome!", speaker="Anna"),), "anna")
        (said,) = await engine.remember.turn(namespace, turn)
    with origin.acting("mcp", "the travel agent"):
        rome = await add(engine, namespace, "Anna lives in Rome", key="home city", sources=[f"message:{said.id}"])
    with origin.acting("rest", "night shift"):
        change = Change("Anna lives in Rome, near the river", details={"pinned": True}, metadata={"seen": 1})
        await engine.memories.update(namespace, str(rome.id), change)
    milan = await add(engine, namespace, "Anna lives in Milan", key="home city")

    page = await browser.text(address(rome, as_of=rome.since.isoformat()))
    text = words(page)
    assert re.search(r"What it said at [-\d]+ [:\d]+ UTC Anna lives in Rome in force then", text)
    assert "What it said last Anna lives in Rome<ins>, near the river</ins>" in text
    assert "by the travel agent over MCP Made from 1 source: I moved to Rome! Anna," in text
    assert f"/console/session?id=talk&amp;at={said.id}" in page
    assert re.search(r"Replaced [-\d]+ [:\d]+ UTC by Anna lives in Milan, because it has the same key", text)
    assert f"/console/memory?id={milan.id}" in page
    now = words(await browser.text(address(rome)))
    assert "Changed by night shift over REST" in now
    changed = (
        r"Last changed [-\d]+ [:\d]+ UTC by night shift over REST; before: Anna lives in Rome First stored [-\d]+ "
    )
    assert re.search(changed + r"[:\d]+ UTC by the travel agent over MCP First made from 1 source", now)
    assert "Anna lives in Rome<ins>, near the river</ins>" in now
    assert 'Metadata: {<ins> "seen": 1 </ins>}' in now
    assert "Pinned: <del>no</del> → <ins>yes</ins>" in now
    assert "What it replaced" in words(await browser.text(address(milan)))
    early = await browser.text(address(rome, as_of="2001-01-01T00:00:00"))
    assert "Nothing: it was not stored yet." in early


async def test_stored_text_is_only_text(browser: Browser, engine: Engine, namespace: str) -> None:
    scope = MemoryScope(HOSTILE[:60])
    memory = await add(engine, namespace, HOSTILE, scope, key=HOSTILE[:60])
    await engine.memories.update(namespace, str(memory.id), Change(HOSTILE + " again", metadata={HOSTILE: HOSTILE}))
    for path in ("/console/memories", address(memory), f"/console/forget?name=memory:{memory.id}"):
        page = await browser.text(path)
        assert "<script>alert" not in page, path
        assert "<img" not in page, path
        assert page.count("</textarea>") == page.count("<textarea"), path


async def test_a_form_stores_a_memory_word_for_word(browser: Browser, engine: Engine, namespace: str) -> None:
    fields = {"text": "Anna\nlives in Rome.", "user": "anna", "category": "fact", "key": "home city", "pinned": "yes"}
    fields |= {"valid_from": "2026-03-01T00:00:00", "metadata": '{"source": "phone"}'}
    answer = await browser.send("/console/memories", "/console/memories", **fields)
    assert done(answer) == "created"
    page = words((await browser.open(answer.headers["location"])).text)
    assert "The memory is stored." in page
    (memory,) = (await engine.memories.newest(namespace, ANNA)).memories
    assert (memory.text, memory.key, memory.pinned) == ("Anna\nlives in Rome.", "home city", True)
    assert (memory.metadata, memory.valid_from) == ({"source": "phone"}, datetime(2026, 3, 1, tzinfo=UTC))
    (event,) = (await engine.lineage.of(namespace, f"memory:{memory.id}")).events
    assert event.door == "console"
    assert done(await browser.send("/console/memories", "/console/memories", **fields)) == "existing"
    refused = await browser.send("/console/memories", "/console/memories", **fields | {"user": ""})
    assert (refused.status_code, "Anna\nlives in Rome." in refused.text) == (422, True)


async def test_edits_change_only_what_is_different(browser: Browser, engine: Engine, namespace: str) -> None:
    from_then = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
    memory = await add(engine, namespace, "Anna lives\r\nin Rome.", key="home city", valid_from=from_then)
    await engine.memories.update(namespace, str(memory.id), Change(metadata={"a": 1, "b": {"c": 2, "d": 3}}))
    memory = await engine.memories.get(namespace, str(memory.id))
    same = {"text": "Anna lives\r\nin Rome.", "category": "fact", "key": "home city"}
    same |= {"valid_from": "2026-03-01T12:00:00", "metadata": '{"a": 1, "b": {"c": 2, "d": 3}}'}
    assert done(await send(browser, memory, "edit", **same)) == "same"
    changed = same | {"text": "Anna lives in Milan.", "key": "", "metadata": '{"b": {"c": 4}}'}
    assert done(await send(browser, memory, "edit", **changed)) == "changed"
    now = await engine.memories.get(namespace, str(memory.id))
    assert (now.text, now.key, now.valid_from) == ("Anna lives in Milan.", None, from_then)
    assert now.metadata == {"b": {"c": 4}}


async def test_a_memory_that_changed_meanwhile_is_not_overwritten(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    memory = await add(engine, namespace, "Anna lives in Rome.")
    await engine.memories.update(namespace, str(memory.id), Change("Anna lives in Milan."))
    for action, fields in (
        ("edit", {"text": "Anna lives in Turin.", "category": "fact"}),
        ("pin", {"pinned": "yes"}),
        ("expiry", {"days": "3"}),
        ("delete", {"really": "yes"}),
    ):
        answer = await send(browser, memory, action, **fields)
        page = words(answer.text)
        assert answer.status_code == 409, action
        assert "has changed since you looked at it: look again, then decide. Nothing was changed." in page
        assert "What it says Anna lives in Milan." in page
        assert ("Anna lives in Turin." in page) == (action == "edit"), "what was typed is not lost"
    assert (await engine.memories.get(namespace, str(memory.id))).text == "Anna lives in Milan."


async def test_a_memory_is_pinned_and_expires_and_is_kept(browser: Browser, engine: Engine, namespace: str) -> None:
    memory = await add(engine, namespace, "Anna lives in Rome.")

    async def sent(action: str, **fields: str) -> tuple[str, StoredMemory]:
        seen = await engine.memories.get(namespace, str(memory.id))
        return done(await send(browser, seen, action, **fields)), await engine.memories.get(namespace, str(memory.id))

    assert [await sent("pin", pinned="yes"), await sent("pin")] == [
        ("pinned", await engine.memories.get(namespace, str(memory.id), as_of=(await pinned_at(engine, namespace)))),
        ("unpinned", await engine.memories.get(namespace, str(memory.id))),
    ]
    code, expiring = await sent("expiry", days="2")
    assert code == "expiry"
    assert expiring.expires_at is not None
    assert timedelta(days=1.9) < expiring.expires_at - datetime.now(UTC) <= timedelta(days=2)
    assert (await sent("expiry", expires_at="2099-01-01T00:00:00"))[1].expires_at == datetime(2099, 1, 1, tzinfo=UTC)
    assert (await sent("expiry", never="yes"))[1].expires_at is None
    seen = await engine.memories.get(namespace, str(memory.id))
    for wrong in ({}, {"days": "many"}, {"expires_at": "2001-01-01T00:00"}):
        assert (await send(browser, seen, "expiry", **wrong)).status_code == 422


async def pinned_at(engine: Engine, namespace: str) -> datetime:
    """When the only memory was pinned."""
    (memory,) = (await engine.memories.newest(namespace, ANNA)).memories
    entries = await engine.memories.history(namespace, str(memory.id))
    return entries[1].at


async def test_a_memory_is_replaced_brought_back_and_deleted(browser: Browser, engine: Engine, namespace: str) -> None:
    rome = await add(engine, namespace, "Anna lives in Rome.", key="home city")
    await engine.memories.update(namespace, str(rome.id), Change(metadata={"source": "a call"}))
    rome = await engine.memories.get(namespace, str(rome.id))
    form = await browser.text(f"/console/memory/replace?id={rome.id}")
    assert "a call" not in form, "what metadata says is said of the old one"
    assert f'name="supersedes" value="{rome.id}"' in form
    known = {"supersedes": str(rome.id), "since": rome.since.isoformat(), "user": "anna", "category": "fact"}
    answer = await browser.send(
        "/console/memories", "/console/memories", text="Anna lives in Milan.", key="home city", **known
    )
    assert done(answer) == "replaced"
    page = await browser.text(answer.headers["location"])
    assert f'name="id" value="{rome.id}">\n    <button class="plain small">Undo' in page
    superseded = await engine.memories.get(namespace, str(rome.id))
    assert superseded.superseded_by is not None
    again = await browser.send("/console/memories", "/console/memories", text="Anna lives in Turin.", **known)
    assert (again.status_code, "is superseded by" in again.text) == (409, True)
    assert done(await send(browser, superseded, "undo")) == "undone"
    back = await engine.memories.get(namespace, str(rome.id))
    assert back.superseded_by is None
    unsure = await send(browser, back, "delete")
    assert (unsure.status_code, words(unsure.text).count("Nothing was changed")) == (422, 1)
    assert "tick the box beside the button" in unsure.text
    assert '<input type="checkbox" name="really" value="yes" required>' in await browser.text(address(back))
    assert done(await send(browser, back, "delete", restore="yes", really="yes")) == "deleted"
    (milan,) = (await engine.memories.newest(namespace, ANNA)).memories
    assert milan.text == "Anna lives in Milan."
    page = words(await browser.text(address(rome)))
    assert "What it said is gone" in page
    assert "Anna lives in Rome" not in page
    assert "Deleted in the console" in page


async def test_a_memory_that_changed_meanwhile_is_replaced_once_the_change_was_seen(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    memory = await add(engine, namespace, "Anna lives in Rome.")
    await engine.memories.update(namespace, str(memory.id), Change("Anna lives in Milan."))
    typed = {"text": "Anna lives in Turin.", "user": "anna", "category": "fact", "supersedes": str(memory.id)}
    form = "/console/memories"
    refused = await browser.send(form, form, since=memory.since.isoformat(), **typed)
    assert (refused.status_code, "look again, then decide" in refused.text) == (409, True)
    assert "What it says now Anna lives in Milan." in words(refused.text)
    assert "Anna lives in Turin." in refused.text, "what was typed is not lost"
    since = re.search('name="since" value="([^"]*)"', refused.text)
    assert since is not None
    assert done(await browser.send(form, form, since=unescape(since[1]), **typed)) == "replaced"


async def test_without_a_key_the_newer_memory_stays_in_force_after_an_undo(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    rome = await add(engine, namespace, "Anna lives in Rome.")
    milan = await add(engine, namespace, "Anna lives in Milan.", supersedes=[str(rome.id)])
    answer = await send(browser, await engine.memories.get(namespace, str(rome.id)), "undo")
    page = await browser.text(answer.headers["location"])
    assert "in force again. The newer one is in force as well: Anna lives in Milan." in words(page)
    assert f'href="/console/memory?id={milan.id}"' in page


async def test_an_imported_memory_says_when_it_came(browser: Browser, engine: Engine, namespace: str) -> None:
    row = {"id": str(uuid4()), "memory": "Anna lives in Rome.", "user_id": "anna", "created_at": "2024-05-01T10:00:00Z"}
    with origin.acting("cli"):
        await engine.adopting.mem0(namespace, io.BytesIO(json.dumps([row]).encode()))
    (memory,) = (await engine.memories.newest(namespace, ANNA)).memories
    page = words(await browser.text(address(memory)))
    assert re.search(r"Imported 20[-\d]+ [:\d]+ UTC [a-z ]+; its own date is 2024-05-01 10:00:00 UTC", page)
    assert "by whom is not known" not in page


@pytest.mark.parametrize("action", ["", "/edit", "/pin", "/expiry", "/undo", "/delete"])
async def test_no_form_of_another_site_changes_a_memory(
    browser: Browser, engine: Engine, namespace: str, action: str
) -> None:
    memory = await add(engine, namespace, "Anna lives in Rome.")
    path = f"/console/memory{action}" if action else "/console/memories"
    fields = {"id": str(memory.id), "text": "Anna lives in Milan.", "user": "anna", "category": "fact", "days": "1"}
    answer = await browser.send(address(memory), path, token="0" * 64, **fields)
    assert answer.status_code == 403
    assert (await engine.memories.newest(namespace)).memories == [memory]


@pytest.mark.unindexed("to embed long texts takes a while, and their page does not tell")
async def test_a_memory_of_a_hundred_kilobytes_has_a_small_page_with_its_changes(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    long = " ".join(f"Sentence {number} is about tree {number % 97}." for number in range(3_000))
    memory = await add(engine, namespace, long)
    for number in range(2):
        changed = long.replace(f"Sentence {1_500 + number} ", "Phrase ")
        await engine.memories.update(namespace, str(memory.id), Change(changed))
    page = await browser.text(address(memory))
    assert len(page) < 100_000
    assert page.count("<ins>Phrase</ins>") == 2
    assert "The text is too long to be edited here." in page
    whole = await browser.open(f"/console/text?name=memory:{memory.id}")
    assert whole.text == long.replace("Sentence 1501 ", "Phrase ")
    assert (whole.headers["content-type"], whole.headers["x-content-type-options"]) == (
        "text/plain; charset=utf-8",
        "nosniff",
    )


async def test_a_time_that_is_still_to_come_leads_back_to_the_page_of_now(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    memory = await add(engine, namespace, "Anna lives in Rome.")
    answer = await browser.open(address(memory, as_of="2999-01-01T00:00:00"))
    assert (answer.status_code, f'href="{address(memory)}">Show the page as it is now' in answer.text) == (422, True)


async def test_a_text_that_is_too_long_is_told_what_to_do(browser: Browser, engine: Engine, namespace: str) -> None:
    form = "/console/memories"
    answer = await browser.send(form, form, text="x" * 1_100_000, user="anna", category="fact")
    assert (answer.status_code, "split it into several memories" in answer.text) == (413, True)


async def test_memories_of_another_namespace_are_not_there(browser: Browser, engine: Engine, namespace: str) -> None:
    other = f"{namespace}-other"
    memory = await add(engine, other, "Anna lives in Rome.")
    assert "Rome" not in await browser.text("/console/memories")
    for path in (address(memory), f"/console/item?name=memory:{memory.id}", f"/console/text?name=memory:{memory.id}"):
        assert (await browser.open(path)).status_code == 404
    assert (await browser.open(f"/console/forget?name=memory:{memory.id}")).status_code == 404
    await add(engine, namespace, "Ben likes tea.", MemoryScope("ben"))
    known = {"id": str(memory.id), "since": memory.since.isoformat()}
    answer = await browser.send("/console/memories", "/console/memory/delete", really="yes", **known)
    assert answer.status_code == 404
    assert (await engine.memories.get(other, str(memory.id))).text == "Anna lives in Rome."


async def test_a_filter_by_an_unknown_user_names_one_in_other_letters(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    await add(engine, namespace, "Anna lives in Rome.")
    sentence = "belongs to a user Anna. User ids are case sensitive. Did you mean anna?"
    for path, name in (
        ("/console/memories?category=fact&", "user"),
        ("/console/sessions?", "user"),
        ("/console/sessions?said=Rome&", "user"),
        ("/console/recall?query=Rome&", "user_id"),
        ("/console/forget?q=Rome&", "of_user"),
        ("/console/forget?", "user"),
    ):
        page = (await browser.open(f"{path}{name}=Anna")).text
        assert sentence in words(page), path
        assert f'href="{path.replace("&", "&amp;")}{name}=anna"' in page
        assert f'name="{name}" type="text" value="Anna"' in page, "what was typed stays"
    assert "Did you mean" not in await browser.text("/console/memories?user=Ben")
    assert "case sensitive" not in await browser.text("/console/memories?user=anna&category=preference")


async def test_a_forgotten_memory_offers_neither_its_past_nor_to_be_forgotten_again(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    rome = await add(engine, namespace, "Anna lives in Rome")
    assert "Forget it for good" in await browser.text(address(rome))
    await engine.forget.forget(namespace, Target("memory", str(rome.id)))
    page = await browser.text(address(rome))
    assert "What it said is gone" in page
    assert "Show it as it was" not in page
    assert "Forget it for good" not in page
