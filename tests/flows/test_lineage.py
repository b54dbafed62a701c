"""Where an item comes from: what happened to it, who did that, and what it was made from, as long as that is there."""

import io
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from recollect import origin
from recollect.engine import Engine
from recollect.errors import Invalid, NotFound
from recollect.flows import lineage
from recollect.flows.kinds import registry
from recollect.flows.kinds.target import SESSION, Target
from recollect.flows.lineage import Difference, Source, Story
from recollect.flows.long_term.memory_requests import Change, Options
from recollect.flows.remember import Turn
from recollect.memory.log import Message, NewMessage
from recollect.memory.memories import MemoryScope, StoredMemory
from recollect.storage.sql import Query

ANN = MemoryScope(user_id="ann")
NOW = datetime.now(UTC)
EXPIRE = Query.named(
    "test.expire", "update memories set expires_at = now() - interval '1 second' where namespace = :namespace"
)
MAKE_SOURCE = Query.named(
    "test.source", "update memories set sources = :sources::text[] where namespace = :namespace and id = :id"
)


async def add(engine: Engine, namespace: str, text: str, **options: object) -> StoredMemory:
    given = Options(**options)  # type: ignore[arg-type]
    return (await engine.memories.add(namespace, text, "fact", ANN, options=given)).memory


async def say(engine: Engine, namespace: str, *texts: str, session: str = "talk") -> list[Message]:
    messages = tuple(NewMessage("user", text, speaker="Ann") for text in texts)
    return list(await engine.remember.turn(namespace, Turn(session, messages, owner_if_new="ann")))


async def of(engine: Engine, namespace: str, name: object) -> Story:
    return await engine.lineage.of(namespace, str(name))


def happened(story: Story) -> list[tuple[str, str | None, str | None]]:
    return [(event.event, event.door, event.author) for event in story.events]


async def test_each_event_of_a_memory_has_its_author_door_and_texts(engine: Engine, namespace: str) -> None:
    with origin.acting("mcp"):
        paris = await add(engine, namespace, "Ann lives in Paris.", key="home city")
    with origin.acting("rest", "the night shift"):
        await engine.memories.update(namespace, str(paris.id), Change("Ann lives in Paris, France."))
        rome = await add(engine, namespace, "Ann lives in Rome.", key="home city")
    with origin.acting("cli"):
        await engine.memories.undo(namespace, str(paris.id))
    ends = NOW + timedelta(days=30)
    await engine.memories.update(namespace, str(paris.id), Change(details={"expires_at": ends}))

    story = await of(engine, namespace, f"memory:{paris.id}")
    assert (story.state, story.text, story.key) == ("in_force", "Ann lives in Paris, France.", "home city")
    assert happened(story) == [
        ("stored", "mcp", None),
        ("changed", "rest", "the night shift"),
        ("superseded", "rest", "the night shift"),
        ("undone", "cli", None),
        ("changed", "library", None),
    ]
    stored, changed, superseded, _, expiring = story.events
    assert stored.new_text == changed.old_text == "Ann lives in Paris."
    assert (changed.new_text, changed.changed) == ("Ann lives in Paris, France.", None)
    assert superseded.by == lineage.Mention(f"memory:{rome.id}", "superseded", "Ann lives in Rome.")
    assert superseded.because == "key"
    assert expiring.changed == {"expires_at": Difference(None, ends)}
    assert story.expires_at == ends
    (replaced,) = story.superseded
    assert (replaced.memory.text, replaced.because) == ("Ann lives in Rome.", "undo")

    other = await of(engine, namespace, rome.id)
    assert other.state == "superseded"
    assert other.superseded_by == lineage.Mention(f"memory:{paris.id}", "in_force", story.text)
    (was_replaced,) = other.superseded
    assert (was_replaced.memory.name, was_replaced.because) == (f"memory:{paris.id}", "key")


