"""`kill -9` of indexers at random points: no passage half indexed, lost or counted twice."""

import asyncio
import random
import signal
import subprocess
import time
from collections import Counter

import pytest

from recollect.engine import Engine
from recollect.language import bm25, words
from recollect.storage.sql import Query
from tests.commands import MODULE
from tests.flows.talk import say_all
from tests.memory.test_passages import counts, statistics

ROUNDS = 12
VOCABULARY = [
    "anchor",
    "basket",
    "copper",
    "desert",
    "ember",
    "falcon",
    "glacier",
    "hammock",
    "island",
    "jungle",
    "kettle",
    "lantern",
    "meadow",
    "nectar",
]
TWICE = Query.named(
    "test.twice",
    "select count(*) from passage_vectors join passage_queue using (namespace, id) where namespace = :namespace",
)


def expected_statistics(texts: list[str]) -> dict[int, int]:
    terms = Counter(bm25.dimension(term) for text in texts for term in set(words.document_terms(text)))
    return dict(terms) | {0: len(texts)}


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
@pytest.mark.unindexed("its own indexers are killed, and nobody else's may do their work")
async def test_queue_vectors_and_counts_stay_consistent(engine: Engine, namespace: str) -> None:
    chance = random.Random(3)
    texts = [" ".join(chance.choices(VOCABULARY, k=40)) + f" number {n}" for n in range(40 * ROUNDS)]
    await say_all(engine, namespace, "ann", *texts)
    killed = 0
    while killed < ROUNDS:
        indexers = [
            subprocess.Popen([*MODULE, "tests.durability.indexer"], stdout=subprocess.PIPE, text=True) for _ in range(2)
        ]
        for process in indexers:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        left = (await counts(engine, namespace))["passage_queue"]
        deadline = time.monotonic() + chance.uniform(0.1, 0.8)
        while time.monotonic() < deadline:
            now = await counts(engine, namespace)
            assert now["passage_vectors"] + now["passage_queue"] == len(texts)
            await asyncio.sleep(0)
        for process in indexers:
            killed += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.communicate()
        if left == 0:
            await say_all(engine, namespace, "ann", *(more := [f"{text} again" for text in texts[:100]]))
            texts += more
    async with engine.database.reading(namespace) as db:
        assert (await db.one(TWICE))[0] == 0
    await engine.indexer.flush(namespace)
    assert await counts(engine, namespace) == {
        "passages": len(texts),
        "passage_words": len(texts),
        "passage_vectors": len(texts),
        "passage_queue": 0,
    }
    assert await statistics(engine, namespace) == expected_statistics(texts)
