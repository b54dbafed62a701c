"""The feed of changes: what is recorded, in which order, by whom, and what is left of it when things are forgotten."""

import asyncio
import io
from collections.abc import AsyncIterator

import pytest

from recollect.engine import Engine
from recollect.errors import Conflict, Invalid
from recollect.flows import feed
from recollect.flows.cognitive.golden_test import Entry as Golden
from recollect.flows.feed import Entry, Newest, Page
from recollect.flows.gateway import Owner, Said
from recollect.flows.keyed.operations import DeleteRecord, PutRecord
from recollect.flows.kinds.target import NAMESPACE, SESSION, USER, Target
from recollect.flows.long_term.memory_requests import Change as MemoryChange
from recollect.flows.long_term.memory_requests import Options
from recollect.flows.remember import Turn
from recollect.memory.changes import Change
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from recollect.origin import acting
from recollect.settings import Settings
from tests.flows.talk import say

ANN = NewMessage("user", "The ferry leaves at noon.")


async def entries(engine: Engine, namespace: str, since: int = 0) -> list[Entry]:
    return (await engine.feed.page(namespace, since)).entries


async def told(engine: Engine, namespace: str, since: int = 0) -> list[tuple[str, str, str]]:
    """Event, kind and what is shown of each change."""
    found = []
    for entry in await entries(engine, namespace, since):
        content = entry.content or {}
        text = " / ".join(message["text"] for message in content.get("messages", ())) or content.get("text", "")
        found.append((entry.change.event, entry.change.kind, text))
    return found


@pytest.fixture
async def another(settings: Settings) -> AsyncIterator[Engine]:
    """An engine as another process would have it."""
    engine = await Engine.open(settings.model_copy(update={"indexer": False}))
    yield engine
    await engine.close()


async def test_a_turn_is_one_change_with_its_messages(engine: Engine, namespace: str) -> None:
    await engine.remember.turn(namespace, Turn("talk", (ANN,), owner_if_new="ann"))
    await engine.remember.turn(namespace, Turn("talk", (NewMessage("user", "One."), NewMessage("assistant", "Two."))))
    first, second = await entries(engine, namespace)
    assert (first.change.number, first.change.item_id, first.change.detail) == (1, "talk", {"first": 0, "count": 1})
    assert (second.change.number, second.change.detail) == (2, {"first": 1, "count": 2})
    assert second.content is not None
    assert [(each["position"], each["role"], each["text"]) for each in second.content["messages"]] == [
        (1, "user", "One."),
        (2, "assistant", "Two."),
    ]


async def test_a_turn_of_many_messages_is_one_change_and_shows_the_first(engine: Engine, namespace: str) -> None:
    many = tuple(NewMessage("user", f"Number {number}.") for number in range(600))
    await engine.remember.turn(namespace, Turn("talk", many, owner_if_new="ann"))
    (entry,) = await entries(engine, namespace)
    assert entry.change.detail == {"first": 0, "count": 600}
    assert entry.content is not None
    assert [message["position"] for message in entry.content["messages"]] == list(range(20))


async def test_a_long_text_is_cut(engine: Engine, namespace: str) -> None:
    await engine.remember.text(namespace, "word " * 2_000)
    (entry,) = await entries(engine, namespace)
    assert entry.content == {"text": ("word " * 2_000)[:2_000]}


