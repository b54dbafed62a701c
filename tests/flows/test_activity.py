"""Writes and recalls over time: of all processes together, and no recall waits for its count."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from recollect import origin
from recollect.engine import Engine
from recollect.errors import Invalid, NotFound, Unavailable
from recollect.flows.accounts import activity
from recollect.flows.accounts.activity import MAX_DAYS, MAX_HOURS, Activity, Period
from recollect.flows.kinds.target import NAMESPACE, Target
from recollect.inference.embedding.embedders import Embedders, LocalModels
from recollect.memory.accounts.activity import Recalls
from recollect.settings import Settings
from recollect.storage.sql import Query
from recollect.tasks import in_thread
from tests.flows.talk import say, say_all
from tests.waiting import wait_until

one_pooling = pytest.mark.parametrize("pooling", ["session"], indirect=True)

STORED = Query.named(
    "test.stored", "select hour, recalls, degraded, failed from activity where namespace = :namespace order by hour"
)
CHANGES = Query.named(
    "test.changes",
    "insert into changes (namespace, number, at, event, kind, item_id, door) "
    "select :namespace, c.number, c.at, 'add', 'memory', 'm', 'library' "
    "from unnest(:numbers::bigint[], :times::timestamptz[]) as c (number, at)",
)
COUNTER = Query.named("test.counter", "insert into change_counters (namespace, last) values (:namespace, :last)")


def this_hour() -> datetime:
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


def total(periods: Sequence[Period]) -> tuple[int, int, int, int]:
    """Of all periods: a test may run from one hour to the next."""
    return (
        sum(each.writes for each in periods),
        sum(each.recalls for each in periods),
        sum(each.degraded for each in periods),
        sum(each.failed for each in periods),
    )


async def stored(engine: Engine, namespace: str) -> list[tuple[datetime, int, int, int]]:
    async with engine.database.reading(namespace) as db:
        return [tuple(row) for row in await db.all(STORED)]


async def change(engine: Engine, namespace: str, *hours_ago: float | None) -> None:
    """Changes numbered from 1; None is one that was erased."""
    now = this_hour()
    kept = [(number, ago) for number, ago in enumerate(hours_ago, 1) if ago is not None]
    async with engine.database.transaction(namespace) as tx:
        times = [now - timedelta(hours=ago) for _, ago in kept]
        await tx.all(CHANGES, numbers=[number for number, _ in kept], times=times)
        await tx.all(COUNTER, last=len(hours_ago))


async def test_what_two_processes_count_is_added_up(engine: Engine, namespace: str, settings: Settings) -> None:
    await say_all(engine, namespace, "ann", "The ferry leaves at nine.", "We sold the boat.")
    await say(engine, namespace, "ann", "The dog is called Rex.")
    other = await Engine.open(settings)
    for each in (engine, engine, other):
        assert (await each.recall.recall(namespace, "When does the ferry leave?")).memories
    await engine.cognition.hybrid_search(namespace, "the ferry")
    await asyncio.gather(other.close(), engine.activity.flush())
    # Two turns are two writes.
    assert total(await engine.activity.report(namespace)) == (2, 4, 0, 0)
    assert total(await engine.activity.report(namespace, days=30)) == (2, 4, 0, 0)
    assert total(await engine.activity.report(f"{namespace}-other")) == (0, 0, 0, 0)


@one_pooling
async def test_degraded_and_failed_recalls_are_counted_apart_and_refused_ones_not_at_all(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(engine, namespace, "ann", "The ferry leaves at nine.")
    monkeypatch.setattr(engine.namespace_models, "embedders", Embedders(LocalModels(None), engine.providers, "local"))
    assert (await engine.recall.recall(namespace, "When does the ferry leave?")).degraded
    with pytest.raises(Unavailable):
        await engine.recall.recall(namespace, "Who sold the boat?")
    with pytest.raises(Invalid):
        await engine.recall.recall(namespace, "When does the ferry leave?", top_k=0)
    with pytest.raises(NotFound):
        await engine.recall.recall(namespace, "When does the ferry leave?", namespaces=[f"{namespace}-nothing"])
    await engine.activity.flush()
    assert total(await engine.activity.report(namespace)) == (1, 0, 1, 1)


@one_pooling
async def test_recalls_of_those_who_may_only_read_are_counted(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "ann", "The ferry leaves at nine.")
    with origin.acting("rest", role="read"):
        await engine.recall.recall(namespace, "When does the ferry leave?")
        await engine.activity.flush()
    assert total(await engine.activity.report(namespace)) == (1, 1, 0, 0)


@one_pooling
async def test_every_hour_has_its_writes(engine: Engine, namespace: str) -> None:
    await change(engine, namespace, 200, 50, 2.5, 2.1, 1.9, 1.5, 1, 0)
    periods = await engine.activity.report(namespace, hours=4)
    assert [each.start for each in periods] == [this_hour() - timedelta(hours=ago) for ago in (3, 2, 1, 0)]
    assert [each.writes for each in periods] == [2, 2, 1, 1]
    assert sum(each.writes for each in await engine.activity.report(namespace, hours=MAX_HOURS)) == 7
    assert sum(each.writes for each in await engine.activity.report(namespace, days=MAX_DAYS)) == 8


@one_pooling
@pytest.mark.parametrize(
    ("hours_ago", "writes"),
    [
        ([3.5, *[None] * 9, -0.5], [2, 2, 2, 3]),
        ([None, None, 1.5, 0], [0, 1, 0, 1]),
        ([None, None], [0, 0, 0, 0]),
    ],
    ids=["spread evenly between two", "not before the first", "not if none is left"],
)
async def test_erased_changes_count_where_they_may_have_been(
    engine: Engine, namespace: str, hours_ago: list[float | None], writes: list[int]
) -> None:
    await change(engine, namespace, *hours_ago)
    assert [each.writes for each in await engine.activity.report(namespace, hours=4)] == writes


@one_pooling
async def test_counts_wait_while_the_database_is_away_and_only_so_many(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (namespace, f"{namespace}-other"):
        await say(engine, place, "ann", "The ferry leaves at nine.")
    async with engine.database.alone() as connection:
        broken = namespace.replace("-", "_")
        await connection.execute(
            f"alter table activity add constraint {broken} check (namespace <> '{namespace}') not valid"
        )
    try:
        engine.activity.count(namespace, Recalls(recalls=2))
        engine.activity.count(f"{namespace}-other", Recalls(recalls=5))
        with pytest.raises(Exception, match=broken):
            await engine.activity.flush()
        assert len(await stored(engine, f"{namespace}-other")) == 1
    finally:
        async with engine.database.alone() as connection:
            await connection.execute(f"alter table activity drop constraint {broken}")
    monkeypatch.setattr("recollect.flows.accounts.activity.MAX_NAMESPACES", 1)
    for place in (namespace, f"{namespace}-other"):
        engine.activity.count(place, Recalls(failed=1))
    await engine.activity.flush()
    assert total(await engine.activity.report(namespace)) == (1, 2, 0, 1)
    assert total(await engine.activity.report(f"{namespace}-other")) == (1, 5, 0, 0)


@one_pooling
async def test_what_is_older_than_ninety_days_goes(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "ann", "The ferry leaves at nine.")
    now = this_hour()
    async with engine.database.transaction(namespace) as tx:
        days = {now - timedelta(days=ago): Recalls(recalls=ago) for ago in (300, 91, 89)}
        await engine.capabilities.recall_counts.add(tx, days)
    engine.activity.count(namespace, Recalls(recalls=1))
    await engine.activity.flush()
    assert [row[1] for row in await stored(engine, namespace)] == [89, 1]


@one_pooling
async def test_what_is_too_old_is_looked_for_once_an_hour(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def flushed() -> list[int]:
        async with engine.database.transaction(namespace) as tx:
            await engine.capabilities.recall_counts.add(tx, {this_hour() - timedelta(days=91): Recalls(recalls=91)})
        engine.activity.count(namespace, Recalls(recalls=1))
        await engine.activity.flush()
        return [row[1] for row in await stored(engine, namespace)]

    await say(engine, namespace, "ann", "The ferry leaves at nine.")
    assert 91 not in await flushed()
    assert 91 in await flushed()
    monkeypatch.setattr(activity, "CLEAN_SECONDS", 0.0)
    assert 91 not in await flushed()


@one_pooling
async def test_a_namespace_without_anything_to_recall_has_no_counts(engine: Engine, namespace: str) -> None:
    await engine.recall.recall(namespace, "When does the ferry leave?")
    await engine.activity.flush()
    assert await stored(engine, namespace) == []
    await say(engine, namespace, "ann", "The ferry leaves at nine.")
    await engine.recall.recall(namespace, "When does the ferry leave?")
    await engine.activity.flush()
    await engine.recall.recall(namespace, "When does the ferry leave?")
    await engine.forget.forget(namespace, Target(NAMESPACE, namespace))
    await engine.activity.flush()
    assert await stored(engine, namespace) == []
    assert total(await engine.activity.report(namespace)) == (0, 0, 0, 0)


@one_pooling
async def test_the_background_saves_counts_by_itself(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(engine, namespace, "ann", "The ferry leaves at nine.")
    monkeypatch.setattr("recollect.flows.accounts.activity.FLUSH_SECONDS", 0.01)
    activity = Activity(engine.database, engine.capabilities.recall_counts, engine.capabilities.changes)
    activity.start()
    activity.count(namespace, Recalls(recalls=1))
    await in_thread(wait_until, lambda: not activity._unsaved, "the count is saved")
    await activity.close()
    assert len(await stored(engine, namespace)) == 1


@one_pooling
@pytest.mark.parametrize(
    "asked", [{"hours": 0}, {"hours": MAX_HOURS + 1}, {"days": MAX_DAYS + 1}, {"hours": 1, "days": 1}]
)
async def test_only_so_much_is_shown_at_once(engine: Engine, namespace: str, asked: dict[str, int]) -> None:
    with pytest.raises(Invalid):
        await engine.activity.report(namespace, **asked)