async def test_sources_lead_down_to_the_messages(engine: Engine, namespace: str) -> None:
    with origin.acting("gateway", "ann"):
        first, second = await say(engine, namespace, "I moved to Rome.", "By the river.")
    with origin.acting("cli"):
        document = (await engine.remember.text(namespace, "A map of Rome.")).id
    insight = (await engine.cognition.compress(namespace, "Ann moved to Rome.", [first.seq, second.seq])).insight
    names = [f"insight:{insight.id}", f"document:{document}", f"message:{second.seq}"]
    memory = await add(engine, namespace, "Ann lives in Rome.", sources=names)
    assert memory.sources == (names[0], names[1], f"message:{second.id}")

    story = await of(engine, namespace, memory.id)
    condensed, told, said = story.sources
    assert story.is_whole
    assert (condensed.text, condensed.door) == ("Ann moved to Rome.", "library")
    assert [(source.text, source.speaker, source.author, source.door) for source in condensed.sources] == [
        ("I moved to Rome.", "Ann", "ann", "gateway"),
        ("By the river.", "Ann", "ann", "gateway"),
    ]
    assert (told.text, told.author, told.door) == ("A map of Rome.", None, "cli")
    assert said == condensed.sources[1]
    assert [source.session_id for source in condensed.sources] == ["talk", "talk"]
    assert (await of(engine, namespace, f"insight:{insight.id}")).sources == condensed.sources
    told_again = await of(engine, namespace, f"message:{first.seq}")
    assert (told_again.name, told_again.speaker) == (f"message:{first.id}", "Ann")
    assert happened(told_again) == [("stored", "gateway", "ann")]


async def test_every_kind_of_item_has_a_story(engine: Engine, namespace: str) -> None:
    (said,) = await say(engine, namespace, "The ferry is late.")
    memory = await add(engine, namespace, "The ferry is late.")
    document = (await engine.remember.text(namespace, "The ferry is late.")).id
    insight = (await engine.cognition.compress(namespace, "The ferry is late.", [said.seq])).insight.id
    episode = await engine.cognition.store_episode(namespace, "The ferry is late.", 0.5, "Wait.")
    named = {
        "message": said.id,
        "memory": memory.id,
        "document": document,
        "insight": insight,
        "episode": episode.episode.id,
    }
    for kind, item_id in named.items():
        story = await of(engine, namespace, f"{kind}:{item_id}")
        assert (story.text, story.state) == ("The ferry is late.", "in_force"), kind
        assert happened(story) == [("stored", "library", None)], kind
    lesson = await of(engine, namespace, f"episode:{episode.episode.id}")
    assert lesson.about == {"reward": 0.5, "reflection": "Wait."}
    assert (await of(engine, namespace, f"message:{said.id}")).session_id == "talk"
    for kind in registry.items():
        with pytest.raises(NotFound, match=f"No item has the id {kind}:999999"):
            await of(engine, namespace, f"{kind}:999999")
    kept = [await engine.cognition.update_working(namespace, f"Thought {number}.", 0.5) for number in range(11)]
    left = await of(engine, namespace, f"working:{kept[0].added_id}")
    assert (left.state, left.text) == ("deleted", None)
    assert left.events[-1].by is not None
    assert (await of(engine, namespace, left.events[-1].by.name)).text == "Thought 0."


async def test_metadata_and_long_texts_are_told_if_they_are_wanted(engine: Engine, namespace: str) -> None:
    document = (await engine.remember.text(namespace, "word " * 1_000, {"source": "a wiki"})).id
    cut = await of(engine, namespace, f"document:{document}")
    assert (cut.about, len(cut.text or "")) == ({"metadata": {"source": "a wiki"}}, 2_000)
    whole = await engine.lineage.of(namespace, f"document:{document}", most=10_000)
    assert len((whole.text or "").split()) == 1_000


async def test_a_bare_id_is_looked_for_and_must_mean_one_item(engine: Engine, namespace: str) -> None:
    (said,) = await say(engine, namespace, "The ferry is late.")
    assert (await of(engine, namespace, str(said.id).upper())).name == f"message:{said.id}"
    for wrong in ("session:talk", "user:ann"):
        with pytest.raises(Invalid, match="names no single item"):
            await of(engine, namespace, wrong)
    with pytest.raises(Invalid, match="the kind before the colon of an id"):
        await of(engine, namespace, "nothing:1")
    with pytest.raises(NotFound):
        await of(engine, namespace, uuid4())


async def test_a_source_that_is_not_there_is_refused_and_nothing_is_stored(engine: Engine, namespace: str) -> None:
    (said,) = await say(engine, namespace, "I moved.")
    (elsewhere,) = await say(engine, f"{namespace}-other", "I stayed.")
    for unknown in (f"message:{uuid4()}", "insight:1", "document:nothing", f"message:{elsewhere.id}"):
        with pytest.raises(Invalid, match=f"Unknown source {unknown}: store it before"):
            await add(engine, namespace, "Ann moved.", sources=[f"message:{said.id}", unknown])
    assert not (await engine.memories.newest(namespace)).memories