async def test_every_kind_is_told_of(engine: Engine, namespace: str) -> None:
    said = await engine.cognition.store_dialogue(namespace, "talk", "user", "Ann likes owls.")
    document = await engine.remember.text(namespace, "A book of owls.")
    await engine.remember.text(namespace, "A book of owls.", {"shelf": 1})
    await engine.remember.text(namespace, "A book of owls.", {"shelf": 1})
    insight = (await engine.cognition.compress(namespace, "Owls matter to Ann.", [said.seq])).insight.id
    await engine.cognition.store_episode(namespace, "How to feed owls?", 0.5, "At night.")
    kept = (await engine.cognition.update_working(namespace, "Feed the owls.")).added_id
    await engine.cognition.update_working(namespace, "Feed the owls.")
    await engine.cognition.archive(namespace, kept)
    await engine.graph.add_node(namespace, "Person", "Ann")
    await engine.graph.add_edge(namespace, "Ann", "owls", "LIKES")
    await engine.graph.add_edge(namespace, "Ann", "owls", "LIKES", target_label="Bird", weight=0.5)
    (query,) = await engine.golden_test.add(namespace, [Golden("who likes owls", [insight])])
    await engine.golden_test.add(namespace, [Golden("who likes owls", [insight])])
    await engine.golden_test.remove(namespace, query.id)
    for text in ("Owl care.", "Owl care, revised."):
        await engine.gateway.put_resource(Owner(namespace, "ann"), "file:owls", text)
    for value in ({"bird": "owl"}, {"bird": "barn owl"}):
        await engine.record_store.batch(namespace, [PutRecord(("Ann",), "pet", value, ["Ann has an owl."])])
    await engine.record_store.batch(namespace, [PutRecord(("Ann",), "food", "mice"), DeleteRecord(("Ann",), "none")])
    await engine.record_store.batch(namespace, [DeleteRecord(("Ann",), "food")])
    assert await told(engine, namespace) == [
        ("add", "message", "Ann likes owls."),
        ("add", "document", "A book of owls."),
        ("update", "document", "A book of owls."),
        ("add", "insight", "Owls matter to Ann."),
        ("add", "episode", "How to feed owls?"),
        ("add", "working", ""),
        ("update", "working", ""),
        ("delete", "working", ""),
        ("add", "node", "Ann"),
        ("add", "node", "owls"),
        ("add", "edge", "Ann LIKES owls"),
        ("update", "node", "owls"),
        ("update", "edge", "Ann LIKES owls"),
        ("add", "golden", ""),
        ("delete", "golden", ""),
        ("add", "resource", "Owl care, revised."),
        ("update", "resource", "Owl care, revised."),
        ("add", "record", "Ann has an owl."),
        ("update", "record", "Ann has an owl."),
        ("add", "record", ""),
        ("delete", "record", ""),
    ]
    numbers = [entry.change.number for entry in await entries(engine, namespace)]
    assert numbers == list(range(1, len(numbers) + 1))
    async with engine.database.reading(namespace) as db:
        of_document = await engine.capabilities.changes.of_item(db, "document", str(document.id))
    assert [change.event for change in of_document] == ["add", "update"]


async def test_what_changed_nothing_is_not_told(engine: Engine, namespace: str) -> None:
    await engine.remember.turn(namespace, Turn("talk", (), owner_if_new="ann"))
    with pytest.raises(Invalid):
        await engine.remember.text(namespace, "")
    chat = Owner(namespace, "ann")
    for _ in range(2):
        await engine.gateway.add(chat, "chat:1", [Said("ann", "user", 1, "Once.")])
    assert await told(engine, namespace) == [("add", "message", "Once.")]


async def test_turns_that_share_a_commit_have_each_its_author(engine: Engine, namespace: str) -> None:
    async def write(author: str) -> None:
        with acting("rest", author):
            await say(engine, namespace, author, f"I am {author}.", session=f"of {author}")

    await asyncio.gather(*(write(f"key {number}") for number in range(40)))
    found = await entries(engine, namespace)
    assert len(found) == 40
    for entry in found:
        assert entry.content is not None
        assert entry.content["messages"][0]["text"] == f"I am {entry.change.author}."
        assert entry.change.door == "rest"


async def test_a_write_of_no_door_is_of_the_library(engine: Engine, namespace: str) -> None:
    await engine.remember.text(namespace, "A book of owls.")
    (entry,) = await entries(engine, namespace)
    assert (entry.change.door, entry.change.author) == ("library", None)


async def test_a_forgotten_item_leaves_the_feed_but_for_its_id(engine: Engine, namespace: str) -> None:
    said = await engine.cognition.store_dialogue(namespace, "talk", "user", "Ann likes owls.")
    await engine.cognition.compress(namespace, "Owls matter to Ann.", [said.seq])
    document = await engine.remember.text(namespace, "A book of owls.")
    await engine.forget.item(namespace, f"message:{said.id}")
    await engine.forget.item(namespace, f"document:{document.id}")
    forgotten = [("forget", "message", ""), ("forget", "insight", ""), ("forget", "document", "")]
    assert await told(engine, namespace) == forgotten
    assert (await entries(engine, namespace))[0].change.item_id == str(said.id)


async def test_a_forgotten_memory_is_told_once_whatever_it_was_before(engine: Engine, namespace: str) -> None:
    memory = (await engine.memories.add(namespace, "Ann likes owls.", "fact", MemoryScope("ann"))).memory
    await engine.memories.update(namespace, str(memory.id), MemoryChange("Ann likes bats."))
    await engine.forget.item(namespace, f"memory:{memory.id}")
    assert await told(engine, namespace) == [("forget", "memory", "")]


