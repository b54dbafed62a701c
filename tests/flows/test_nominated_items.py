"""Items are nominated, not passages: a long item hides no short one, whichever leg finds them and whoever asks."""

import pytest

from recollect.doors.library.memory_manager import MemoryManager
from recollect.engine import Engine
from recollect.flows.gateway import ALL_USER_MEMORY, Owner, Said
from recollect.flows.long_term.memory_requests import Chosen
from recollect.inference.embedding.embedder import as_text
from recollect.memory.index import giants
from recollect.memory.index.search import Meaning, Scope
from recollect.memory.memories import MemoryScope
from tests.flows.long_items import (
    QUESTION,
    SHORT,
    chat,
    embed_as_near_as_can_be,
    long_text,
    store_documents,
)

pytestmark = [
    pytest.mark.parametrize("pooling", ["session"], indirect=True),
    pytest.mark.unindexed("it chooses the vectors of long items itself"),
]

ANN = MemoryScope(user_id="ann")
LIMITS = [5, 10, 50, 100]


async def remember_all(engine: Engine, namespace: str, long: str) -> None:
    """A long memory and twelve short ones, with the long one's passages the nearest of all."""
    await engine.memories.add(namespace, long, "fact", ANN)
    assert await embed_as_near_as_can_be(engine, namespace) > 100
    for text in SHORT:
        await engine.memories.add(namespace, text, "fact", ANN)


@pytest.mark.parametrize("long", [chat(1000), long_text(250_000)], ids=["chat lines", "250 kB"])
async def test_a_search_of_memories_brings_so_many_beside_a_long_one(engine: Engine, namespace: str, long: str) -> None:
    await remember_all(engine, namespace, long)
    for limit in LIMITS:
        found = await engine.memories.search(namespace, QUESTION, ANN, limit=limit)
        texts = [hit.memory.text for hit in found]
        assert len(texts) == len(set(texts)) == min(limit, 13)
        narrowed = await engine.memories.search(namespace, QUESTION, ANN, Chosen(categories=["fact"]), limit=limit)
        assert len(narrowed) == min(limit, 13)


async def test_each_leg_alone_brings_every_item(engine: Engine, namespace: str) -> None:
    await remember_all(engine, namespace, chat(1000))
    found = await engine.recall.recall(namespace, QUESTION, Scope(owner="ann"), explain=True, fold=False, top_k=50)
    explained = [memory.explanation for memory in found.memories if memory.explanation is not None]
    assert len(explained) == 13
    assert None not in {each.rank_by_words for each in explained}
    # The passage of the long memory that is the best of all need not be the nearest of its equals.
    assert sum(each.rank_by_meaning is not None for each in explained) >= 12


async def test_recall_through_the_library_brings_documents_beside_a_long_one(
    memory: MemoryManager, engine: Engine, namespace: str
) -> None:
    await memory.store_document(chat(1000))
    await embed_as_near_as_can_be(engine, namespace)
    for text in SHORT:
        await memory.store_document(text)
    await memory.flush()
    for limit in LIMITS:
        found = await memory.recall(QUESTION, top_k=limit)
        assert len({each.id for each in found.memories}) == min(limit, 13)


async def test_recall_brings_as_many_items_as_are_asked_for(engine: Engine, namespace: str) -> None:
    await store_documents(engine, namespace, *(f"Harbour note {number}." for number in range(250)))
    found = await engine.recall.recall(namespace, "harbour", top_k=240)
    assert len(found.memories) == 240


async def test_a_search_of_the_gateway_brings_messages_beside_a_long_resource(engine: Engine, namespace: str) -> None:
    owner = Owner(namespace, "ann")
    await engine.gateway.put_resource(owner, "file:///talk.txt", chat(1000))
    await embed_as_near_as_can_be(engine, namespace)
    await engine.gateway.add(owner, "chat:1", [Said("ann", "user", n, text) for n, text in enumerate(SHORT, 1)])
    await engine.indexer.flush(namespace)
    found = await engine.gateway.search(owner, QUESTION, [ALL_USER_MEMORY], top_k=13)
    assert len({hit.memory.id for hit in found}) == 13


async def test_insights_and_episodes_are_found_beside_long_ones(engine: Engine, namespace: str) -> None:
    said = await engine.cognition.store_dialogue(namespace, "talk", "Ann", "Harbour meeting.")
    long = chat(3000)
    await engine.cognition.compress(namespace, long, [said.seq])
    await engine.cognition.store_episode(namespace, long, 1.0, "Write less.")
    assert await embed_as_near_as_can_be(engine, namespace) > 400
    for text in SHORT:
        await engine.cognition.compress(namespace, text, [said.seq])
        await engine.cognition.store_episode(namespace, text, 1.0, "Book a room.")
    for top_k in (5, 13, 50):
        hybrid = await engine.cognition.hybrid_search(namespace, QUESTION, top_k=top_k)
        assert len(hybrid.results) == min(top_k, 13)
        assert (hybrid.semantic_results_count, hybrid.keyword_results_count) == (13, 13)
        episodes = await engine.cognition.similar_episodes(namespace, QUESTION, top_k=top_k, min_similarity=0.0)
        assert len(episodes) == min(top_k, 13)
    assert len(await engine.cognition.insights(namespace, QUESTION)) == 13


async def test_the_index_of_a_giant_hides_no_item_behind_a_long_one(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(giants, "THRESHOLD", 100)
    await engine.memories.add(namespace, long_text(900_000), "fact", ANN)
    assert await embed_as_near_as_can_be(engine, namespace) > 1_000
    for text in SHORT:
        await engine.memories.add(namespace, text, "fact", ANN)
    assert {giant.owner for giant in await engine.maintenance.build_indexes(namespace)} == {None, "ann"}
    embedder = engine.embedders.local
    assert embedder is not None
    meaning = Meaning(as_text(await embedder.embed_query(QUESTION)), embedder.model_id)
    for scope in (Scope(owner="ann"), Scope(), Scope(owner="ann", kinds=("memory",))):
        for items in (5, 13, 100):
            nearest = await engine.nomination.by_meaning(namespace, scope, meaning, items)
            async with engine.database.reading(namespace) as db:
                found = await engine.capabilities.passages.items(db, nearest)
            assert len(nearest) == len(set(found.values())) == min(items, 13)