async def test_a_forgotten_source_leaves_the_lineage_of_what_was_made_from_it(engine: Engine, namespace: str) -> None:
    kept, gone = await say(engine, namespace, "The cat sleeps.", "The zyxomlurk wakes.")
    names = [f"message:{kept.id}", f"message:{gone.id}"]
    insight = (await engine.cognition.compress(namespace, "Some sleep.", [kept.seq, gone.seq])).insight.id
    old = await add(engine, namespace, "The zyxomlurk is awake.", key="who is awake")
    memory = await add(
        engine, namespace, "Nobody is awake.", key="who is awake", sources=[*names, f"insight:{insight}"]
    )
    for name in names[1:]:
        await engine.forget.item(namespace, name)
    await engine.forget.item(namespace, f"memory:{old.id}")
    story = await of(engine, namespace, memory.id)
    assert story.sources[1] == Source(names[1], "gone")
    assert [source.state for source in story.sources[2].sources] == ["in_force", "gone"]
    assert story.superseded == ()
    for name in (f"memory:{memory.id}", f"insight:{insight}"):
        assert "zyxomlurk" not in str(await of(engine, namespace, name))
    for name in (names[1], f"memory:{old.id}"):
        forgotten = await of(engine, namespace, name)
        assert (forgotten.state, forgotten.text, forgotten.sources) == ("forgotten", None, ())
        assert [event.event for event in forgotten.events] == ["forgotten"]
    await engine.forget.forget(namespace, Target(SESSION, "talk"))
    assert [source.state for source in (await of(engine, namespace, memory.id)).sources] == ["gone"] * 3


@pytest.mark.parametrize("forget", [False, True])
async def test_a_successor_that_is_gone_says_nothing_more(engine: Engine, namespace: str, forget: bool) -> None:
    old = await add(engine, namespace, "Ann lives in Paris.", key="home city")
    new = await add(engine, namespace, "The zyxomlurk lives in Rome.", key="home city")
    if forget:
        await engine.forget.item(namespace, f"memory:{new.id}")
    else:
        await engine.memories.delete(namespace, str(new.id))
    story = await of(engine, namespace, old.id)
    assert story.superseded_by == lineage.Mention(f"memory:{new.id}", "gone")
    assert "zyxomlurk" not in str(story)


async def test_a_deleted_memory_keeps_its_events_and_no_text(engine: Engine, namespace: str) -> None:
    memory = await add(engine, namespace, "The zyxomlurk is late.")
    await engine.memories.update(namespace, str(memory.id), Change("The zyxomlurk is early."))
    with origin.acting("rest", "the night shift"):
        await engine.memories.delete(namespace, str(memory.id))
    story = await of(engine, namespace, memory.id)
    assert story.state == "deleted"
    assert [event.event for event in story.events] == ["stored", "changed", "deleted"]
    assert (story.events[-1].author, story.events[-1].door) == ("the night shift", "rest")
    assert "zyxomlurk" not in str(story)


async def test_an_expired_memory_is_out_of_lineage_and_history_before_it_is_swept(
    engine: Engine, namespace: str
) -> None:
    memory = await add(engine, namespace, "The zyxomlurk is late.")
    async with engine.database.transaction(namespace) as tx:
        await tx.all(EXPIRE)
    stories = []
    for _ in range(2):
        stories.append(await of(engine, namespace, memory.id))
        assert "zyxomlurk" not in str([stories, await engine.memories.history(namespace, str(memory.id))])
        await engine.memories.sweep(namespace)
    before, after = stories
    assert before == after
    assert after.state == "expired"
    assert [event.event for event in after.events] == ["stored", "expired"]


async def test_that_a_memory_expires_is_the_work_of_nobody_and_has_its_own_time(engine: Engine, namespace: str) -> None:
    over = datetime.now(UTC) + timedelta(days=1)
    with origin.acting("rest", "the day shift"):
        memory = await add(engine, namespace, "The ferry is late.", key="ferry", expires_at=over)
        await engine.memories.update(namespace, str(memory.id), Change("The ferry is early."))
    async with engine.database.transaction(namespace) as tx:
        await tx.all(EXPIRE)
    with origin.acting("rest", "the night shift"):
        assert await engine.memories.sweep(namespace) == 1
    (*_, last) = (await of(engine, namespace, memory.id)).events
    assert (last.event, last.author, last.door) == ("expired", None, None)
    (*_, told) = (await engine.feed.page(namespace, 0)).entries
    assert (told.change.detail, told.change.author) == ({"because": "expired"}, None)
    # Not when it was swept, and not before what happened to it.
    assert last.at <= told.change.at - timedelta(microseconds=1)


