"""Long-term memories in time: what was in force then, what is true when, what replaced what, and what is gone for good.

At the end the same is asked of random histories: `python -m tests.oracle` runs many.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Literal
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect.engine import Engine
from recollect.errors import Conflict, Invalid, NotFound
from recollect.flows.long_term.memory_requests import Change, Chosen, Options
from recollect.flows.long_term.memory_results import Added
from recollect.flows.long_term.memory_writer import MemoryWriter
from recollect.inference.embedding.embedder import as_text
from recollect.memory.index.search import Scope
from recollect.memory.memories import MemoryScope, StoredMemory
from recollect.storage.database import Transaction
from recollect.storage.sql import Query
from tests.oracle.histories import PASS, History

ANN = MemoryScope("ann")
TICK = timedelta(microseconds=1)
ROWS = {
    table: Query.named(f"test.in_time.{table}", f"select count(*) from {table} where namespace = :namespace")
    for table in ("memories", "memory_versions", "passages")
}
WITHOUT_VECTORS = Query.named(
    "test.in_time.without_vectors", "delete from passage_vectors where namespace = :namespace returning 1"
)
QUEUED = Query.named(
    "test.in_time.queued",
    "insert into passage_queue (namespace, id, owner, counted) "
    "values (:namespace, :id::bigint, 'ann', true) returning 1",
)
IN_THE_WAY = Query.named(
    "test.in_time.in_the_way",
    "select exists (select 1 from pg_locks where pg_backend_pid() = any(pg_blocking_pids(pid))), :namespace",
)


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


def year(number: int) -> datetime:
    return datetime(number, 1, 1, tzinfo=UTC)


async def add(engine: Engine, namespace: str, text: str, scope: MemoryScope = ANN, **options: Any) -> Added:
    return await engine.memories.add(namespace, text, "fact", scope, options=Options(**options))


async def stored(engine: Engine, namespace: str, text: str, scope: MemoryScope = ANN, **options: Any) -> StoredMemory:
    return (await add(engine, namespace, text, scope, **options)).memory


async def listed(engine: Engine, namespace: str, **chosen: Any) -> list[str]:
    page = await engine.memories.newest(namespace, ANN, chosen=Chosen(**chosen))
    return [memory.text for memory in page.memories]


async def searched(engine: Engine, namespace: str, **chosen: Any) -> set[str]:
    found = await engine.memories.search(namespace, "where does Ann live", ANN, Chosen(**chosen))
    return {each.memory.text for each in found}


async def recalled(engine: Engine, namespace: str, **scope: Any) -> set[str]:
    found = await engine.recall.recall(namespace, "where does Ann live", Scope("ann", **scope), top_k=50)
    return {memory.text for memory in found.memories}


async def everywhere(engine: Engine, namespace: str, **when: Any) -> set[str]:
    """What list, search and recall answer, which is the same."""
    answers = [
        set(await listed(engine, namespace, **when)),
        await searched(engine, namespace, **when),
        await recalled(engine, namespace, **when),
    ]
    assert answers[0] == answers[1] == answers[2]
    return answers[0]


async def events(engine: Engine, namespace: str, memory: StoredMemory) -> list[str]:
    return [entry.event for entry in await engine.memories.history(namespace, str(memory.id))]


async def now(engine: Engine, namespace: str, memory: StoredMemory) -> StoredMemory:
    return await engine.memories.get(namespace, str(memory.id))


async def rows(engine: Engine, namespace: str) -> tuple[int, ...]:
    async with engine.database.reading(namespace) as db:
        return tuple([(await db.one(query))[0] for query in ROWS.values()])


async def waits_for(tx: Transaction, task: asyncio.Task[Any]) -> None:
    """Return when a task waits for a lock of this transaction, or has ended without."""
    async with asyncio.timeout(60):
        while not task.done() and not (await tx.one(IN_THE_WAY))[0]:
            await asyncio.sleep(0.02)


async def let_pass(engine: Engine, namespace: str, moment: datetime) -> None:
    for statement in PASS:
        async with engine.database.transaction(namespace) as tx:
            await tx.all(statement, moment=moment)


def tomorrow() -> datetime:
    return datetime.now(UTC) + timedelta(days=1)


async def test_a_new_memory_of_a_key_replaces_the_one_that_had_it(engine: Engine, namespace: str) -> None:
    rome = await stored(engine, namespace, "Ann lives in Rome", key="home")
    other = await stored(engine, namespace, "Ann lives with a cat")
    added = await add(engine, namespace, "Ann lives in Paris", key="home")
    assert added.superseded == (rome.id,)
    assert (await now(engine, namespace, rome)).superseded_by == added.memory.id
    assert await everywhere(engine, namespace) == {"Ann lives in Paris", other.text}
    assert await listed(engine, namespace, key="home") == ["Ann lives in Paris"]
    (*_, last) = await engine.memories.history(namespace, str(rome.id))
    assert last.detail == {"superseded_by": str(added.memory.id), "because": "key"}


async def test_a_key_is_of_its_exact_scope(engine: Engine, namespace: str) -> None:
    scopes = [ANN, MemoryScope("ann", "bot"), MemoryScope("ann", None, "talk"), MemoryScope("bob")]
    for scope in scopes:
        assert (await add(engine, namespace, "The home is in Rome", scope, key="home")).superseded == ()
    assert len((await engine.memories.newest(namespace)).memories) == len(scopes)


async def test_a_changed_key_takes_the_place_of_its_holder(engine: Engine, namespace: str) -> None:
    rome = await stored(engine, namespace, "Ann lives in Rome", key="home")
    paris = await stored(engine, namespace, "Ann lives in Paris")
    await engine.memories.update(namespace, str(paris.id), Change(details={"key": "home"}))
    assert (await now(engine, namespace, rome)).superseded_by == paris.id
    assert await everywhere(engine, namespace) == {"Ann lives in Paris"}


async def test_supersedes_replaces_what_it_names_and_nothing_of_another_scope(engine: Engine, namespace: str) -> None:
    rome = await stored(engine, namespace, "Ann lives in Rome")
    bobs = await stored(engine, namespace, "Bob lives in Rome", MemoryScope("bob"))
    with pytest.raises(Invalid, match="belongs to another scope"):
        await add(engine, namespace, "Ann lives in Paris", supersedes=[str(rome.id), str(bobs.id)])
    with pytest.raises(NotFound):
        await add(engine, namespace, "Ann lives in Paris", supersedes=[str(uuid4())])
    assert await everywhere(engine, namespace) == {"Ann lives in Rome"}
    added = await add(engine, namespace, "Ann lives in Paris", supersedes=[str(rome.id)])
    assert added.superseded == (rome.id,)
    with pytest.raises(Conflict, match="superseded by"):
        await add(engine, namespace, "Ann lives in Bonn", supersedes=[str(rome.id)])
    assert await everywhere(engine, namespace) == {"Ann lives in Paris"}


async def test_a_change_to_a_memory_that_is_not_as_it_was_seen_is_refused(engine: Engine, namespace: str) -> None:
    seen = await stored(engine, namespace, "Ann lives in Oslo.")
    with_key = (
        await engine.memories.update(namespace, str(seen.id), Change(details={"key": "home"}), seen.since)
    ).memory
    for change in (
        engine.memories.update(namespace, str(seen.id), Change("Ann lives in Bergen."), seen.since),
        engine.memories.delete(namespace, str(seen.id), if_since=seen.since),
        engine.memories.delete(namespace, str(seen.id), restore=True, if_since=seen.since),
        add(engine, namespace, "Ann lives in Bergen.", supersedes=[str(seen.id)], if_since=seen.since),
    ):
        with pytest.raises(Conflict, match="has changed since you looked at it"):
            await change
    assert await listed(engine, namespace) == ["Ann lives in Oslo."]
    await add(engine, namespace, "Ann lives in Bergen.", supersedes=[str(seen.id)], if_since=with_key.since)
    with pytest.raises(Conflict, match="has changed since you looked at it"):
        await engine.memories.undo(namespace, str(seen.id), with_key.since)
    assert await listed(engine, namespace) == ["Ann lives in Bergen."]


async def test_superseded_and_expiring_memories_can_be_listed(engine: Engine, namespace: str) -> None:
    soon, late = (datetime.now(UTC) + timedelta(days=days) for days in (1, 30))
    await add(engine, namespace, "Ann lives in Oslo.", key="home city", expires_at=soon)
    await add(engine, namespace, "Ann lives in Bergen.", key="home city", expires_at=soon)
    await add(engine, namespace, "Ann likes tea.", expires_at=late)
    await add(engine, namespace, "Ann likes fish.")
    in_a_week = datetime.now(UTC) + timedelta(days=7)
    assert await listed(engine, namespace, superseded=True) == ["Ann lives in Oslo."]
    assert await listed(engine, namespace, superseded=True, key="home town") == []
    assert await listed(engine, namespace, expires_before=in_a_week) == ["Ann lives in Bergen."]
    with pytest.raises(Invalid, match="as_of"):
        await listed(engine, namespace, superseded=True, as_of=datetime.now(UTC))


async def test_undo_brings_a_keyed_memory_back_in_place_of_the_present_one(engine: Engine, namespace: str) -> None:
    rome = await stored(engine, namespace, "Ann lives in Rome", key="home")
    paris = await stored(engine, namespace, "Ann lives in Paris", key="home")
    undone = (await engine.memories.undo(namespace, str(rome.id))).memory
    assert undone.superseded_by is None
    assert (await now(engine, namespace, paris)).superseded_by == rome.id
    assert await everywhere(engine, namespace) == {"Ann lives in Rome"}
    assert await everywhere(engine, namespace, as_of=undone.since - TICK) == {"Ann lives in Paris"}
    assert await events(engine, namespace, rome) == ["create", "supersede", "undo"]
    with pytest.raises(Invalid, match="nothing to undo"):
        await engine.memories.undo(namespace, str(rome.id))


async def test_undo_is_refused_if_another_says_the_same_by_now(engine: Engine, namespace: str) -> None:
    rome = await stored(engine, namespace, "Ann lives in Rome", key="home")
    await stored(engine, namespace, "Ann lives in Paris", key="home")
    again = await stored(engine, namespace, "Ann lives in Rome")
    with pytest.raises(Conflict, match=str(again.id)):
        await engine.memories.undo(namespace, str(rome.id))


async def test_every_question_about_the_past_has_the_answer_of_then(engine: Engine, namespace: str) -> None:
    first = await stored(engine, namespace, "Ann lives in Rome")
    second = (await engine.memories.update(namespace, str(first.id), Change(text="Ann lives in Paris"))).memory
    third = await stored(engine, namespace, "Ann lives in Bonn", supersedes=[str(first.id)])
    moments = {
        first.since - TICK: None,
        first.since: "Ann lives in Rome",
        second.since - TICK: "Ann lives in Rome",
        second.since: "Ann lives in Paris",
        third.since - TICK: "Ann lives in Paris",
    }
    for moment, text in moments.items():
        assert await everywhere(engine, namespace, as_of=moment) == ({text} if text else set())
        if text is None:
            with pytest.raises(NotFound, match="was known at"):
                await engine.memories.get(namespace, str(first.id), moment)
        else:
            then = await engine.memories.get(namespace, str(first.id), moment)
            assert (then.text, then.superseded_by) == (text, None)
    assert await everywhere(engine, namespace, as_of=third.since) == {"Ann lives in Bonn"}
    replaced = await engine.memories.get(namespace, str(first.id), third.since)
    assert (replaced.text, replaced.superseded_by) == ("Ann lives in Paris", third.id)


async def test_a_repeat_of_a_past_version_goes_by_the_id_of_its_memory(engine: Engine, namespace: str) -> None:
    made = [
        (await engine.memories.add(namespace, "Ann lives in Rome", category, ANN)).memory
        for category in ("fact", "semantic")
    ]
    for memory in made:
        await engine.memories.update(namespace, str(memory.id), Change(text=f"Ann has a {memory.category}"))
    found = await engine.recall.recall(namespace, "Rome", Scope("ann", as_of=made[1].since))
    (only,) = found.memories
    assert {only.id, *only.repeats} == {str(memory.id) for memory in made}


async def test_valid_at_asks_for_what_is_true_then(engine: Engine, namespace: str) -> None:
    await stored(engine, namespace, "Ann lives on Earth")
    await stored(engine, namespace, "Ann lives in Rome", valid_until=year(2021))
    await stored(engine, namespace, "Ann lives in Paris", valid_from=year(2021), valid_until=year(2023))
    expected = {
        year(1900): {"Ann lives in Rome"},
        year(2021) - TICK: {"Ann lives in Rome"},
        year(2021): {"Ann lives in Paris"},
        year(2023) - TICK: {"Ann lives in Paris"},
        year(2023): set(),
    }
    for moment, texts in expected.items():
        assert await everywhere(engine, namespace, valid_at=moment) == {"Ann lives on Earth", *texts}
    assert len(await everywhere(engine, namespace)) == 3


async def test_what_was_believed_then_of_another_time(engine: Engine, namespace: str) -> None:
    memory = await stored(engine, namespace, "Ann lives in Rome", valid_until=year(2021))
    changed = await engine.memories.update(namespace, str(memory.id), Change(details={"valid_until": None}))
    then = changed.memory.since - TICK
    assert await everywhere(engine, namespace, valid_at=year(2022)) == {"Ann lives in Rome"}
    assert await everywhere(engine, namespace, valid_at=year(2022), as_of=then) == set()


async def test_a_memory_that_ends_before_it_begins_is_refused(engine: Engine, namespace: str) -> None:
    with pytest.raises(Invalid, match="valid_until must be later"):
        await add(engine, namespace, "Ann lives in Rome", valid_from=year(2021), valid_until=year(2021))
    memory = await stored(engine, namespace, "Ann lives in Rome", valid_from=year(2021))
    with pytest.raises(Invalid, match="valid_until must be later"):
        await add(engine, namespace, "Ann lives in Rome", valid_until=year(2020))
    with pytest.raises(Invalid, match="valid_until must be later"):
        await engine.memories.update(namespace, str(memory.id), Change(details={"valid_until": year(2020)}))


@pytest.mark.parametrize("how", ["delete", "forget", "expire"])
async def test_erasure_is_stronger_than_history(engine: Engine, namespace: str, how: str) -> None:
    memory = await stored(engine, namespace, "Ann lives in Rome")
    moments = [memory.since]
    for text in ("Ann lives in Paris", "Ann lives in Bonn"):
        changed = await engine.memories.update(namespace, str(memory.id), Change(text=text))
        moments.append(changed.memory.since)
    if how == "delete":
        await engine.memories.delete(namespace, str(memory.id))
    elif how == "forget":
        await engine.forget.item(namespace, f"memory:{memory.id}")
    else:
        over = tomorrow()
        await engine.memories.update(namespace, str(memory.id), Change(details={"expires_at": over}))
        await let_pass(engine, namespace, over)
    exported = "".join([line async for line in engine.exporting.lines(namespace)])
    assert [city for city in ("Rome", "Paris", "Bonn") if city in exported] == []
    for moment in [*moments, None]:
        assert await everywhere(engine, namespace, as_of=moment) == set()
        with pytest.raises(NotFound):
            await engine.memories.get(namespace, str(memory.id), moment)
    await engine.memories.sweep(namespace)
    assert await rows(engine, namespace) == (0, 0, 0)
    if how == "forget":
        with pytest.raises(NotFound):
            await engine.memories.history(namespace, str(memory.id))
    else:
        history = await engine.memories.history(namespace, str(memory.id))
        assert history[-1].event == how
        assert {text for entry in history for text in (entry.old_memory, entry.new_memory)} == {None}


async def test_what_has_expired_is_gone_at_once_and_swept_later(engine: Engine, namespace: str) -> None:
    over = tomorrow()
    memory = await stored(engine, namespace, "Ann lives in Rome", expires_at=over, key="home")
    assert await everywhere(engine, namespace) == {"Ann lives in Rome"}
    await let_pass(engine, namespace, over)
    assert await everywhere(engine, namespace) == set()
    for refused in (
        engine.memories.get(namespace, str(memory.id)),
        engine.memories.update(namespace, str(memory.id), Change(text="Ann lives in Bonn")),
        engine.memories.undo(namespace, str(memory.id)),
        engine.memories.delete(namespace, str(memory.id)),
    ):
        with pytest.raises(NotFound):
            await refused
    assert (await rows(engine, namespace))[0] == 1
    assert await engine.memories.sweep(namespace) == 1
    assert await rows(engine, namespace) == (0, 0, 0)


async def test_what_has_expired_stands_in_nobodys_way(engine: Engine, namespace: str) -> None:
    paris = await stored(engine, namespace, "Ann lives in Paris")
    bonn = await stored(engine, namespace, "Ann lives in Bonn")
    await stored(engine, namespace, "Ann lives in Oslo", supersedes=[str(bonn.id)])
    over = tomorrow()
    await stored(engine, namespace, "Ann lives in Rome", expires_at=over, key="home")
    await stored(engine, namespace, "Ann lives in Bonn", expires_at=over)
    await let_pass(engine, namespace, over)
    changed = await engine.memories.update(
        namespace, str(paris.id), Change(text="Ann lives in Rome", details={"key": "home"})
    )
    await engine.memories.undo(namespace, str(bonn.id))
    assert changed.memory.key == "home"
    assert await everywhere(engine, namespace) == {"Ann lives in Rome", "Ann lives in Bonn", "Ann lives in Oslo"}


async def test_a_later_expiry_counts_for_all_that_a_memory_was(engine: Engine, namespace: str) -> None:
    soon = tomorrow()
    memory = await stored(engine, namespace, "Ann lives in Rome", expires_at=soon)
    changed = await engine.memories.update(
        namespace, str(memory.id), Change(text="Ann lives in Bonn", details={"expires_at": soon + timedelta(days=9)})
    )
    await let_pass(engine, namespace, soon)
    assert await everywhere(engine, namespace) == {"Ann lives in Bonn"}
    assert await everywhere(engine, namespace, as_of=changed.memory.since - TICK) == {"Ann lives in Rome"}


async def test_the_same_text_again_brings_its_options_along(engine: Engine, namespace: str) -> None:
    old = await stored(engine, namespace, "Ann lived in Rome", key="home")
    memory = await stored(engine, namespace, "Ann lives in Paris", valid_from=year(2020))
    merged = await add(engine, namespace, "ann lives in paris!", key="home", valid_until=year(2023))
    assert (merged.what, merged.memory.id, merged.superseded) == ("merged", memory.id, (old.id,))
    assert (merged.memory.key, merged.memory.valid_from, merged.memory.valid_until) == ("home", year(2020), year(2023))
    again = await add(engine, namespace, "Ann lives in Paris", key="home")
    assert (again.what, again.memory) == ("existing", merged.memory)
    before = await engine.memories.get(namespace, str(memory.id), merged.memory.since - TICK)
    assert (before.key, before.valid_until) == (None, None)


async def test_deleting_a_successor_leaves_or_restores_what_it_replaced(engine: Engine, namespace: str) -> None:
    rome = await stored(engine, namespace, "Ann lives in Rome", key="home")
    paris = await stored(engine, namespace, "Ann lives in Paris", key="home")
    bonn = await stored(engine, namespace, "Ann lives in Bonn", key="home")
    restored = await engine.memories.delete(namespace, str(bonn.id), restore=True)
    assert restored.restored == (paris.id,)
    assert await everywhere(engine, namespace) == {"Ann lives in Paris"}
    left = await engine.memories.delete(namespace, str(paris.id))
    assert (left.superseded, left.restored) == ((rome.id,), ())
    assert await everywhere(engine, namespace) == set()
    assert (await engine.memories.undo(namespace, str(rome.id))).memory.id == rome.id


async def test_of_two_memories_of_a_key_that_one_replaced_only_the_newer_is_restored(
    engine: Engine, namespace: str
) -> None:
    oslo = await stored(engine, namespace, "Ann lives in Oslo", key="home")
    moved = await stored(engine, namespace, "Ann travels", supersedes=[str(oslo.id)])
    rome = await stored(engine, namespace, "Ann lives in Rome", key="home")
    await add(engine, namespace, "Ann travels", supersedes=[str(rome.id)])
    deleted = await engine.memories.delete(namespace, str(moved.id), restore=True)
    assert (deleted.superseded, deleted.restored) == ((oslo.id,), (rome.id,))
    assert await everywhere(engine, namespace) == {"Ann lives in Rome"}


async def test_of_a_key_that_many_add_at_once_exactly_one_is_in_force(engine: Engine, namespace: str) -> None:
    added = await asyncio.gather(*(add(engine, namespace, f"Ann lives in room {n}", key="home") for n in range(24)))
    assert {each.what for each in added} == {"created"}
    (left,) = (await engine.memories.newest(namespace, ANN)).memories
    superseded: list[UUID] = [memory_id for each in added for memory_id in each.superseded]
    assert sorted(superseded) == sorted({each.memory.id for each in added} - {left.id})
    assert await everywhere(engine, namespace) == {left.text}


async def test_of_a_key_that_many_change_to_at_once_exactly_one_is_in_force(engine: Engine, namespace: str) -> None:
    made = [await stored(engine, namespace, f"Ann lives in room {n}") for n in range(8)]
    change = Change(details={"key": "home"})
    await asyncio.gather(*(engine.memories.update(namespace, str(memory.id), change) for memory in made))
    assert len(await everywhere(engine, namespace)) == 1


async def test_of_a_key_that_many_write_to_and_undo_at_once_nobody_is_turned_away(
    engine: Engine, namespace: str
) -> None:
    """Each locks the one that it brings back, then the one that has the key: in a circle, one of them is ended."""
    made = [await stored(engine, namespace, f"Ann lives in room {n}", key="home") for n in range(8)]

    async def undo(memory: StoredMemory) -> None:
        with suppress(Invalid):  # it is in force already
            await engine.memories.undo(namespace, str(memory.id))

    for turn in range(4):
        more = [add(engine, namespace, f"Ann lives in house {turn} {n}", key="home") for n in range(4)]
        await asyncio.gather(*more, *map(undo, made))
        assert len(await everywhere(engine, namespace)) == 1


@pytest.mark.unindexed("it is the indexer itself")
async def test_a_memory_that_changes_while_it_is_embedded_is_found_once(engine: Engine, namespace: str) -> None:
    memory = await stored(engine, namespace, "Ann lives in Rome")
    passages = engine.capabilities.passages
    embedder = await engine.namespace_models.embedder(namespace)
    assert embedder is not None
    async with engine.database.transaction(namespace) as tx:
        (passage,) = await passages.of_items(tx, "memory", [str(memory.id)])
        await tx.all(WITHOUT_VECTORS)
        await tx.all(QUEUED, id=passage)
    async with engine.database.transaction(namespace) as tx:
        # An indexer that has read the passage, and not stored its vector yet.
        claims = await passages.claim_some(tx, [passage], 1)
        change = Change(metadata={"mood": "calm"})
        changing = asyncio.create_task(engine.memories.update(namespace, str(memory.id), change))
        await waits_for(tx, changing)
        vectors = await embedder.embed_documents([claim.text for claim in claims])
        await passages.complete(tx, claims, embedder.model_id, list(map(as_text, vectors)))
    await changing
    found = await engine.memories.search(namespace, "where does Ann live", ANN)
    assert [each.memory.id for each in found] == [memory.id]


@pytest.mark.parametrize("how", ["delete", "forget"])
async def test_a_memory_that_changes_while_it_is_erased_leaves_no_past_version(
    engine: Engine, namespace: str, how: str
) -> None:
    memory = await stored(engine, namespace, "Ann lives in Rome.")
    memories, passages, notes = (getattr(engine.capabilities, name) for name in ("memories", "passages", "held"))
    writer = MemoryWriter(memories, passages, notes, engine._passage_writer)
    prepared = await engine._passage_writer.prepare(namespace, "Ann lives in Oslo.")
    async with engine.database.transaction(namespace) as tx:
        held = await engine.capabilities.memories.lock(tx, [memory.id])
        await writer.change(tx, held[memory.id], replace(memory, text="Ann lives in Oslo."), prepared)
        erasing = asyncio.create_task(
            engine.memories.delete(namespace, str(memory.id))
            if how == "delete"
            else engine.forget.item(namespace, f"memory:{memory.id}")
        )
        await waits_for(tx, erasing)
    await erasing
    assert await rows(engine, namespace) == (0, 0, 0)


@hypothesis_settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)
@given(random=st.randoms(use_true_random=False))
async def test_the_engine_agrees_with_a_simple_reference_on_random_histories(engine: Engine, random: Random) -> None:
    await History(engine, f"test-{uuid4()}", random).run(steps=10, questions=5)
