"""Screening of what was stored before the defence was on."""

from collections.abc import AsyncIterator

import pytest

from recollect import origin
from recollect.engine import Engine
from recollect.errors import Forbidden, Misconfigured
from recollect.flows.defence.rescreening import Screened
from recollect.flows.long_term.memory_requests import Change, Chosen
from recollect.settings import Settings
from tests.flows.test_screening import ANNA, ORDER, WAYS, document, guarded, held, named_memory, recalled

__all__ = ["guarded"]

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


async def test_whatever_was_stored_without_defence_is_held_once_it_is_screened(
    engine: Engine, guarded: Engine, namespace: str
) -> None:
    for ways in WAYS.values():
        for way in ways:
            await way(engine, namespace)
    assert await held(engine, namespace) == []
    steps: list[int] = []
    screened = await guarded.rescreening.run(namespace, steps.append)
    names = await held(guarded, namespace)
    counted = {kind: sum(name.startswith(f"{kind}:") for name in names) for kind in WAYS}
    assert counted == {kind: len(ways) for kind, ways in WAYS.items()}
    assert (screened.held, screened.warned, screened.items) == (len(names), 0, steps[-1])
    assert steps == sorted(steps)
    assert await recalled(guarded, namespace) == []
    assert (await guarded.memories.newest(namespace, ANNA)).memories == []

    for name in names:
        await guarded.review.release(namespace, name)
    again = await guarded.rescreening.run(namespace)
    assert again == Screened(screened.items, 0, 0), "what a person has released stays so"
    assert await held(guarded, namespace) == []


async def test_a_past_version_is_held_as_well(engine: Engine, guarded: Engine, namespace: str) -> None:
    added = await engine.memories.add(namespace, ORDER, "fact", ANNA)
    memory_id = str(added.memory.id)
    await engine.memories.update(namespace, memory_id, Change(text="The marzipan ledger is blue."))
    then = Chosen(as_of=added.memory.created_at)
    assert [each.text for each in (await engine.memories.newest(namespace, ANNA, chosen=then)).memories] == [ORDER]
    assert (await guarded.rescreening.run(namespace)).held == 1
    assert await held(guarded, namespace) == [], "a past version is nothing to decide on"
    assert (await guarded.memories.newest(namespace, ANNA, chosen=then)).memories == []


@pytest.fixture
async def warning(settings: Settings) -> AsyncIterator[Engine]:
    engine = await Engine.open(settings.model_copy(update={"defence": "warn"}))
    yield engine
    await engine.close()


async def test_what_was_warned_about_is_held_by_a_stricter_setting(
    engine: Engine, warning: Engine, guarded: Engine, namespace: str
) -> None:
    await document(engine, namespace)
    assert await warning.rescreening.run(namespace) == Screened(1, 0, 1)
    assert await warning.rescreening.run(namespace) == Screened(1, 0, 0)
    assert await recalled(warning, namespace) == ["document document"]
    assert await guarded.rescreening.run(namespace) == Screened(1, 1, 0)
    assert await guarded.rescreening.run(namespace) == Screened(1, 0, 0)
    assert await recalled(guarded, namespace) == []


async def test_nothing_is_screened_without_defence_or_without_the_right(
    engine: Engine, guarded: Engine, namespace: str
) -> None:
    await named_memory(engine, namespace)
    with pytest.raises(Misconfigured, match="RECOLLECT_DEFENCE"):
        await engine.rescreening.run(namespace)
    with origin.acting("rest", "agent", "write"), pytest.raises(Forbidden):
        await guarded.rescreening.run(namespace)
    assert await held(guarded, namespace) == []
