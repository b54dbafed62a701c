"""Sessions: the list, what is found in them, a transcript page by page, its window, and what changes them."""

import html
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote
from uuid import UUID

import pytest

from recollect.engine import Engine
from recollect.flows.sessions import Described
from recollect.memory.log import Message, NewMessage
from recollect.memory.windows import WindowConfig
from tests.console_visits import Browser, browsing

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

LIST, PAGE = "/console/sessions", "/console/session"
MOST_BYTES = 200_000
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
async def browser(engine: Engine) -> AsyncIterator[Browser]:
    async with browsing(engine) as browser:
        yield browser


async def say(engine: Engine, namespace: str, session_id: str, *texts: str, user_id: str = "anna") -> list[Message]:
    """Texts in turn by a user and an assistant, a minute apart."""
    new = [
        NewMessage("assistant" if number % 2 else "user", text, at=NOON + timedelta(minutes=number))
        for number, text in enumerate(texts)
    ]
    return await engine.sessions.add(namespace, session_id, new, user_id)


def shown_texts(page: str) -> list[str]:
    """What was said, as a page shows it."""
    said = re.findall(r'<li id="m-.*?<p class="text">(.*?)</p>', page, re.S)
    return [html.unescape(text) for text in said]


async def test_sessions_are_listed_by_user_agent_and_part_of_the_title(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    await engine.sessions.create(namespace, "trip", Described("anna", "guide", "The trip to Lyon"))
    await say(engine, namespace, "dinner", "Who comes?", "Six guests.", user_id="boris")
    page = await browser.text(LIST)
    assert page.index("dinner") < page.index("The trip to Lyon"), "the last active comes first"
    assert "Six guests." in page
    for filtered in ("text=TRIP TO", "text=tri", "user=anna", "agent=guide"):
        page = await browser.text(f"{LIST}?{filtered}")
        assert ("The trip to Lyon" in page, "Six guests." in page) == (True, False), filtered
    assert "No session fits" in await browser.text(f"{LIST}?text=100%25")


async def test_every_session_is_on_one_page_of_the_list(browser: Browser, engine: Engine, namespace: str) -> None:
    for number in range(60):
        await engine.sessions.create(namespace, f"talk-{number:02}", Described("anna"))
    first = await browser.text(LIST)
    (address,) = re.findall(rf'href="({LIST}\?behind=[^"]+)"', first)
    second = await browser.text(html.unescape(address))
    pages = [re.findall(rf'href="{PAGE}\?id=(talk-\d\d)"', page) for page in (first, second)]
    assert [len(page) for page in pages] == [50, 10]
    assert sorted(pages[0] + pages[1]) == [f"talk-{number:02}" for number in range(60)]


async def test_what_was_said_is_found_and_leads_to_its_place(browser: Browser, engine: Engine, namespace: str) -> None:
    said = await say(engine, namespace, "dinner", *(f"Course {n} is soup." for n in range(70)), "Nora avoids peanuts.")
    await say(engine, namespace, "other", "No peanuts here, either.")
    page = await browser.text(f"{LIST}?said=peanuts&session=dinner")
    assert ("Nora avoids peanuts." in page, "either" in page) == (True, False)
    place = f"{PAGE}?id=dinner&at={said[-1].id}#m-{said[-1].id}"
    assert html.escape(place) in page
    page = await browser.text(f"{PAGE}?id=dinner&at={said[20].id}")
    assert "Course 20 is soup." in shown_texts(page)
    (here,) = re.findall(r'<li id="m-([0-9a-f-]+)" class="turn[^"]* here"', page)
    assert here == str(said[20].id)


async def test_a_transcript_is_read_page_by_page_in_both_directions(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    texts = [f"Line {number}." for number in range(120)]
    await say(engine, namespace, "long", *texts)
    read: list[str] = []
    address: str | None = f"{PAGE}?id=long"
    while address is not None:
        page = await browser.text(address)
        read = shown_texts(page) + read
        found = re.search(r'href="([^"]+)" rel="prev"', page)
        address = html.unescape(found[1]) if found else None
    assert read == texts
    first = await browser.text(f"{PAGE}?id=long&start=0")
    assert shown_texts(first) == texts[:50]
    assert 'rel="prev"' not in first
    found = re.search(r'href="([^"]+)" rel="next"', first)
    assert found is not None
    assert shown_texts(await browser.text(html.unescape(found[1]))) == texts[50:100]
    past = await browser.text(f"{PAGE}?id=long&as_of={quote((NOON + timedelta(minutes=2)).isoformat())}")
    assert shown_texts(past) == texts[:3]


async def test_long_texts_are_cut_and_can_be_read_to_the_end(browser: Browser, engine: Engine, namespace: str) -> None:
    long = [f"{number} " + letter * 100_000 for number, letter in enumerate(["a", "語", "\u200b", '"'] * 13)]
    stored = await say(engine, namespace, "long", *long, "A short one.")
    page = await browser.text(f"{PAGE}?id=long")
    assert len(page.encode()) < MOST_BYTES
    assert shown_texts(page)[-1] == "A short one."
    assert page.count("Read all of it") == 49
    for message in stored[:4]:
        whole = f"name=message:{message.id}"
        page = await browser.text(f"/console/item?{whole}")
        assert len(page.encode()) < MOST_BYTES
        assert html.escape(f"/console/text?{whole.replace(':', '%3A')}") in page
    assert await browser.text(f"/console/text?name=message:{stored[1].id}") == long[1]


async def test_a_window_is_shown_as_it_is_and_not_changed_by_looking(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    said = await say(engine, namespace, "talk", *(f"Sentence {number} of a talk about gardens." for number in range(9)))
    answer = await browser.send(
        f"{PAGE}?id=talk", f"{PAGE}/window", id="talk", strategy="token_threshold", max_messages="", max_tokens="60"
    )
    assert answer.headers["location"] == f"{PAGE}?id=talk&done=window"
    page = await browser.text(f"{PAGE}?id=talk")
    assert "its next reader gets a summary" in page
    assert page.count('class="turn by-user in-window') == 5
    assert len(await engine.windows.messages(namespace, "talk")) == 9
    context = await engine.windows.context(namespace, "talk")
    page = await browser.text(f"{PAGE}?id=talk")
    (summary,) = [message for message in context.messages if message.compacted]
    assert html.escape(summary.content[:30], quote=False) in html.unescape(page)
    assert "made of their own sentences" in page
    assert "its next reader gets a summary" not in page
    first = next(message for message in context.messages if not message.compacted)
    begins = page.index("The window begins here")
    assert begins < page.index(f'id="m-{first.id}"')
    before = next(message for message in reversed(said) if page.index(f'id="m-{message.id}"') < begins)
    assert said.index(before) + 1 == next(n for n, message in enumerate(said) if message.id == first.id)
    wrong = await browser.send(f"{PAGE}?id=talk", f"{PAGE}/window", id="talk", max_tokens="0")
    assert wrong.status_code == 422


async def test_a_session_is_renamed_and_forgotten(browser: Browser, engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "talk", "Hello.", "Hello to you.")
    renamed = await browser.send(f"{PAGE}?id=talk", f"{PAGE}/rename", id="talk", title="Greetings")
    assert renamed.headers["location"] == f"{PAGE}?id=talk&done=renamed"
    assert '<h1><span class="text">Greetings</span></h1>' in await browser.text(f"{PAGE}?id=talk&done=renamed")
    address = "/console/forget?session=talk"
    assert address in await browser.text(f"{PAGE}?id=talk")
    assert "session:talk" in await browser.text(address)
    gone = await browser.send(address, "/console/forget", name="session:talk")
    assert (gone.status_code, "session:talk" in gone.text) == (200, True)
    assert (await browser.open(f"{PAGE}?id=talk")).status_code == 404


@pytest.mark.parametrize("change", ["rename", "window"])
async def test_a_change_without_the_token_of_a_page_is_refused(
    browser: Browser, engine: Engine, namespace: str, change: str
) -> None:
    await say(engine, namespace, "talk", "Hello.")
    fields = {"id": "talk", "title": "Other", "max_messages": "1"}
    assert (await browser.send(LIST, f"{PAGE}/{change}", token="0" * 64, **fields)).status_code == 403
    assert (await engine.sessions.get(namespace, "talk")).title is None
    assert (await engine.windows.outline(namespace, "talk", 10, 10)).own == WindowConfig()


async def test_a_key_is_offered_what_it_may_do_and_refused_the_rest(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    await say(engine, namespace, "talk", "Hello.")
    reader = (await engine.access.create_key(namespace, "reader", role="read")).secret
    writer = (await engine.access.create_key(namespace, "writer", role="write")).secret
    await browser.sign_in(reader)
    page = await browser.text(f"{PAGE}?id=talk")
    assert not [offer for offer in ("Rename", "Set its limits", "Delete this session") if offer in page]
    assert (await browser.send(f"{PAGE}?id=talk", f"{PAGE}/rename", id="talk", title="Other")).status_code == 403
    await browser.sign_in(writer)
    page = await browser.text(f"{PAGE}?id=talk")
    assert ("Rename" in page, "Delete this session" in page) == (True, False)
    changed = await browser.send(f"{PAGE}?id=talk", f"{PAGE}/window", id="talk", max_messages="7")
    assert changed.status_code == 303
    assert (await engine.sessions.get(namespace, "talk")).title is None


async def test_nothing_of_another_namespace_is_shown(browser: Browser, engine: Engine, namespace: str) -> None:
    (message,) = await say(engine, f"{namespace}-other", "secret-talk", "Theirs alone.")
    assert "secret-talk" not in await browser.text(LIST)
    for path in (f"{PAGE}?id=secret-talk", f"/console/item?name=message:{message.id}"):
        assert (await browser.open(path)).status_code == 404
    await say(engine, namespace, "mine", "Mine.")
    elsewhere = await browser.open(f"{PAGE}?id=mine&at={message.id}")
    assert (elsewhere.status_code, "Theirs" in elsewhere.text) == (404, False)


@pytest.mark.parametrize("query", ["id=nobody", f"id=talk&at={UUID(int=1)}", "id=talk&at=x", "id=", "id=talk&start=x"])
async def test_what_is_not_there_is_said_on_a_page(
    browser: Browser, engine: Engine, namespace: str, query: str
) -> None:
    await say(engine, namespace, "talk", "Hello.")
    answer = await browser.open(f"{PAGE}?{query}")
    assert answer.status_code in (404, 422)
    assert "<h1>" in answer.text
