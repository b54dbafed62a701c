"""Insights, episodes, dialogue and working memory at earlier moments."""

from datetime import UTC, datetime, timedelta

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.cognitive.cognition import InsightFilter
from recollect.memory.cognitive.working import CAPACITY, WorkingItem
from tests.flows.test_insights import without_model


def now() -> datetime:
    return datetime.now(UTC)


def contents(items: list[WorkingItem]) -> set[str]:
    return {item.content for item in items}


async def test_insights_are_those_that_were_stored_by_then(engine: Engine, namespace: str) -> None:
    said = await engine.cognition.store_dialogue(namespace, "s", "user", "The ferry leaves at seven.")
    moments, stored = [now()], []
    for text in ("The ferry leaves at seven", "The ferry leaves at eight"):
        stored.append((await engine.cognition.compress(namespace, text, [said.seq])).insight.id)
        moments.append(now())
    for moment, known in zip(moments, ([], stored[:1], stored), strict=True):
        hybrid = await engine.cognition.hybrid_search(namespace, "When does the ferry leave?", as_of=moment)
        assert {found.insight.id for found in hybrid.results} == set(known)
        wanted = InsightFilter(as_of=moment)
        found = await engine.cognition.insights(namespace, "ferry", wanted)
        assert {each.insight.id for each in found} == set(known)
        newest = await engine.cognition.newest_insights(namespace, wanted)
        assert [insight.id for insight in newest] == known[::-1]
    earlier = InsightFilter(created_before=moments[1], as_of=moments[2])
    assert [insight.id for insight in await engine.cognition.newest_insights(namespace, earlier)] == stored[:1]
    await engine.forget.item(namespace, f"insight:{stored[0]}")
    hybrid = await engine.cognition.hybrid_search(namespace, "ferry", as_of=moments[1])
    assert hybrid.results == []


@pytest.mark.parametrize("with_model", [True, False])
async def test_episodes_are_those_of_the_days_before_a_moment(engine: Engine, namespace: str, with_model: bool) -> None:
    first = await engine.cognition.store_episode(namespace, "how to anchor a boat", 0.5, "Look at the chart.")
    then = now()
    second = await engine.cognition.store_episode(namespace, "how to anchor a boat", 0.5, "Ask the harbour.")
    if not with_model:
        without_model(engine)

    async def found(moment: datetime | None) -> set[int]:
        lessons = await engine.cognition.similar_episodes(namespace, "how to anchor a boat", as_of=moment)
        return {each.episode.id for each in lessons}

    assert await found(then) == {first.episode.id}
    assert await found(None) == {first.episode.id, second.episode.id}
    if with_model:
        assert await found(then - timedelta(days=1)) == set()
        assert await found(datetime(1, 1, 2, tzinfo=UTC)) == set()


async def test_dialogue_is_what_had_been_said(engine: Engine, namespace: str) -> None:
    moments = [
        (await engine.cognition.store_dialogue(namespace, "s", "user", text)).created_at
        for text in ("one", "two", "three")
    ]
    said = [message.content for message in await engine.cognition.raw(namespace, as_of=moments[1])]
    assert said == ["two", "one"]
    said = [message.content for message in await engine.cognition.raw(namespace, end=moments[0], as_of=moments[1])]
    assert said == ["one"]


async def test_working_memory_is_what_was_in_mind(engine: Engine, namespace: str) -> None:
    moments = [now()]
    for number in range(CAPACITY + 2):
        await engine.cognition.update_working(namespace, f"thing {number}")
        moments.append(now())
    by_hand = next(item for item in await engine.cognition.working(namespace) if item.content == "thing 5")
    await engine.cognition.archive(namespace, by_hand.id)
    last = now()
    await engine.cognition.update_working(namespace, "thing 6", 0.9)
    for number, moment in enumerate(moments):
        held = range(max(0, number - CAPACITY), number)
        assert contents(await engine.cognition.working(namespace, moment)) == {f"thing {each}" for each in held}
        gone = await engine.cognition.stale(namespace, as_of=moment)
        assert [item.original_content for item in gone] == [f"thing {each}" for each in reversed(range(held.start))]
    assert by_hand in await engine.cognition.working(namespace, moments[-1])
    then = await engine.cognition.working(namespace, last)
    assert contents(then) == {f"thing {each}" for each in range(2, CAPACITY + 2) if each != 5}
    assert all(item.last_accessed <= last for item in then)


async def test_what_was_forgotten_of_working_memory_was_never_there(engine: Engine, namespace: str) -> None:
    kept = await engine.cognition.update_working(namespace, "a thing")
    archived = await engine.cognition.update_working(namespace, "an old thing")
    stale = await engine.cognition.archive(namespace, archived.added_id)
    then = now()
    await engine.forget.item(namespace, f"working:{kept.added_id}")
    await engine.forget.item(namespace, f"stale:{stale}")
    assert await engine.cognition.working(namespace, then) == []
    assert await engine.cognition.stale(namespace, as_of=then) == []


async def test_a_moment_in_the_future_is_refused(engine: Engine, namespace: str) -> None:
    future = now() + timedelta(days=1)
    for asked in (
        engine.cognition.hybrid_search(namespace, "ferry", as_of=future),
        engine.cognition.insights(namespace, "ferry", InsightFilter(as_of=future)),
        engine.cognition.newest_insights(namespace, InsightFilter(as_of=future)),
        engine.cognition.similar_episodes(namespace, "ferry", as_of=future),
        engine.cognition.raw(namespace, as_of=future),
        engine.cognition.working(namespace, future),
        engine.cognition.stale(namespace, as_of=future),
    ):
        with pytest.raises(Invalid, match="is in the future: pass a time in the past, or omit it for now"):
            await asked
