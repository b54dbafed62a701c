"""Decay: with a half-life, what is older ranks lower; without one, nothing changes."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.long_term.memory_requests import Change, Options
from recollect.flows.remember import Turn
from recollect.flows.search.ranking import Parts, Ranked, decayed
from recollect.flows.search.recall import MAX_HALF_LIFE_DAYS
from recollect.flows.search.recollection import Memory, Recollection
from recollect.memory.index.search import Nominee, Scope
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
QUESTION = "Where is the spare key?"
TEXT = "The spare key is under the blue flowerpot."


async def say(engine: Engine, namespace: str, user: str, at: datetime, text: str = TEXT) -> None:
    message = NewMessage("user", text, at=at)
    await engine.remember.turn(namespace, Turn(f"talk of {user}", (message,), owner_if_new=user))


async def keep(engine: Engine, namespace: str, category: str, at: datetime, *, pinned: bool = False) -> str:
    options = Options(pinned=pinned)
    added = await engine.memories.add(namespace, TEXT, category, MemoryScope("ann"), at=at, options=options)
    return str(added.memory.id)


async def ask(engine: Engine, namespace: str, scope: Scope | None = None, **options: Any) -> Recollection:
    await engine.indexer.flush(namespace)
    asked: dict[str, Any] = {"now": NOW, "explain": True} | options
    return await engine.recall.recall(namespace, QUESTION, scope, **asked)


def parts(memory: Memory) -> Parts:
    assert memory.explanation is not None
    return memory.explanation.parts


def users(found: Recollection) -> list[str]:
    return [memory.user_id for memory in found.memories]


async def test_of_equal_texts_the_newer_one_comes_first(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "old", NOW - 60 * DAY)
    await say(engine, namespace, "new", NOW - DAY)
    assert users(await ask(engine, namespace)) == ["old", "new"]
    assert users(await ask(engine, namespace, half_life_days=30)) == ["new", "old"]


async def test_a_score_halves_with_each_half_life_and_its_parts_add_up(engine: Engine, namespace: str) -> None:
    for user, days in (("today", 0), ("month", 30), ("quarter", 90), ("tomorrow", -1)):
        await say(engine, namespace, user, NOW - days * DAY)
    plain = {memory.user_id: memory for memory in (await ask(engine, namespace)).memories}
    found = await ask(engine, namespace, half_life_days=30)
    left = {"today": 1.0, "month": 0.5, "quarter": 0.125, "tomorrow": 1.0}
    for memory in found.memories:
        before = plain[memory.user_id].score
        assert memory.score == pytest.approx(before * left[memory.user_id])
        assert parts(memory).decay == pytest.approx(memory.score - before)
        assert parts(memory).decay <= 0
        assert parts(memory).total == pytest.approx(memory.score)
        assert parts(memory)._replace(decay=0.0) == parts(plain[memory.user_id])
    assert len(found.memories) == len(left)


async def test_relevance_and_whether_it_is_answered_stay_as_they_are(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "old", NOW - 400 * DAY)
    await say(engine, namespace, "new", NOW - DAY, "We painted the fence green.")
    plain, found = await ask(engine, namespace), await ask(engine, namespace, half_life_days=1)
    assert users(plain) == ["old", "new"]
    assert users(found) == ["new", "old"]
    assert {each.id: each.relevance for each in found.memories} == {each.id: each.relevance for each in plain.memories}
    assert {each.id: each.similarity for each in found.memories} == {
        each.id: each.similarity for each in plain.memories
    }
    assert found.answered == plain.answered


async def test_without_a_half_life_nothing_decays(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "old", NOW - 400 * DAY)
    await say(engine, namespace, "new", NOW - DAY)
    found = await ask(engine, namespace)
    assert found == await ask(engine, namespace, half_life_days=None)
    assert [parts(memory).decay for memory in found.memories] == [0, 0]


async def test_what_decays_to_nothing_keeps_its_order(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "worse", NOW - 900 * DAY, "We painted the fence green.")
    await say(engine, namespace, "better", NOW - 900 * DAY)
    found = await ask(engine, namespace, half_life_days=1e-300)
    assert users(found) == ["better", "worse"]
    assert [memory.score for memory in found.memories] == [0, 0]


def test_a_score_below_zero_is_not_raised() -> None:
    told = Nominee(
        1, "message", "1", 0, "ann", None, None, None, None, None, None, None, NOW - DAY, TEXT, None, 0.0, None
    )
    low = Ranked(told, Parts(*[0.0] * len(Parts._fields)), -2.0)
    high = Ranked(told._replace(id=2), low.signals, 1.0)
    assert decayed([high, low], 1, NOW, ()) == [replace(high, score=0.5, decay=-0.5), low]


async def test_age_counts_from_the_end_of_the_time_that_is_asked_about(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "ann", NOW - 30 * DAY)
    before = (await ask(engine, namespace)).memories[0].score
    for scope in (Scope(until=NOW), Scope(as_of=NOW)):
        (found,) = (await ask(engine, namespace, scope, now=None, half_life_days=30)).memories
        assert found.score == pytest.approx(before / 2)
    # By the clock it is older, whatever the date of this run is.
    (found,) = (await ask(engine, namespace, now=None, half_life_days=30)).memories
    assert found.score < before / 2


async def test_pinned_memories_do_not_age(engine: Engine, namespace: str) -> None:
    pinned = await keep(engine, namespace, "fact", NOW - 400 * DAY, pinned=True)
    older = await keep(engine, namespace, "semantic", NOW - 300 * DAY)
    newer = await keep(engine, namespace, "episodic", NOW - 20 * DAY)
    scope = Scope("ann")
    found = await ask(engine, namespace, scope, fold=False, half_life_days=10)
    assert [memory.id for memory in found.memories] == [pinned, newer, older]
    assert parts(found.memories[0]).decay == 0
    assert all(parts(memory).decay < 0 for memory in found.memories[1:])
    searched = await engine.memories.search(namespace, QUESTION, MemoryScope("ann"), half_life_days=10)
    assert [str(hit.memory.id) for hit in searched] == [pinned, newer, older]
    plain = await engine.memories.search(namespace, QUESTION, MemoryScope("ann"))
    assert [str(hit.memory.id) for hit in plain] == [pinned, older, newer]
    # What a search of long-term memory calls the score is how similar the texts are.
    assert {hit.score for hit in searched} == {hit.score for hit in plain}


async def test_a_past_version_of_a_pinned_memory_does_not_age_either(engine: Engine, namespace: str) -> None:
    memory_id = await keep(engine, namespace, "fact", NOW - 400 * DAY, pinned=True)
    then = (await engine.memories.get(namespace, memory_id)).since
    await engine.memories.update(namespace, memory_id, Change("The spare key is gone."))
    (found,) = (await ask(engine, namespace, Scope("ann", as_of=then), half_life_days=10)).memories
    assert (found.id, found.text, parts(found).decay) == (memory_id, TEXT, 0)


async def test_in_another_namespace_a_pin_counts_nothing(engine: Engine, namespace: str) -> None:
    memory_id = await keep(engine, namespace, "fact", NOW, pinned=True)
    memory = await engine.memories.get(namespace, memory_id)
    async with engine.database.searching(namespace) as db:
        assert await engine.capabilities.memories.pinned(db, [memory.id]) == {memory.id}
    async with engine.database.searching(f"{namespace}-other") as db:
        assert await engine.capabilities.memories.pinned(db, [memory.id]) == set()


@pytest.mark.parametrize("days", [0, -1, math.nan, math.inf, MAX_HALF_LIFE_DAYS + 1, True, "30"])
async def test_a_half_life_that_is_none_is_refused(engine: Engine, namespace: str, days: Any) -> None:
    sentence = "half_life_days must be a number greater than 0 and at most 36,500, not"
    with pytest.raises(Invalid, match=sentence):
        await engine.recall.recall(namespace, QUESTION, half_life_days=days)
    with pytest.raises(Invalid, match=sentence):
        await engine.memories.search(namespace, QUESTION, MemoryScope("ann"), half_life_days=days)


async def test_a_hundred_years_are_the_longest(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "ann", NOW - DAY)
    assert users(await ask(engine, namespace, half_life_days=MAX_HALF_LIFE_DAYS)) == ["ann"]
