"""Items of other kinds, and forgetting: first what would go, then the receipt."""

import re
from collections.abc import AsyncIterator

import pytest

from recollect.engine import Engine
from recollect.errors import NotFound
from recollect.flows.kinds.target import Target
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from tests.console_visits import Browser, browsing, token_of, words

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


@pytest.fixture
async def browser(engine: Engine) -> AsyncIterator[Browser]:
    async with browsing(engine) as browser:
        yield browser


async def say(engine: Engine, namespace: str, text: str, user: str = "anna", session: str = "talk") -> str:
    turn = Turn(session, (NewMessage("user", text, speaker="Anna"),), user)
    (said,) = await engine.remember.turn(namespace, turn)
    return str(said.id)


async def test_an_item_of_any_kind_has_a_page_with_its_sources(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    message = await say(engine, namespace, "I am allergic to nuts.")
    story = await engine.lineage.of(namespace, f"message:{message}")
    stored = (await engine.memories.add(namespace, "Anna likes tea.", "fact", MemoryScope("anna"))).memory
    document = (await engine.remember.text(namespace, "A map of Rome.", {"source": "a wiki"})).id
    episode = (await engine.cognition.store_episode(namespace, "Which dessert?", 0.5, "Ask first.")).episode.id
    page = words(await browser.text(f"/console/item?name=document:{document}"))
    assert "A map of Rome." in page
    assert '"source": "a wiki"' in page
    assert "Reflection Ask first." in words(await browser.text(f"/console/item?name=episode:{episode}"))
    said = await browser.text(f"/console/item?name=message:{message}&q=allergic")
    assert "I am <mark>allergic</mark> to nuts." in said
    assert f"/console/session?id={story.session_id}&amp;at={message}" in said
    moved = await browser.open(f"/console/item?name={stored.id}")
    assert (moved.status_code, moved.headers["location"]) == (303, f"/console/memory?id={stored.id}")
    assert [(await browser.open(f"/console/item{query}")).status_code for query in ("", "?name=insight:999")] == [
        422,
        404,
    ]


async def test_a_dry_run_removes_nothing_and_the_receipt_says_what_went(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    memory = (await engine.memories.add(namespace, "Anna lives in Rome.", "fact", MemoryScope("anna"))).memory
    name = f"memory:{memory.id}"
    expected = words(await browser.text(f"/console/forget?name={name}"))
    assert "Nothing has been removed yet." in expected
    assert f"What it says Anna lives in Rome. Would go with {name}" in expected
    assert "Long-term memories 1 Entries in the history of memories 1 Passages of the search index 1" in expected
    await engine.memories.get(namespace, str(memory.id))
    refused = await browser.send("/console/forget", "/console/forget", token="0" * 64, name=name)
    assert refused.status_code == 403
    answer = await browser.send(f"/console/forget?name={name}", "/console/forget", name=name)
    receipt = words(answer.text)
    assert answer.status_code == 200
    assert f"Removed with {name}" in receipt
    assert "Long-term memories 1 Entries in the history of memories 1 Passages of the search index 1" in receipt
    with pytest.raises(NotFound):
        await engine.memories.get(namespace, str(memory.id))
    assert "forgotten: nothing is left of it" in words(await browser.text(f"/console/memory?id={memory.id}"))
    assert (await browser.send("/console/memories", "/console/forget", name=name)).status_code == 404


async def test_a_user_and_a_session_are_forgotten_with_all_they_have(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    await say(engine, namespace, "I live in Rome.")
    await say(engine, namespace, "I like tea.", "ben", "other")
    await engine.memories.add(namespace, "Anna lives in Rome.", "fact", MemoryScope("anna"))
    expected = words(await browser.text("/console/forget?user=anna"))
    assert "Would go with user:anna" in expected
    assert re.search(r"Long-term memories 1 .* Messages 1 .* Sessions 1", expected)
    answer = await browser.send("/console/memories", "/console/forget", name="user:anna")
    assert "Removed with user:anna" in words(answer.text)
    gone = await browser.open("/console/forget?user=anna")
    assert (gone.status_code, "No data for user anna" in gone.text) == (404, True)
    assert "Messages 1" in words(await browser.text("/console/forget?session=other"))
    await browser.send("/console/memories", "/console/forget", name="session:other")
    assert "Unknown session other" in (await browser.open("/console/forget?session=other")).text


async def test_what_matches_a_text_is_chosen_and_forgotten_with_its_duplicates(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    messages = [await say(engine, namespace, "I am allergic to peanuts.", session=name) for name in ("one", "two")]
    kept = await say(engine, namespace, "The ferry leaves at noon.")
    page = await browser.text("/console/forget?q=allergic+to+peanuts")
    assert kept not in page
    names = re.findall(r'name="name" value="([^"]+)"', page)
    assert len(names) == 1
    dry_run = await browser.text(f"/console/forget?name={names[0]}&twins=1")
    assert "Messages 2" in words(dry_run)
    assert "Duplicates, which say the same and stay" in words(await browser.text(f"/console/forget?name={names[0]}"))
    receipt = words((await browser.send("/console/memories", "/console/forget", name=names[0], twins="1")).text)
    assert "Messages 2" in receipt
    for message in messages:
        assert "forgotten" in words(await browser.text(f"/console/item?name=message:{message}"))
    assert "The ferry leaves" in words(await browser.text(f"/console/item?name=message:{kept}"))
    assert (
        await browser.open(f"/console/forget?{'&'.join(f'name=insight:{n}' for n in range(51))}")
    ).status_code == 422


async def test_the_receipt_of_what_went_is_shown_though_another_item_was_gone(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    first, gone = [await say(engine, namespace, f"The {number} ferry leaves at noon.") for number in ("first", "last")]
    await engine.forget.forget(namespace, Target("message", gone))
    token = token_of(await browser.text("/console/memories"))
    names = [f"message:{first}", f"message:{gone}"]
    answer = await browser.http.post("/console/forget", data={"name": names, "csrf": token})
    receipt = words(answer.text)
    assert f"Removed with {names[0]}" in receipt
    assert f"Not there any more, because they went with the others or before: {names[1]}" in receipt


async def test_receipts_are_shown_though_a_later_item_could_not_be_forgotten(
    browser: Browser, engine: Engine, namespace: str
) -> None:
    first, last = [f"message:{await say(engine, namespace, text)}" for text in ("One.", "Two.")]
    refused = f"message:{'x' * 1000}"
    token = token_of(await browser.text("/console/memories"))
    names = [first, refused, last]
    answer = await browser.http.post("/console/forget", data={"name": names, "csrf": token})
    shown = words(answer.text)
    assert answer.status_code == 422
    assert f"Removed with {first}" in shown
    assert f"Not forgotten, or not wholly {refused}, {last}" in shown