async def test_a_turn_stays_while_one_of_its_messages_does(engine: Engine, namespace: str) -> None:
    turn = Turn("talk", (NewMessage("user", "One."), NewMessage("user", "Two.")), owner_if_new="ann")
    one, two = await engine.remember.turn(namespace, turn)
    await engine.forget.item(namespace, f"message:{one.id}")
    assert await told(engine, namespace) == [("add", "message", "Two."), ("forget", "message", "")]
    await engine.forget.item(namespace, f"message:{two.id}")
    assert await told(engine, namespace) == [("forget", "message", ""), ("forget", "message", "")]


async def test_a_forgotten_session_is_told_of_once(engine: Engine, namespace: str) -> None:
    for text in ("One.", "Two."):
        await say(engine, namespace, "ann", text, session="talk")
    await say(engine, namespace, "bob", "Mine.", session="other")
    await engine.forget.forget(namespace, Target(SESSION, "talk"))
    assert await told(engine, namespace) == [("add", "message", "Mine."), ("forget", "session", "")]


async def test_nothing_says_who_a_forgotten_user_was(engine: Engine, namespace: str) -> None:
    ann = Owner(namespace, "hespervald")
    with acting("gateway", "hespervald"):
        await engine.gateway.add(ann, "chat:1", [Said("hespervald", "user", 1, "I am here.")])
        await engine.gateway.put_resource(ann, "file:me", "All about me.")
    assert {entry.change.author for entry in await entries(engine, namespace)} == {"hespervald"}
    await engine.forget.forget(namespace, Target(USER, "hespervald"))
    found = await entries(engine, namespace)
    assert [(entry.change.event, entry.change.kind) for entry in found] == [
        ("forget", "session"),
        ("forget", "resource"),
    ]
    assert "hespervald" not in str(found)


async def test_nothing_is_forgotten_by_counting_or_by_a_wrong_id(engine: Engine, namespace: str) -> None:
    document = await engine.remember.text(namespace, "A book of owls.")
    await engine.forget.count(namespace, Target("document", str(document.id)))
    with pytest.raises(Exception, match="No item"):
        await engine.forget.item(namespace, "episode:12345")
    assert await told(engine, namespace) == [("add", "document", "A book of owls.")]


async def test_a_reader_of_a_deleted_namespace_is_told_to_begin_again(engine: Engine, namespace: str) -> None:
    for text in ("One.", "Two."):
        await engine.remember.text(namespace, text)
    await engine.forget.forget(namespace, Target(NAMESPACE, namespace))
    assert await engine.feed.page(namespace) == Page([], 0)
    with pytest.raises(Conflict, match="Read its changes from 0"):
        await engine.feed.page(namespace, 2)


async def test_an_import_is_told_of_by_turns_and_items(engine: Engine, namespace: str) -> None:
    for text in ("One.", "Two."):
        await say(engine, namespace, "ann", text, session="talk")
    await engine.remember.text(namespace, "A book of owls.")
    lines = [line async for line in engine.exporting.lines(namespace)]
    assert "changes" not in "".join(lines)
    other = f"{namespace}-other"
    for _ in range(2):
        await engine.importing.run(io.BytesIO("\n".join(lines).encode()), other)
    assert await told(engine, other) == [
        ("import", "message", "One. / Two."),
        ("import", "document", "A book of owls."),
    ]


async def test_two_namespaces_never_mix(engine: Engine, namespace: str) -> None:
    other = f"{namespace}-other"
    for place, text in ((namespace, "Ours."), (other, "Theirs."), (namespace, "Ours too.")):
        await say(engine, place, "ann", text, session="talk")
    assert await told(engine, namespace) == [("add", "message", "Ours."), ("add", "message", "Ours too.")]
    assert await told(engine, other) == [("add", "message", "Theirs.")]


async def test_pages_follow_each_other(engine: Engine, namespace: str) -> None:
    for number in range(5):
        await engine.remember.text(namespace, f"Text {number}")
    seen, since = [], 0
    while (page := await engine.feed.page(namespace, since, limit=2)).entries:
        seen += [entry.change.number for entry in page.entries]
        since = page.next
    assert (seen, since) == ([1, 2, 3, 4, 5], 5)
    assert await engine.feed.last(namespace) == 5
    for limit in (0, 501):
        with pytest.raises(Invalid, match="limit"):
            await engine.feed.page(namespace, limit=limit)
    with pytest.raises(Invalid, match="since"):
        await engine.feed.page(namespace, -1)


