"""Memories that have not changed for long are pruned: never pinned ones, and exactly what was counted."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.forgetting import prune
from recollect.flows.forgetting.prune import not_changed_for
from recollect.flows.long_term.memory_requests import Change, Options
from recollect.memory.memories import MemoryScope
from recollect.storage.sql import Query

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

DAY = 86_400
AGES = Query.named(
    "test.ages",
    "update memories set created_at = created_at - interval '100 days', since = since - interval '100 days', "
    "updated_at = updated_at - interval '100 days' where namespace = :namespace and id = any(:ids::uuid[])",
)
ROWS = {
    table: Query.named(f"test.{table}", f"select count(*) as rows from {table} where namespace = :namespace")
    for table in ("memories", "memory_versions", "passages", "passage_words", "passage_queue", "passage_vectors")
}
TEXTS = Query.named(
    "test.texts",
    "select count(*) as rows from memory_history where namespace = :namespace "
    "and coalesce(old_memory, new_memory) is not null",
)

IN_THE_WAY = Query.named(
    "test.in_the_way",
    "select exists (select 1 from pg_locks where pg_backend_pid() = any(pg_blocking_pids(pid))) as is_so, :namespace",
)


async def add(
    engine: Engine, namespace: str, text: str, scope: MemoryScope, category: str = "fact", **options: object
) -> UUID:
    said = Options(**options)  # type: ignore[arg-type]
    return (await engine.memories.add(namespace, text, category, scope, options=said)).memory.id


async def age(engine: Engine, namespace: str, *ids: UUID) -> None:
    """As if a hundred days had passed since all that happened to these."""
    async with engine.database.transaction(namespace) as tx:
        await tx.all(AGES, ids=list(ids))


async def rows(engine: Engine, namespace: str) -> dict[str, int]:
    async with engine.database.reading(namespace) as db:
        return {table: (await db.one(statement))["rows"] for table, statement in ROWS.items()}


async def left(engine: Engine, namespace: str) -> set[str]:
    return {memory.text for memory in (await engine.memories.newest(namespace)).memories}


async def test_what_is_counted_is_what_goes(engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "PRUNED_AT_ONCE", 2)
    ann, bot = MemoryScope("ann"), MemoryScope(agent_id="bot")
    old = [await add(engine, namespace, f"Ann has {number} boats.", ann) for number in range(3)]
    old.append(await add(engine, namespace, "Ann likes boats.", ann, "preference"))
    old.append(await add(engine, namespace, "Bots have no boats.", bot))
    await engine.memories.update(namespace, str(old[0]), Change(text="Ann has no boats at all."))
    old.append(await add(engine, namespace, "Ann lives in Rome.", ann, key="home"))
    await add(engine, namespace, "Ann lives in Oslo.", ann, key="home")
    await age(engine, namespace, *old)
    before = await rows(engine, namespace)
    unchanged = not_changed_for(90 * DAY)
    counted = await engine.prune.count(namespace, unchanged)
    assert await rows(engine, namespace) == before
    told: list[int] = []
    pruned = await engine.prune.prune(namespace, unchanged, told.append)
    assert pruned == counted
    assert pruned.receipt.rows == {"memories": 6, "memory_versions": 2, "passages": 7}
    assert (pruned.by_user, pruned.by_category) == ({"ann": 5, None: 1}, {"fact": 5, "preference": 1})
    after = await rows(engine, namespace)
    assert {table: before[table] - after[table] for table in pruned.receipt.rows} == pruned.receipt.rows
    assert after["passage_words"] == after["passages"] == 1
    assert told == sorted(told)
    assert told[-1] == pruned.receipt.total
    assert await left(engine, namespace) == {"Ann lives in Oslo."}
    assert (await engine.prune.count(namespace, unchanged)).receipt.rows == {}


async def test_it_is_as_if_each_had_been_deleted(engine: Engine, namespace: str) -> None:
    memory = await add(engine, namespace, "Ann has a boat.", MemoryScope("ann"))
    await age(engine, namespace, memory)
    await engine.prune.prune(namespace, not_changed_for(90 * DAY))
    history = await engine.memories.history(namespace, str(memory))
    assert [(entry.event, entry.new_memory) for entry in history] == [("create", None), ("delete", None)]
    page = await engine.feed.page(namespace, 0)
    assert [(entry.change.event, entry.change.detail) for entry in page.entries] == [
        ("add", None),
        ("delete", {"because": "pruned"}),
    ]
    assert (await rows(engine, namespace)) == dict.fromkeys(ROWS, 0)
    async with engine.database.reading(namespace) as db:
        assert (await db.one(TEXTS))["rows"] == 0
    assert not (await engine.recall.recall(namespace, "Who has a boat?")).memories


async def test_a_pinned_memory_stays_however_old_it_is(engine: Engine, namespace: str) -> None:
    ann = MemoryScope("ann")
    pinned = await add(engine, namespace, "Ann is allergic to nuts.", ann, pinned=True)
    # Out of force, and still pinned.
    superseded = await add(engine, namespace, "Ann lives in Rome.", ann, pinned=True, key="home")
    await add(engine, namespace, "Ann lives in Oslo.", ann, key="home")
    await age(engine, namespace, pinned, superseded)
    assert (await engine.prune.count(namespace, not_changed_for(DAY))).receipt.rows == {}
    assert (await engine.prune.prune(namespace, not_changed_for(DAY))).receipt.rows == {}
    await engine.memories.undo(namespace, str(superseded))
    assert await left(engine, namespace) == {"Ann is allergic to nuts.", "Ann lives in Rome."}


async def test_whatever_happens_to_a_memory_keeps_it_young(engine: Engine, namespace: str) -> None:
    ann = MemoryScope("ann")
    changed = await add(engine, namespace, "Ann has a boat.", ann)
    undone = await add(engine, namespace, "Ann lives in Rome.", ann, key="home")
    superseded = await add(engine, namespace, "Ann lives in Oslo.", ann, key="home")
    await age(engine, namespace, changed, undone, superseded)
    await engine.memories.update(namespace, str(changed), Change(metadata={"seen": True}))
    await engine.memories.undo(namespace, str(undone))
    assert (await engine.prune.count(namespace, not_changed_for(90 * DAY))).receipt.rows == {}


async def test_a_memory_that_never_changed_is_as_old_as_what_it_tells_of(engine: Engine, namespace: str) -> None:
    said = datetime.now(UTC) - timedelta(days=100)
    await engine.memories.add(namespace, "Ann had a boat.", "fact", MemoryScope("ann"), at=said)
    await add(engine, namespace, "Ann has a boat.", MemoryScope("ann"))
    await engine.prune.prune(namespace, not_changed_for(90 * DAY))
    assert await left(engine, namespace) == {"Ann has a boat."}


async def test_filters_choose_among_the_old_ones(engine: Engine, namespace: str) -> None:
    scopes = (MemoryScope("ann"), MemoryScope("ann", "bot"), MemoryScope("bob", "bot"))
    old = [
        await add(engine, namespace, f"{category} number {number}", scope, category)
        for number, scope in enumerate(scopes)
        for category in ("fact", "episodic")
    ]
    elsewhere = await add(engine, f"{namespace}-other", "Ann has a boat.", MemoryScope("ann"))
    await age(engine, namespace, *old)
    await age(engine, f"{namespace}-other", elsewhere)
    unchanged = not_changed_for(90 * DAY, "ann", "bot", "fact")
    for filters, expected in (
        ((None, None, None), 6),
        (("ann", None, None), 4),
        ((None, "bot", None), 4),
        ((None, None, "fact"), 3),
        (("ann", "bot", "fact"), 1),
    ):
        counted = await engine.prune.count(namespace, not_changed_for(90 * DAY, *filters))
        assert counted.receipt.rows["memories"] == expected
    assert (await engine.prune.prune(namespace, unchanged)).receipt.rows["memories"] == 1
    assert "fact number 1" not in await left(engine, namespace)
    assert len(await left(engine, namespace)) == 5


async def test_what_is_pinned_while_it_is_about_to_go_stays(engine: Engine, namespace: str) -> None:
    old = [await add(engine, namespace, f"Ann has {number} boats.", MemoryScope("ann")) for number in range(2)]
    await age(engine, namespace, *old)
    async with engine.database.transaction(namespace) as tx:
        held = (await engine.capabilities.memories.lock(tx, [old[1]]))[old[1]]
        pruning = asyncio.create_task(engine.prune.prune(namespace, not_changed_for(90 * DAY)))
        async with asyncio.timeout(60):
            while not (await tx.one(IN_THE_WAY))["is_so"]:
                assert not pruning.done()
        moment = await engine.capabilities.memories.moment(tx, [held])
        await engine.capabilities.memories.change(tx, held, replace(held, pinned=True), moment)
    assert (await pruning).receipt.rows["memories"] == 1
    assert await left(engine, namespace) == {"Ann has 1 boats."}


@pytest.mark.parametrize(
    ("seconds", "filters", "sentence"),
    [
        (0, (), "The age must be greater than 0"),
        (float("nan"), (), "The age must be greater than 0"),
        (1e15, (), "before the year 1"),
        (float("inf"), (), "before the year 1"),
        (DAY, (None, None, "opinion"), "category must be one of"),
        (DAY, ("", None, None), "user_id is empty"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_for_is_refused(
    pooling: str, seconds: float, filters: tuple[str | None, ...], sentence: str
) -> None:
    with pytest.raises(Invalid, match=sentence):
        not_changed_for(seconds, *filters)
