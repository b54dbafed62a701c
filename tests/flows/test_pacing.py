"""Turns to ask a model: evenly spaced and few at once, for all processes together."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest

from recollect.engine import Engine
from recollect.errors import Unavailable
from recollect.inference.llm import Prompt
from recollect.inference.requests.limits import Limits, Turn
from recollect.settings import Settings
from recollect.storage.sql import Query
from tests.llm_servers import Asked, ProviderServer, Reply, provider_server

# So slow that the time which the test itself takes is nothing against it.
HOURLY = 1 / 3600
MANY = 100
DAY = 86_400.0

EXPIRE = Query.named(
    "test.expire", "update model_requests set expires_at = now() where namespace = :namespace and model = :model"
)
COUNT = Query.named(
    "test.count", "select count(*) as requests from model_requests where namespace = :namespace and model = :model"
)


@pytest.fixture
def model() -> str:
    return f"openai:{uuid4()}"


@pytest.fixture
async def another(settings: Settings, engine: Engine) -> AsyncIterator[Engine]:
    """A second process, as far as the database can see."""
    other = await Engine.open(settings)
    yield other
    await other.close()


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with provider_server() as provider:
        yield provider


async def taken(engine: Engine, model: str, limits: Limits) -> Turn:
    turn = await engine.pacing.take(model, limits, DAY)
    assert turn is not None
    return turn


async def test_turns_of_two_processes_are_evenly_spaced(engine: Engine, another: Engine, model: str) -> None:
    limits = Limits(HOURLY, MANY)
    turns = await asyncio.gather(*(taken(who, model, limits) for who in (engine, another) * 5))
    hours = sorted(turn.wait / 3600 for turn in turns)
    assert hours == pytest.approx(range(10), abs=0.1)


async def test_no_more_are_under_way_at_once_than_the_limit_in_two_processes(
    engine: Engine, another: Engine, model: str
) -> None:
    limits = Limits(1000, 3)
    turns = [await taken(who, model, limits) for who in (engine, another, engine)]
    assert await another.pacing.take(model, limits, DAY) is None
    await engine.pacing.end(turns[0])
    await taken(another, model, limits)
    assert await engine.pacing.take(model, limits, DAY) is None


async def test_a_process_that_died_holds_its_place_for_a_while_only(engine: Engine, model: str) -> None:
    limits = Limits(1000, 1)
    await taken(engine, model, limits)
    assert await engine.pacing.take(model, limits, DAY) is None
    async with engine.database.shared_transaction() as tx:
        await tx.all(EXPIRE, model=model)
    await engine.pacing.end(await taken(engine, model, limits))
    async with engine.database.shared_transaction() as tx:
        assert (await tx.one(COUNT, model=model))["requests"] == 0


async def test_a_turn_that_comes_too_late_is_refused_and_not_used_up(engine: Engine, model: str) -> None:
    limits = Limits(HOURLY, MANY)
    await taken(engine, model, limits)
    for _ in range(3):
        with pytest.raises(Unavailable, match=r"accepts the next request in 3\d{3} s, which is after"):
            await engine.pacing.take(model, limits, 60.0)
    assert (await taken(engine, model, limits)).wait <= 3600


async def test_what_a_provider_asked_of_one_process_holds_for_all(engine: Engine, another: Engine, model: str) -> None:
    limits = Limits(1000, MANY)
    await taken(engine, model, limits)
    await engine.pacing.postpone(model, 600.0)
    await engine.pacing.postpone(model, 10.0)
    assert 500 < (await taken(another, model, limits)).wait <= 600


async def test_models_do_not_wait_for_each_other(engine: Engine, model: str) -> None:
    limits = Limits(HOURLY, 1)
    await taken(engine, model, limits)
    assert (await taken(engine, f"{model}-mini", limits)).wait == 0


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_two_processes_together_ask_no_more_at_once_than_the_setting(
    settings: Settings, provider: ProviderServer, namespace: str
) -> None:
    under_way, most = 0, 0

    def answer(asked: Asked) -> Reply:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        provider.closing.wait(0.05)
        under_way -= 1
        return Reply("Done.")

    provider.answer = answer
    chosen = provider.configure(settings, llm_requests_per_second=1000, llm_concurrency=2)
    engines = [await Engine.open(chosen) for _ in range(2)]
    prompt = Prompt("", "Say done.", "tests", namespace, max_tokens=10)
    await asyncio.gather(*(engine.providers.llm("openai:gpt-4o").complete(prompt) for engine in engines * 6))
    for engine in engines:
        await engine.close()
    assert most <= 2
    assert len(provider.requests) == 12
