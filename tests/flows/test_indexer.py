"""The indexer: a long backlog is embedded in several batches at once."""

import asyncio
from collections.abc import Sequence

import pytest

from recollect.engine import Engine
from recollect.flows.indexing.indexer import BATCH
from recollect.inference.embedding import cores
from recollect.settings import Settings
from tests.flows.talk import say_all

pytestmark = pytest.mark.unindexed("the only indexer is the test's own")


async def test_two_batches_of_a_namespace_are_embedded_at_once(
    settings: Settings, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "at_once", lambda: 2)
    engine = await Engine.open(settings)
    try:
        await say_all(engine, namespace, "ann", *(f"Note number {number}" for number in range(3 * BATCH)))
        embedder = await engine.namespace_models.embedder(namespace)
        assert embedder is not None
        embed, together = embedder.embed_documents, asyncio.Barrier(2)
        batches: list[int] = []

        async def meeting(texts: Sequence[str]) -> object:
            batches.append(len(texts))
            if len(batches) > 1:  # the first shows that there is more
                async with asyncio.timeout(60):
                    await together.wait()
            return await embed(texts)

        monkeypatch.setattr(embedder, "embed_documents", meeting)
        assert await engine.indexer.flush(namespace) is None
        assert batches == [BATCH] * 3
        assert await engine.indexer.waiting(namespace) == 0
    finally:
        await engine.close()


async def test_a_round_does_a_long_backlog_in_many_batches_and_each_passage_once(
    engine: Engine, namespace: str
) -> None:
    await say_all(engine, namespace, "ann", *(f"Note number {number}" for number in range(2 * BATCH + 5)))
    while await engine.indexer.round():
        pass
    async with engine.database.reading(namespace) as db:
        sizes = await engine.capabilities.embedding_models.sizes(db)
    assert list(sizes.values()) == [2 * BATCH + 5]
    assert await engine.indexer.waiting(namespace) == 0
