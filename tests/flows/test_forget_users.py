"""Forgetting sessions and users: in steps, while others write, and with what was made from their words."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid, NotFound
from recollect.flows.forgetting import counts as forget_counts
from recollect.flows.forgetting import forget, removal
from recollect.flows.gateway import Owner
from recollect.flows.kinds.target import NAMESPACE, SESSION, USER, Target
from recollect.flows.long_term.memory_requests import Change, Options
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from recollect.memory.windows import WindowConfig
from recollect.settings import Settings
from recollect.storage import erasure
from recollect.storage.sql import Query
from tests.flows.talk import say, say_all
from tests.flows.test_forget_proof import everything, sound
from tests.valkey import shared_url, with_redis

ANN = Target(USER, "ann")
NO_HISTORY = Query.named("test.no_history", "delete from memory_history where namespace = :namespace")
NO_BEGINNING = Query.named(
    "test.no_beginning", "delete from memory_history where namespace = :namespace and number = 1"
)

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (forget, forget_counts, removal):
        monkeypatch.setattr(module, "ITEMS_AT_ONCE", 4)
    monkeypatch.setattr(forget, "SESSIONS_AT_ONCE", 2)
    monkeypatch.setattr(erasure, "ERASED_AT_ONCE", 4)


class Stopped(Exception):
    """Whoever forgets is interrupted."""


async def fill(engine: Engine, namespace: str, user: str) -> None:
    for number in range(3):
        texts = [f"{user} fed {n} owls in barn {number}." for n in range(7)]
        await say_all(engine, namespace, user, *texts, session=f"{user}-{number}")
    for number in range(9):
        await engine.memories.add(namespace, f"{user} knows owl {number}.", "fact", MemoryScope(user))
    for number in range(5):
        await engine.gateway.put_resource(Owner(namespace, user), f"owl:{number}", f"Owl {number} of {user}.")


async def interrupted(engine: Engine, namespace: str, target: Target, steps: int) -> int:
    """Forget until so many steps are done; returns the rows that were said to be gone."""
    told: list[int] = []

    def progress(gone: int) -> None:
        told.append(gone)
        if len(told) == steps:
            raise Stopped

    with pytest.raises(Stopped):
        await engine.forget.forget(namespace, target, progress)
    assert told == sorted(told)
    return told[-1]


@pytest.mark.parametrize("steps", [1, 5, 11])
async def test_whoever_is_interrupted_finishes_with_a_second_call(
    engine: Engine, namespace: str, small_steps: None, steps: int
) -> None:
    await fill(engine, namespace, "bob")
    await engine.indexer.flush(namespace)
    before = await everything(engine, namespace)
    await fill(engine, namespace, "ann")
    await engine.indexer.flush(namespace)
    expected = await engine.forget.count(namespace, ANN)
    assert (expected.rows["messages"], expected.rows["memories"], expected.rows["resources"]) == (21, 9, 5)
    gone = await interrupted(engine, namespace, ANN, steps)
    assert await sound(engine, namespace)
    receipt = await engine.forget.forget(namespace, ANN)
    assert gone + receipt.total == expected.total
    after = await everything(engine, namespace)
    assert [row for row in after.pop("changes") if ",forget," not in row] == before.pop("changes")
    del after["change_counters"], before["change_counters"]
    assert after == before


async def test_a_namespace_is_finished_by_a_second_call(engine: Engine, namespace: str, small_steps: None) -> None:
    await fill(engine, namespace, "ann")
    await engine.indexer.flush(namespace)
    target = Target(NAMESPACE, namespace)
    expected = await engine.forget.count(namespace, target)
    gone = await interrupted(engine, namespace, target, 12)
    assert gone + (await engine.forget.forget(namespace, target)).total == expected.total
    assert not any((await everything(engine, namespace)).values())


async def test_others_write_and_index_meanwhile_and_keep_all(engine: Engine, namespace: str, small_steps: None) -> None:
    await fill(engine, namespace, "ann")
    answers = await asyncio.gather(
        engine.forget.forget(namespace, ANN),
        engine.forget.forget(namespace, Target(SESSION, "ann-1")),
        engine.indexer.flush(namespace),
        fill(engine, namespace, "bob"),
        return_exceptions=True,
    )
    # Of two who forget the same session, one may come too late.
    assert [
        answer for answer in answers if isinstance(answer, BaseException) and not isinstance(answer, NotFound)
    ] == []
    await engine.indexer.flush(namespace)
    assert await sound(engine, namespace)
    with pytest.raises(NotFound, match="No data for user ann"):
        await engine.forget.count(namespace, ANN)
    bob = (await engine.forget.count(namespace, Target(USER, "bob"))).rows
    assert (bob["messages"], bob["memories"], bob["resources"]) == (21, 9, 5)


async def test_an_insight_goes_with_the_last_message_it_was_made_from(engine: Engine, namespace: str) -> None:
    first, second = [
        await engine.cognition.store_dialogue(namespace, "talk", "ann", text) for text in ("Owls.", "Mice.")
    ]
    insight = (await engine.cognition.compress(namespace, "Owls eat mice.", [first.seq, second.seq])).insight.id
    await engine.graph.add_node(namespace, "Animal", "owl", vector_id=insight)
    receipt = await engine.forget.item(namespace, str(first.id))
    assert (receipt.rows, receipt.insights_left) == ({"messages": 1, "passages": 1}, (insight,))
    assert [found.id for found in await engine.cognition.newest_insights(namespace)] == [insight]
    receipt = await engine.forget.item(namespace, str(second.id))
    assert (receipt.rows, receipt.insights_left) == ({"insights": 1, "messages": 1, "passages": 2}, ())
    assert await engine.cognition.newest_insights(namespace) == []
    assert (await engine.graph.add_node(namespace, "Animal", "owl")).vector_id is None


async def test_what_is_only_counted_stays(engine: Engine, namespace: str) -> None:
    await fill(engine, namespace, "ann")
    item = await engine.cognition.update_working(namespace, "Feed the owls.")
    before = await everything(engine, namespace)
    names = (f"working:{item.added_id}", "session:ann-0", "user:ann")
    receipts = [await engine.forget.count(namespace, Target.named(name)) for name in names]
    assert [receipt.what for receipt in receipts] == list(names)
    assert receipts[0].rows == {"working_items": 1}
    assert await engine.forget.count(namespace, Target(NAMESPACE, namespace))
    assert await everything(engine, namespace) == before


async def test_working_memory_is_forgotten_by_id_without_a_trace_in_the_archive(engine: Engine, namespace: str) -> None:
    kept, archived = [(await engine.cognition.update_working(namespace, text)).added_id for text in ("Owls.", "Mice.")]
    stale = await engine.cognition.archive(namespace, archived)
    assert (await engine.forget.item(namespace, f"stale:{stale}")).rows == {"stale_items": 1}
    assert (await engine.forget.item(namespace, f"working:{kept}")).rows == {"working_items": 1}
    assert (await engine.cognition.working(namespace), await engine.cognition.stale(namespace)) == ([], [])


async def test_what_superseded_a_memory_is_not_in_its_history(engine: Engine, namespace: str) -> None:
    old, new = [
        (
            await engine.memories.add(namespace, text, "fact", MemoryScope(user_id="ann"), options=Options(key="home"))
        ).memory
        for text in ("Ann lives in Berlin.", "Ann lives in Lisbon.")
    ]
    assert (await engine.memories.get(namespace, str(old.id))).superseded_by == new.id
    await engine.forget.item(namespace, f"memory:{new.id}")
    assert "Lisbon" not in str(await everything(engine, namespace))


async def test_a_superseded_memory_without_a_history_is_its_users_all_the_same(engine: Engine, namespace: str) -> None:
    talk = MemoryScope(user_id="ann", session_id="talk")
    for text in ("Ann lives in Berlin.", "Ann lives in Lisbon."):
        await engine.memories.add(namespace, text, "fact", talk, options=Options(key="home"))
    async with engine.database.transaction(namespace) as tx:
        await tx.all(NO_HISTORY)
    assert (await engine.forget.count(namespace, Target(SESSION, "talk"))).rows["memories"] == 2
    assert (await engine.forget.forget(namespace, ANN)).rows["memories"] == 2


async def test_a_gap_in_a_history_is_no_obstacle(engine: Engine, namespace: str) -> None:
    memory = (await engine.memories.add(namespace, "Ann lives in Berlin.", "fact", MemoryScope(user_id="ann"))).memory
    await engine.memories.update(namespace, str(memory.id), Change("Ann lives in Lisbon."))
    async with engine.database.transaction(namespace) as tx:
        await tx.all(NO_BEGINNING)
    await engine.memories.delete(namespace, str(memory.id))
    assert [entry.event for entry in await engine.memories.history(namespace, str(memory.id))] == ["update", "delete"]


async def test_a_memory_that_is_deleted_or_superseded_is_forgotten_by_id(engine: Engine, namespace: str) -> None:
    memory = (await engine.memories.add(namespace, "Owls hoot.", "fact", MemoryScope("ann"))).memory
    await engine.memories.delete(namespace, str(memory.id))
    assert (await engine.forget.item(namespace, f"memory:{memory.id}")).rows == {"memory_history": 2}
    with pytest.raises(NotFound):
        await engine.memories.history(namespace, str(memory.id))


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        (Target(USER, "nobody"), "No data for user nobody"),
        (Target(SESSION, "nowhere"), "Unknown session nowhere"),
        (Target("insight", "12"), "No item has the id insight:12"),
    ],
    ids=["user", "session", "item"],
)
async def test_what_is_not_known_cannot_be_forgotten(
    engine: Engine, namespace: str, target: Target, sentence: str
) -> None:
    for call in (engine.forget.forget, engine.forget.count):
        with pytest.raises(NotFound, match=sentence):
            await call(namespace, target)


async def test_a_namespace_is_forgotten_by_its_own_name_only(engine: Engine, namespace: str) -> None:
    with pytest.raises(NotFound, match=f"No data in namespace {namespace}"):
        await engine.forget.forget(namespace, Target(NAMESPACE, namespace))
    with pytest.raises(Invalid, match="the request is for"):
        await engine.forget.forget(namespace, Target(NAMESPACE, "default"))
    with pytest.raises(Invalid, match="one of message"):
        Target.named(f"namespace:{namespace}")


@pytest.fixture
async def buffered(settings: Settings) -> AsyncIterator[Engine]:
    engine = await Engine.open(with_redis(settings, shared_url()))
    yield engine
    await engine.close()


async def test_buffers_in_redis_go_with_their_sessions(buffered: Engine, namespace: str) -> None:
    for user in ("ann", "bob"):
        await say(buffered, namespace, user, "Owls hoot.", session=f"of {user}")
        await buffered.windows.add(namespace, f"of {user}", [NewMessage("user", "Owls hoot at night.")])
    await buffered.windows.configure(namespace, "of {nobody}:x", WindowConfig("sliding_window", 3))
    assert (await buffered.forget.count(namespace, ANN)).rows["buffers"] == 1
    assert (await buffered.forget.forget(namespace, ANN)).rows["buffers"] == 1
    assert await buffered.windows.messages(namespace, "of ann") == []
    assert len(await buffered.windows.messages(namespace, "of bob")) == 1

    await buffered.windows.add(f"{namespace}-other", "of ann", [NewMessage("user", "Mice.")])
    target = Target(NAMESPACE, namespace)
    assert (await buffered.forget.count(namespace, target)).rows["buffers"] == 2
    assert (await buffered.forget.forget(namespace, target)).rows["buffers"] == 2
    assert await buffered.windows.messages(namespace, "of bob") == []
    assert len(await buffered.windows.messages(f"{namespace}-other", "of ann")) == 1
    assert (await buffered.forget.forget(f"{namespace}-other", Target(SESSION, "of ann"))).rows == {"buffers": 1}