async def test_cycles_end_and_depth_and_number_are_bounded(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = [await add(engine, namespace, f"Fact {number} of many.") for number in range(4)]
    names = [f"memory:{memory.id}" for memory in memories]
    async with engine.database.transaction(namespace) as tx:
        for memory, sources in zip(memories, [names[1:3], [names[2]], [names[0], names[3], "junk"], []], strict=True):
            await tx.all(MAKE_SOURCE, id=memory.id, sources=sources)
    story = await of(engine, namespace, names[0])
    one, two = story.sources
    (inner,) = one.sources
    assert [source.name for source in inner.sources] == [names[0], names[3], "junk:"]
    assert inner.sources[0].sources == two.sources == ()
    assert inner.sources[2].state == "gone"
    assert story.is_whole
    monkeypatch.setattr(lineage, "MAX_DEPTH", 1)
    assert not (await of(engine, namespace, names[0])).is_whole
    monkeypatch.setattr(lineage, "MAX_SOURCES", 1)
    assert [source.name for source in (await of(engine, namespace, names[0])).sources] == [names[1]]


async def test_a_long_story_tells_its_end(engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "MAX_EVENTS", 3)
    memory = await add(engine, namespace, "Version 0.")
    for number in range(1, 5):
        details = {"pinned": number % 2 == 1}
        await engine.memories.update(namespace, str(memory.id), Change(f"Version {number}.", details=details))
    story = await of(engine, namespace, memory.id)
    assert [event.new_text for event in story.events] == ["Version 2.", "Version 3.", "Version 4."]
    assert [event.changed for event in story.events][-1] == {"pinned": Difference(True, False)}
    assert not story.is_whole


async def test_nothing_of_another_namespace_is_told(engine: Engine, namespace: str) -> None:
    (said,) = await say(engine, namespace, "I moved.")
    memory = await add(engine, namespace, "Ann moved.", sources=[f"message:{said.id}"])
    for name in (f"message:{said.id}", f"message:{said.seq}", f"memory:{memory.id}", memory.id):
        with pytest.raises(NotFound):
            await of(engine, f"{namespace}-other", name)


async def test_an_imported_memory_brings_the_authors_of_its_history(engine: Engine, namespace: str) -> None:
    with origin.acting("rest", "the night shift"):
        (said,) = await say(engine, namespace, "I moved to Paris.")
        document = await engine.remember.text(namespace, "A map of Paris.")
        sources = [f"message:{said.id}", f"document:{document.id}"]
        memory = await add(engine, namespace, "Ann lives in Paris.", sources=sources)
    assert [source.author for source in (await of(engine, namespace, memory.id)).sources] == ["the night shift"] * 2
    lines = [line async for line in engine.exporting.lines(namespace)]
    with origin.acting("cli"):
        await engine.importing.run(io.BytesIO("\n".join(lines).encode()), f"{namespace}-other")
    story = await of(engine, f"{namespace}-other", memory.id)
    assert happened(story) == [("stored", "rest", "the night shift"), ("imported", "cli", None)]
    assert [(source.state, source.author, source.door) for source in story.sources] == [("in_force", None, None)] * 2


async def test_what_a_language_model_saw_and_condensed_is_told(engine: Engine, namespace: str) -> None:
    known = await add(engine, namespace, "Ann lives in Paris.")
    async with engine.database.transaction(namespace) as tx:
        detail = {"because": "language model", "model": "a-model", "saw": [str(known.id)]}
        new = await add(engine, namespace, "Ann lives in Rome.")
        moment = await engine.capabilities.memories.moment(tx, [known])
        await engine.capabilities.memories.supersede(tx, known, new, moment, detail)
    event = (await of(engine, namespace, known.id)).events[-1]
    assert (event.because, event.model) == ("language model", "a-model")
    assert event.saw == (lineage.Mention(f"memory:{known.id}", "superseded", "Ann lives in Paris."),)
