"""Passages live and die with their items, counts included."""

import asyncio

import pytest

from recollect.engine import Engine
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from recollect.storage.sql import Query
from tests.flows.talk import say_all

TABLES = ("passages", "passage_words", "passage_vectors", "passage_queue")
COUNTS = {
    name: Query.named(f"test.{name}", f"select count(*) from {name} where namespace = :namespace") for name in TABLES
}
STATISTICS = Query.named(
    "test.terms", "select term, df from term_stats where namespace = :namespace and df <> 0 order by term"
)


async def counts(engine: Engine, namespace: str) -> dict[str, int]:
    async with engine.database.reading(namespace) as db:
        return {name: (await db.one(query))[0] for name, query in COUNTS.items()}


async def statistics(engine: Engine, namespace: str) -> dict[int, int]:
    async with engine.database.reading(namespace) as db:
        return {row["term"]: row["df"] for row in await db.all(STATISTICS)}


async def remove(engine: Engine, namespace: str, kind: str, item: str) -> None:
    async with engine.database.transaction(namespace) as tx:
        await engine.capabilities.passages.remove_items(tx, kind, [item])


@pytest.mark.unindexed("it counts what waits")
async def test_a_message_has_its_passage_before_it_is_acknowledged(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "One.", "Two words.")
    assert await counts(engine, namespace) == {
        "passages": 2,
        "passage_words": 2,
        "passage_vectors": 0,
        "passage_queue": 2,
    }
    await engine.indexer.flush(namespace)
    assert await counts(engine, namespace) == {
        "passages": 2,
        "passage_words": 2,
        "passage_vectors": 2,
        "passage_queue": 0,
    }


async def test_removing_an_item_leaves_nothing_of_it_and_of_its_counts(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "Cats sleep all day.")
    await engine.indexer.flush(namespace)
    before = await statistics(engine, namespace)
    for indexed in (True, False):
        document = await engine.remember.document(namespace, "Cats and dogs. " * 200, None, None)
        if indexed:
            await engine.indexer.flush(namespace)
            assert await statistics(engine, namespace) != before
        await remove(engine, namespace, "document", str(document))
        assert await statistics(engine, namespace) == before
        assert (await counts(engine, namespace))["passages"] == 1
    assert (await engine.recall.recall(namespace, "dogs")).memories[0].text == "Cats sleep all day."


async def test_removing_while_the_indexer_works_keeps_the_counts_right(engine: Engine, namespace: str) -> None:
    documents = [
        await engine.remember.document(namespace, f"Text number {n} on whales.", None, None) for n in range(12)
    ]
    await asyncio.gather(
        engine.indexer.flush(namespace), *(remove(engine, namespace, "document", str(d)) for d in documents)
    )
    assert await counts(engine, namespace) == dict.fromkeys(TABLES, 0)
    assert await statistics(engine, namespace) == {}


async def test_a_turn_that_fails_leaves_no_passage(engine: Engine, namespace: str) -> None:
    turn = Turn("nowhere", (NewMessage("user", "lost words"),))
    with pytest.raises(ValueError, match="not found"):
        await engine.remember.turn(namespace, turn)
    assert (await counts(engine, namespace))["passages"] == 0


@pytest.mark.unindexed("it counts what waits")
async def test_without_a_model_words_are_counted_once_and_passages_wait_for_one(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "Bees make honey.", "Bears eat honey.")
    embedder, engine.embedders.local = engine.embedders.local, None
    await engine.indexer.flush(namespace)
    await engine.indexer.flush(namespace)
    counted = await statistics(engine, namespace)
    assert counted[0] == 2
    assert max(counted.values()) == 2
    assert (await counts(engine, namespace))["passage_queue"] == 2
    engine.embedders.local = embedder
    await engine.indexer.flush(namespace)
    assert await statistics(engine, namespace) == counted
    assert (await counts(engine, namespace))["passage_vectors"] == 2
