"""Memories that have expired leave the tables without anybody asking."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from recollect.engine import Engine
from recollect.errors import Unavailable
from recollect.flows.indexing import maintenance
from recollect.flows.long_term import memories
from recollect.flows.long_term.memory_requests import Change, Options
from recollect.memory.memories import MemoryScope, StoredMemory
from recollect.settings import Settings
from recollect.storage.sql import Query

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

EXPIRIES = Query.named(
    "test.expiries",
    "select distinct words.expires_at, passages.kind from passages "
    "join passage_words words on words.namespace = :namespace and words.id = passages.id "
    "where passages.namespace = :namespace",
)
PASS = [
    Query.named(
        f"test.pass_{table}",
        f"update {table} set expires_at = now() where namespace = :namespace and expires_at is not null",
    )
    for table in ("memories", "memory_versions", "passages", "passage_words")
]


@pytest.fixture
async def elsewhere(settings: Settings) -> AsyncIterator[Engine]:
    """A process whose own namespace is another, and that maintains nothing before it is told to."""
    other = settings.model_copy(update={"namespace": f"test-{uuid4()}", "indexer": False})
    engine = await Engine.open(other)
    yield engine
    await engine.close()


async def stored(engine: Engine, namespace: str, text: str, **options: object) -> StoredMemory:
    said = Options(**options)  # type: ignore[arg-type]
    return (await engine.memories.add(namespace, text, "fact", MemoryScope("ann"), options=said)).memory


async def let_pass(engine: Engine, namespace: str) -> None:
    """As if everything that expires had expired a moment ago."""
    async with engine.database.transaction(namespace) as tx:
        for statement in PASS:
            await tx.all(statement)


async def expiries(engine: Engine, namespace: str) -> dict[str, set[datetime | None]]:
    """When maintenance takes the passages of memories, and of what they were, to be over."""
    found: dict[str, set[datetime | None]] = {}
    async with engine.database.reading(namespace) as db:
        for row in await db.all(EXPIRIES):
            found.setdefault(row["kind"], set()).add(row["expires_at"])
    return found


async def followed(engine: Engine, namespace: str) -> list[tuple[str, object]]:
    """What happened up to the first deletion."""
    changes: list[tuple[str, object]] = []
    async with asyncio.timeout(60):
        async for page in engine.feed.follow(namespace, 0):
            changes += [(entry.change.event, entry.change.detail) for entry in page.entries]
            if changes[-1][0] == "delete":
                break
    return changes


async def test_a_server_removes_what_has_expired_where_it_never_wrote(
    elsewhere: Engine, settings: Settings, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "PERIOD_SECONDS", 0.05)
    memory = await stored(elsewhere, namespace, "The code is 4711.", expires_in=1)
    server = await Engine.open(settings.model_copy(update={"namespace": f"test-{uuid4()}"}))
    try:
        assert await followed(server, namespace) == [("add", None), ("delete", {"because": "expired"})]
    finally:
        await server.close()
    history = await elsewhere.memories.history(namespace, str(memory.id))
    assert [(entry.event, entry.old_memory, entry.new_memory) for entry in history] == [
        ("create", None, None),
        ("expire", None, None),
    ]


async def test_maintenance_knows_when_a_memory_expires_through_all_that_happens_to_it(
    elsewhere: Engine, namespace: str
) -> None:
    engine, soon = elsewhere, datetime.now(UTC) + timedelta(days=1)
    later = soon + timedelta(days=1)
    memory = await stored(engine, namespace, "Ann lives in Rome.", key="home", expires_at=soon)
    assert await expiries(engine, namespace) == {"memory": {soon}}
    await engine.memories.update(namespace, str(memory.id), Change(text="Ann lives in Bonn."))
    assert await expiries(engine, namespace) == {"memory": {soon}, "past_memory": {soon}}
    await engine.memories.update(namespace, str(memory.id), Change(details={"expires_at": later}))
    assert await expiries(engine, namespace) == {"memory": {later}, "past_memory": {later}}
    await stored(engine, namespace, "Ann lives in Oslo.", key="home")
    assert await expiries(engine, namespace) == {"memory": {None}, "past_memory": {later}}
    await engine.memories.undo(namespace, str(memory.id))
    assert await expiries(engine, namespace) == {"memory": {later}, "past_memory": {later, None}}
    await engine.memories.update(namespace, str(memory.id), Change(details={"expires_at": None}))
    assert await expiries(engine, namespace) == {"memory": {None}, "past_memory": {None}}


@pytest.mark.unindexed("it counts what is left to maintenance")
async def test_an_undone_memory_without_an_expiry_stays(elsewhere: Engine, namespace: str) -> None:
    memory = await stored(elsewhere, namespace, "Ann lives in Rome.", key="home", expires_in=3600)
    await stored(elsewhere, namespace, "Ann lives in Oslo.", key="home")
    await elsewhere.memories.undo(namespace, str(memory.id))
    await elsewhere.memories.update(namespace, str(memory.id), Change(details={"expires_at": None}))
    over = await stored(elsewhere, namespace, "Ann is away.", expires_in=3600)
    await let_pass(elsewhere, namespace)
    assert await elsewhere.maintenance.remove_expired(elsewhere.memories.sweep)
    kept = await elsewhere.memories.newest(namespace)
    assert memory.id in {each.id for each in kept.memories}
    assert over.id not in {each.id for each in kept.memories}


@pytest.mark.unindexed("it counts what is left to maintenance")
async def test_a_pass_is_bounded_and_the_next_one_goes_on(
    elsewhere: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memories, "SWEPT_AT_ONCE", 2)
    monkeypatch.setattr(maintenance, "BATCHES_EACH", 2)
    other = f"{namespace}-other"
    for number in range(5):
        await stored(elsewhere, namespace, f"Ann has {number} boats.", expires_in=3600)
    await stored(elsewhere, other, "Ann has a boat.", expires_in=3600)
    for each in (namespace, other):
        await let_pass(elsewhere, each)
    removed: list[tuple[str, int]] = []

    async def expire(swept: str) -> int:
        removed.append((swept, await elsewhere.memories.sweep(swept, once=True)))
        return removed[-1][1]

    assert not await elsewhere.maintenance.remove_expired(expire)
    assert removed == [(namespace, 2), (other, 1), (namespace, 2)]
    assert await elsewhere.maintenance.remove_expired(expire)
    assert removed[3:] == [(namespace, 1)]


@pytest.mark.unindexed("it counts what is left to maintenance")
async def test_a_namespace_that_fails_keeps_no_other_waiting(
    elsewhere: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(maintenance, "LOOKED_AT", 1)
    other = f"{namespace}-other"
    for each in (namespace, other):
        await stored(elsewhere, each, "Ann has a boat.", expires_in=3600)
        await let_pass(elsewhere, each)

    async def expire(swept: str) -> int:
        if swept == namespace:
            raise Unavailable("Its worker is away")
        return await elsewhere.memories.sweep(swept)

    assert await elsewhere.maintenance.remove_expired(expire)
    assert await expiries(elsewhere, other) == {}
    assert "Expired memories are removed later: Its worker is away" in caplog.text
    assert await elsewhere.maintenance.remove_expired(elsewhere.memories.sweep)
    assert await expiries(elsewhere, namespace) == {}