async def test_whoever_follows_hears_of_this_process_and_of_others(
    engine: Engine, another: Engine, namespace: str
) -> None:
    await engine.remember.text(namespace, "Before.")
    pages = engine.feed.follow(namespace)
    assert [entry.content for entry in (await anext(pages)).entries] == [{"text": "Before."}]
    for writer in (engine, another):
        waiting = asyncio.ensure_future(anext(pages))
        await asyncio.sleep(0)
        await writer.remember.text(namespace, f"By {id(writer)}.")
        assert [entry.content for entry in (await waiting).entries] == [{"text": f"By {id(writer)}."}]
    await pages.aclose()


async def test_a_quiet_feed_says_so_and_ends_at_once(engine: Engine, namespace: str) -> None:
    pages = engine.feed.follow(namespace, quiet_seconds=0.01)
    assert await anext(pages) == Page([], 0)
    waiting = asyncio.ensure_future(anext(engine.feed.follow(namespace), None))
    await asyncio.sleep(0)
    engine.feed.end()
    assert await waiting is None
    assert [page async for page in pages] == []


async def test_numbers_have_no_gaps_whatever_is_rolled_back(engine: Engine, another: Engine, namespace: str) -> None:
    async def write(number: int) -> None:
        writer = (engine, another)[number % 2]
        try:
            async with writer.database.transaction(namespace) as tx:
                await writer.capabilities.changes.record(tx, [Change("add", "document", str(number))])
                if number % 5 == 0:
                    raise Conflict("undone")
        except Conflict:
            pass

    await asyncio.gather(*map(write, range(60)))
    async with engine.database.reading(namespace) as db:
        found = await engine.capabilities.changes.since(db, 0, 100)
    assert [change.number for change in found] == list(range(1, 49))
    assert sorted(change.at for change in found) == [change.at for change in found]


async def test_a_restored_memory_that_takes_its_key_back_is_told_of_with_what_it_superseded(
    engine: Engine, namespace: str
) -> None:
    async def home(city: str) -> str:
        options = Options(key="home")
        added = await engine.memories.add(
            namespace, f"Ann lives in {city}.", "fact", MemoryScope("ann"), options=options
        )
        return str(added.memory.id)

    oslo, rome, bonn = await home("Oslo"), await home("Rome"), await home("Bonn")
    seen = await engine.feed.last(namespace)
    await engine.memories.delete(namespace, rome, restore=True)
    changes = [entry.change for entry in await entries(engine, namespace, seen)]
    assert [(change.event, change.item_id, change.detail) for change in changes] == [
        ("delete", rome, None),
        ("update", oslo, {"restored": True}),
        ("update", bonn, {"superseded_by": oslo}),
    ]


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_the_newest_changes_are_read_backwards_page_by_page(engine: Engine, namespace: str) -> None:
    assert (await engine.feed.newest(namespace)) == Newest([], 0, 0)
    assert await engine.feed.first_at(namespace) is None
    for number in range(1, 6):
        await say(engine, namespace, "ann", f"Line {number}.")
    first = await engine.feed.newest(namespace, limit=2)
    second = await engine.feed.newest(namespace, first.next, limit=2)
    third = await engine.feed.newest(namespace, second.next, limit=2)
    pages = [[entry.change.number for entry in page.entries] for page in (first, second, third)]
    assert pages == [[5, 4], [3, 2], [1]]
    assert third.next == 0
    assert first.entries == list(reversed((await engine.feed.page(namespace, 3)).entries))
    assert await engine.feed.first_at(namespace) == third.entries[0].change.at
    assert (await engine.feed.newest(namespace, 1)) == Newest([], 0, 5)


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_kind_that_is_rare_is_looked_for_in_steps(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.remember.document(namespace, "The first of all.", None, None)
    for number in range(5):
        await say(engine, namespace, "ann", f"Line {number}.")
    monkeypatch.setattr(feed, "LOOKED_AT", 4)
    nothing = await engine.feed.newest(namespace, kind="document", event="add")
    assert nothing == Newest([], 3, 6)
    found = await engine.feed.newest(namespace, nothing.next, kind="document", event="add")
    assert [(entry.change.number, entry.content and entry.content["text"]) for entry in found.entries] == [
        (1, "The first of all.")
    ]
    assert found.next == 0
    assert (await engine.feed.newest(namespace, kind="document", event="forget")).entries == []
