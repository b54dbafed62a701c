"""Checkpoints of threads: put and read whole, shared values kept as long as a checkpoint has them, and no longer."""

import pytest

from recollect.engine import Engine
from recollect.errors import Conflict, Invalid
from recollect.flows.kinds.target import Target
from recollect.memory.checkpoints import NewCheckpoint, Packed, Place, StoredCheckpoint, TaskWrites, Which
from recollect.storage.sql import Query
from tests.flows.threads import put_thread

BODY = Packed("bytes", b"\x00\xff state")
LEFT = [
    Query.named(f"test.left_{table}", f"select 1 from {table} where namespace = :namespace")
    for table in ("checkpoints", "checkpoint_values", "checkpoint_writes")
]


async def put(engine: Engine, namespace: str, thread: str, number: int, **versions: str) -> None:
    """A checkpoint whose channels have these versions; a version's value is its name."""
    parent = str(number - 1) if number > 1 else None
    values = {channel: Packed("bytes", version.encode()) for channel, version in versions.items()}
    place = Place(thread, "", str(number))
    metadata = {"run_id": f"run {number}", "step": number}
    await engine.checkpoint_store.put(namespace, NewCheckpoint(place, parent, BODY, versions, metadata, values))


async def write(engine: Engine, namespace: str, thread: str, number: int, *said: str, replace: bool = False) -> None:
    writes = [(idx, "channel", Packed("bytes", text.encode())) for idx, text in enumerate(said)]
    written = TaskWrites(Place(thread, "", str(number)), "task", "", writes)
    await engine.checkpoint_store.put_writes(namespace, written, replace=replace)


async def newest(
    engine: Engine, namespace: str, which: Which | None = None, limit: int = 100
) -> list[StoredCheckpoint]:
    return await engine.checkpoint_store.newest(namespace, which or Which(), limit)


async def ids(engine: Engine, namespace: str, **which: object) -> list[str]:
    return [each.place.checkpoint_id for each in await newest(engine, namespace, Which(**which))]  # type: ignore[arg-type]


async def left(engine: Engine, namespace: str) -> tuple[int, ...]:
    async with engine.database.reading(namespace) as db:
        return tuple([len(await db.all(query)) for query in LEFT])


async def test_a_checkpoint_comes_back_with_values_that_earlier_ones_stored(engine: Engine, namespace: str) -> None:
    await put(engine, namespace, "t", 1, a="a1", b="b1")
    second = NewCheckpoint(Place("t", "", "2"), "1", BODY, {"a": "a1", "b": "b2"}, {}, {"b": Packed("bytes", b"b2")})
    await engine.checkpoint_store.put(namespace, second)
    await write(engine, namespace, "t", 2, "x", "y")
    latest, first = await newest(engine, namespace)
    assert {channel: value.body for channel, value in latest.values.items()} == {"a": b"a1", "b": b"b2"}
    assert (latest.body, latest.parent_id, first.parent_id) == (BODY, "1", None)
    assert [(each.task_id, each.value.body) for each in latest.writes] == [("task", b"x"), ("task", b"y")]
    assert first.writes == []


async def test_a_task_that_writes_again_keeps_the_first_unless_it_replaces(engine: Engine, namespace: str) -> None:
    await put(engine, namespace, "t", 1)
    await write(engine, namespace, "t", 1, "x")
    await write(engine, namespace, "t", 1, "y")
    assert [each.value.body for each in (await newest(engine, namespace))[0].writes] == [b"x"]
    await write(engine, namespace, "t", 1, "z", replace=True)
    assert [each.value.body for each in (await newest(engine, namespace))[0].writes] == [b"z"]


async def test_lists_are_filtered_and_go_on_behind_a_page(engine: Engine, namespace: str) -> None:
    for thread in ("t", "u"):
        for number in (1, 2, 3):
            await put(engine, namespace, thread, number)
    assert await ids(engine, namespace, thread_id="t") == ["3", "2", "1"]
    assert await ids(engine, namespace, thread_id="t", before="3") == ["2", "1"]
    assert await ids(engine, namespace, filter='{"step": 2}') == ["2", "2"]
    assert await ids(engine, namespace, thread_id="t", checkpoint_ns="inner") == []
    pages = [await newest(engine, namespace, limit=4)]
    pages.append(await newest(engine, namespace, Which(behind=pages[0][-1].place), limit=4))
    assert [each.place for page in pages for each in page] == [each.place for each in await newest(engine, namespace)]
    assert list(map(len, pages)) == [4, 2]


