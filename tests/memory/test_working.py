"""Working memory: ten items, the least recently used makes room, critical ones last, nothing lost."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.engine import Engine
from recollect.errors import Invalid, NotFound
from recollect.memory.cognitive.working import CAPACITY, CRITICAL, Place, to_evict

BEGINNING = datetime(2025, 1, 1, tzinfo=UTC)


async def fill(engine: Engine, namespace: str, importance: float = 0.5) -> list[int]:
    return [
        (await engine.cognition.update_working(namespace, f"item {n}", importance)).added_id for n in range(CAPACITY)
    ]


async def contents(engine: Engine, namespace: str) -> list[str]:
    return [item.content for item in await engine.cognition.working(namespace)]


async def archived(engine: Engine, namespace: str) -> list[str]:
    return [item.original_content for item in await engine.cognition.stale(namespace)]


async def test_items_are_listed_the_last_accessed_first(engine: Engine, namespace: str) -> None:
    assert await contents(engine, namespace) == []
    for content in ("one", "two", "three"):
        update = await engine.cognition.update_working(namespace, content)
        assert (update.evicted_id, update.archived_id) == (None, None)
    items = await engine.cognition.working(namespace)
    assert [item.content for item in items] == ["three", "two", "one"]
    assert [item.importance for item in items] == [0.5, 0.5, 0.5]
    assert all(item.last_accessed == item.created_at for item in items)


async def test_the_eleventh_item_sends_the_least_recently_used_to_the_archive(engine: Engine, namespace: str) -> None:
    ids = await fill(engine, namespace)
    update = await engine.cognition.update_working(namespace, "the eleventh")
    assert update.evicted_id == ids[0]
    assert len(await contents(engine, namespace)) == CAPACITY
    assert "item 0" not in await contents(engine, namespace)
    (stale,) = await engine.cognition.stale(namespace)
    assert stale.id == update.archived_id
    assert (stale.original_content, stale.importance, stale.reason) == ("item 0", 0.5, "LRU_EVICTION")


async def test_storing_the_same_again_refreshes_it(engine: Engine, namespace: str) -> None:
    ids = await fill(engine, namespace)
    update = await engine.cognition.update_working(namespace, "item 0", 0.7)
    assert update.added_id == ids[0]
    assert update.evicted_id is None
    first = (await engine.cognition.working(namespace))[0]
    assert (first.content, first.importance) == ("item 0", 0.7)
    assert first.last_accessed > first.created_at
    assert (await engine.cognition.update_working(namespace, "new")).evicted_id == ids[1]


async def test_storing_the_same_again_without_an_importance_keeps_its_own(engine: Engine, namespace: str) -> None:
    await engine.cognition.update_working(namespace, "the deadline", 0.9)
    await engine.cognition.update_working(namespace, "the deadline")
    (item,) = await engine.cognition.working(namespace)
    assert item.importance == 0.9


async def test_an_item_of_no_importance_takes_the_place_of_no_critical_one(engine: Engine, namespace: str) -> None:
    for number in range(CAPACITY):
        await engine.cognition.update_working(namespace, f"critical {number}", 0.9)
    update = await engine.cognition.update_working(namespace, "small talk", 0.0)
    assert update.evicted_id == update.added_id
    assert "small talk" not in await contents(engine, namespace)
    (stale,) = await engine.cognition.stale(namespace)
    assert (stale.id, stale.original_content) == (update.archived_id, "small talk")


async def test_a_critical_item_outlasts_those_used_after_it(engine: Engine, namespace: str) -> None:
    await engine.cognition.update_working(namespace, "critical", 0.81)
    await engine.cognition.update_working(namespace, "just not critical", 0.8)
    for number in range(20):
        await engine.cognition.update_working(namespace, f"item {number}")
    assert "critical" in await contents(engine, namespace)
    assert "just not critical" not in await contents(engine, namespace)


async def test_of_ten_critical_items_the_least_important_goes(engine: Engine, namespace: str) -> None:
    for number in range(CAPACITY):
        await engine.cognition.update_working(namespace, f"item {number}", 0.85 if number in (4, 6) else 0.95)
    await engine.cognition.update_working(namespace, "critical", 1.0)
    assert await archived(engine, namespace) == ["item 4"]


async def test_fifty_writers_at_once_leave_ten_items_and_archive_each_of_the_others_once(
    engine: Engine, namespace: str
) -> None:
    updates = await asyncio.gather(*(engine.cognition.update_working(namespace, f"item {n}") for n in range(50)))
    kept = {item.id for item in await engine.cognition.working(namespace)}
    stale = await engine.cognition.stale(namespace, limit=1000)
    evicted = [update.evicted_id for update in updates if update.evicted_id is not None]
    assert len(kept) == CAPACITY
    assert len(evicted) == len(set(evicted)) == 40
    assert kept | set(evicted) == {update.added_id for update in updates}
    assert {item.id for item in stale} == {update.archived_id for update in updates} - {None}
    said = [*await contents(engine, namespace), *(item.original_content for item in stale)]
    assert sorted(said) == sorted(f"item {n}" for n in range(50))


async def test_many_writers_of_the_same_content_make_one_item(engine: Engine, namespace: str) -> None:
    updates = await asyncio.gather(*(engine.cognition.update_working(namespace, "the same") for _ in range(20)))
    assert len({update.added_id for update in updates}) == 1
    assert await contents(engine, namespace) == ["the same"]


async def test_an_item_can_be_archived_by_hand_once(engine: Engine, namespace: str) -> None:
    update = await engine.cognition.update_working(namespace, "done with it", 0.9)
    archived_id = await engine.cognition.archive(namespace, update.added_id)
    (stale,) = await engine.cognition.stale(namespace)
    assert (stale.id, stale.original_content, stale.reason) == (archived_id, "done with it", "MANUAL_ARCHIVE")
    assert await contents(engine, namespace) == []
    for unknown in (update.added_id, 0, -1, 2**70):
        with pytest.raises(NotFound, match=f"no item {unknown}"):
            await engine.cognition.archive(namespace, unknown)
    with pytest.raises(Invalid, match="item_id"):
        await engine.cognition.archive(namespace, True)


async def test_the_archive_is_read_by_reason_importance_and_number(engine: Engine, namespace: str) -> None:
    ids = await fill(engine, namespace, 0.4)
    await engine.cognition.archive(namespace, ids[9])
    for content, importance in (("a", 0.6), ("b", 0.7), ("c", 0.2)):
        await engine.cognition.update_working(namespace, content, importance)
    stale = engine.cognition.stale
    assert [item.original_content for item in await stale(namespace)] == ["item 1", "item 0", "item 9"]
    assert len(await stale(namespace, reason="LRU_EVICTION")) == 2
    assert len(await stale(namespace, reason="MANUAL_ARCHIVE", days_back=1)) == 1
    assert len(await stale(namespace, importance_min=0.4)) == 3
    assert await stale(namespace, importance_min=0.5) == []
    assert [item.original_content for item in await stale(namespace, limit=1)] == ["item 1"]


async def test_namespaces_have_working_memories_of_their_own(engine: Engine, namespace: str) -> None:
    other = f"test-{uuid4()}"
    ids = await fill(engine, namespace)
    await engine.cognition.update_working(other, "item 0")
    assert await contents(engine, other) == ["item 0"]
    with pytest.raises(NotFound):
        await engine.cognition.archive(other, ids[0])
    assert len(await contents(engine, namespace)) == CAPACITY
    assert await archived(engine, other) == []


PLACES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1000)), min_size=1, max_size=CAPACITY).map(
    lambda drawn: [Place(n, worth, BEGINNING + timedelta(seconds=age)) for n, (worth, age) in enumerate(drawn)]
)


@given(PLACES)
def test_whatever_is_in_mind_the_right_one_goes(places: list[Place]) -> None:
    gone = next(place for place in places if place.id == to_evict(places))
    ordinary = [place for place in places if place.importance <= CRITICAL]
    if ordinary:
        assert gone in ordinary
        assert all(gone.last_accessed <= place.last_accessed for place in ordinary)
    else:
        assert all((gone.importance, gone.last_accessed) <= (p.importance, p.last_accessed) for p in places)
