"""`kill -9` of a switch of embedding models at random points: resumed, every passage ends in the new model once."""

import asyncio
import os
import random
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import timedelta

import pytest

from recollect import tasks
from recollect.engine import Engine
from recollect.flows.indexing import model_switch as embedding_switch
from recollect.settings import Settings
from tests.commands import MODULE
from tests.flows.talk import say_all
from tests.flows.test_embedding_switch import by_model
from tests.llm_servers import ProviderServer, hurry, provider_server
from tests.memory.test_passages import counts

KILLS = 10
PAUSE_SECONDS = 0.02

# More than a switch takes, so that some kills come after the last of them.
STEPS = 24
OPENAI = "openai:text-embedding-3-small"
PLACES = ("harbour", "library", "bakery", "station", "garden")

pytestmark = [
    pytest.mark.parametrize("pooling", ["session"], indirect=True),
    pytest.mark.unindexed(
        "its model is a provider that only it knows: nobody else can index for it, nor it for others"
    ),
]


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with provider_server() as provider:
        yield provider


@pytest.fixture
async def engine(
    settings: Settings, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Engine]:
    for name, value in provider.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(embedding_switch, "GRACE", timedelta(0))
    hurry(monkeypatch)
    engine = await Engine.open(Settings())
    yield engine
    await engine.close()


class Searcher:
    """Searches again and again, and keeps what went wrong."""

    def __init__(self, engine: Engine, namespace: str) -> None:
        self.done = False
        self.searches = 0
        self._engine = engine
        self._namespace = namespace

    async def run(self) -> None:
        while not self.done:
            place = PLACES[self.searches % len(PLACES)]
            found = await self._engine.recall.recall(self._namespace, f"What happened at the {place}?", top_k=3)
            assert found.by_meaning
            assert [place in memory.text for memory in found.memories] == [True] * 3
            # Vectors of two models have no cosine to each other: the database would refuse to compare them.
            assert all(0.0 < memory.similarity <= 1.0 for memory in found.memories)
            self.searches += 1
            await asyncio.sleep(PAUSE_SECONDS)  # the switch wants the processor, too


async def killed_at_random(model: str, chance: random.Random) -> bool:
    """Run a switch and kill it between two of its steps or in the midst of one; False if it was done before."""
    process = await asyncio.create_subprocess_exec(
        *MODULE, "tests.durability.switcher", model, stdout=subprocess.PIPE, env=os.environ
    )
    assert process.stdout is not None
    for _ in range(chance.randint(1, STEPS)):
        if not await process.stdout.readline():
            break
    if not await tasks.ended_within(chance.uniform(0.0, 0.05), process.wait()):
        # Not `process.kill`: it would collect a process that has just ended, and asyncio then knows no return code.
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    await process.communicate()
    assert process.returncode in (0, -signal.SIGKILL)
    return process.returncode != 0


async def test_a_switch_killed_ten_times_ends_with_every_passage_in_the_new_model_once(
    engine: Engine, namespace: str
) -> None:
    chance = random.Random(7)
    texts = [f"On day {n} something happened at the {PLACES[n % len(PLACES)]}." for n in range(80)]
    await say_all(engine, namespace, "ann", *texts)
    await engine.indexer.flush(namespace)
    searcher = Searcher(engine, namespace)
    searching = asyncio.create_task(searcher.run())
    kills, target, progress = 0, OPENAI, set()
    while kills < KILLS and not searching.done():
        if await killed_at_random(target, chance):
            kills += 1
            state = await engine.embeddings.status(namespace)
            assert state.vectors[str(state.active)] + state.waiting == len(texts)
            progress.add((state.next, state.vectors.get(str(state.next))))
            texts.append(f"After kill {kills} something else happened at the {PLACES[kills % len(PLACES)]}.")
            await say_all(engine, namespace, "ann", texts[-1])
            await engine.indexer.flush(namespace)
        else:
            target = "local" if target == OPENAI else OPENAI
    await engine.embeddings.run(namespace, target)
    searcher.done = True
    await searching
    assert searcher.searches > 0
    assert len(progress) > 2, "the kills did not come at different points"
    await engine.indexer.flush(namespace)
    assert await engine.embeddings.sweep(namespace)
    assert (await counts(engine, namespace))["passages"] == len(texts)
    assert await by_model(engine, namespace) == {engine.embedders.model_id(target): len(texts)}