async def test_pruning_keeps_the_newest_and_what_belongs_to_it(engine: Engine, namespace: str) -> None:
    for thread in ("t", "u"):
        await put(engine, namespace, thread, 1, a="a1", b="b1")
        await write(engine, namespace, thread, 1, "x")
        await put(engine, namespace, thread, 2, a="a1", b="b2")
        await write(engine, namespace, thread, 2, "y")
    assert await engine.checkpoint_store.prune(namespace, ["t"], "keep_latest") == 1
    assert await left(engine, namespace) == (3, 5, 3)
    (kept,) = await newest(engine, namespace, Which(thread_id="t"))
    assert {value.body for value in kept.values.values()} == {b"a1", b"b2"}
    assert await engine.checkpoint_store.prune(namespace, ["t", "u"], "delete") == 3
    assert await left(engine, namespace) == (0, 0, 0)


async def test_a_thread_that_keeps_changes_since_a_snapshot_is_not_pruned(engine: Engine, namespace: str) -> None:
    await put(engine, namespace, "plain", 1)
    await put(engine, namespace, "plain", 2)
    counters = {"counters_since_delta_snapshot": {"a": [1, 1]}}
    await engine.checkpoint_store.put(namespace, NewCheckpoint(Place("t", "", "1"), None, BODY, {}, counters, {}))
    with pytest.raises(Conflict, match="Thread t keeps a channel as changes"):
        await engine.checkpoint_store.prune(namespace, ["plain", "t"], "keep_latest")
    assert len(await newest(engine, namespace)) == 3


async def test_the_checkpoints_of_a_run_go_with_what_only_they_had(engine: Engine, namespace: str) -> None:
    await put(engine, namespace, "t", 1, a="a1")
    await put(engine, namespace, "t", 2, a="a2")
    await write(engine, namespace, "t", 2, "x")
    assert await engine.checkpoint_store.delete_runs(namespace, ["run 2", "no run"]) == 1
    assert await left(engine, namespace) == (1, 1, 0)


async def test_a_copy_lives_on_when_the_original_is_forgotten(engine: Engine, namespace: str) -> None:
    await put_thread(engine, namespace, "t", "anna", "note")
    assert await engine.checkpoint_store.copy(namespace, "t", "copy") == 1
    receipt = await engine.forget.forget(namespace, Target("thread", "t"))
    assert dict(receipt.rows) == {"checkpoints": 1, "checkpoint_values": 1, "checkpoint_writes": 1}
    (copied,) = await newest(engine, namespace)
    assert (copied.place.thread_id, len(copied.values), len(copied.writes)) == ("copy", 1, 1)
    await engine.forget.forget(namespace, Target("user", "anna"))
    assert await left(engine, namespace) == (0, 0, 0)


async def test_what_cannot_be_kept_is_refused(engine: Engine, namespace: str) -> None:
    async def refused(checkpoint: NewCheckpoint, sentence: str) -> None:
        with pytest.raises(Invalid, match=sentence):
            await engine.checkpoint_store.put(namespace, checkpoint)

    place = Place("t", "", "1")
    await refused(NewCheckpoint(place._replace(thread_id=""), None, BODY, {}, {}, {}), "thread_id is empty")
    await refused(NewCheckpoint(place._replace(checkpoint_ns="x" * 501), None, BODY, {}, {}, {}), "longer than 500")
    await refused(NewCheckpoint(place._replace(thread_id="語" * 200), None, BODY, {}, {}, {}), "longer than 500")
    await refused(NewCheckpoint(place, None, BODY, {}, {}, {"a": BODY}), "channel 'a' has a value but no version")
    await refused(NewCheckpoint(place, None, BODY, {"a\x00": "1"}, {}, {}), "NUL")
    await refused(NewCheckpoint(place, None, BODY, {}, {"a": float("nan")}, {}), "metadata is not JSON")
    twice = TaskWrites(place, "task", "", [(0, "a", BODY), (0, "b", BODY)])
    with pytest.raises(Invalid, match="two writes of a task have the same idx"):
        await engine.checkpoint_store.put_writes(namespace, twice, replace=False)
