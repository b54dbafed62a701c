"""Giants: an owner who grows large gets an index, searches use it at once, and it agrees with the exact scan."""

import random
from dataclasses import replace
from typing import Any

import pytest

from recollect.engine import Engine
from recollect.inference.embedding.embedder import as_text
from recollect.memory.index import giants
from recollect.memory.index.giants import Giant
from recollect.memory.index.search import Meaning, Scope, Search
from recollect.storage.database import Statements
from recollect.storage.sql import Query
from tests.flows.talk import say_all

PEOPLE = ("My sister", "The neighbour", "Our teacher", "A doctor", "The old captain", "Her cousin")
DEEDS = ("bought", "repaired", "lost", "painted", "described", "sold", "dreamed of")
THINGS = ("a red bicycle", "the wooden boat", "three lemons", "an opera ticket", "a broken radio", "the lighthouse")
PLACES = ("in Lisbon", "near the station", "last winter", "after the storm", "on a Tuesday", "without a reason")
NEAREST = 20

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


def sentences(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    parts = (PEOPLE, DEEDS, THINGS, PLACES)
    return [" ".join(chance.choice(part) for part in parts) + f", {number} times." for number in range(count)]


@pytest.fixture
def small_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giants, "THRESHOLD", 100)


@pytest.fixture
async def giant_talk(engine: Engine, namespace: str, small_threshold: None) -> list[Giant]:
    """An owner above the threshold, with indexes for the owner and for the namespace."""
    await say_all(engine, namespace, "ann", *sentences(250, seed=1))
    await say_all(engine, namespace, "bob", *sentences(20, seed=2), session="small")
    await engine.indexer.flush(namespace)
    return await engine.maintenance.build_indexes(namespace)


async def plan(db: Statements, giant: Giant, vector: str) -> str:
    """How PostgreSQL runs the search of a giant."""
    query, owner = (
        (giants._Sql.nearest_of_all, {}) if giant.owner is None else (giants._Sql.nearest, {"owner": giant.owner})
    )
    explained = replace(query, text=f"explain {query.text}")
    asked = {
        "vector": vector,
        "model": giant.model,
        "limit": NEAREST,
        "passages": NEAREST,
        "watermark": giant.watermark,
    }
    rows = await db.all(explained, **asked, **owner)
    return "\n".join(row[0] for row in rows)


async def nearest(engine: Engine, namespace: str, owner: str | None, question: str) -> tuple[list[int], list[int]]:
    """What the index finds and what the scan finds."""
    embedder = engine.embedders.local
    assert embedder is not None
    meaning = Meaning(as_text(await embedder.embed_query(question)), embedder.model_id)
    async with engine.database.searching(namespace) as db:
        giant = await engine.capabilities.giants.find(db, owner, meaning.model)
        assert giant is not None
        exact = await Search().by_meaning(db, Scope(owner=owner), meaning, NEAREST)
        # So few rows are quicker to sort; the index is what is tested.
        await db._connection.execute("set local enable_sort = off; set local enable_seqscan = off")
        indexed = await engine.capabilities.giants.nearest(db, giant, meaning.vector, NEAREST, NEAREST)
        assert giant.index_name in await plan(db, giant, meaning.vector)
    return indexed, exact


async def test_only_who_is_above_the_threshold_gets_an_index(
    engine: Engine, namespace: str, giant_talk: list[Giant]
) -> None:
    assert {giant.owner for giant in giant_talk} == {None, "ann"}
    assert await engine.maintenance.build_indexes(namespace) == []
    async with engine.database.reading(namespace) as db:
        assert await engine.capabilities.giants.find(db, "bob", giant_talk[0].model) is None


async def test_the_index_agrees_with_the_scan_on_real_embeddings(
    engine: Engine, namespace: str, giant_talk: list[Giant]
) -> None:
    for owner in ("ann", None):
        agreed = 0
        questions = sentences(25, seed=3)
        for question in questions:
            indexed, exact = await nearest(engine, namespace, owner, question)
            agreed += len(set(indexed) & set(exact))
        assert agreed / (NEAREST * len(questions)) >= 0.98


async def test_what_is_written_after_the_index_is_found_too(
    engine: Engine, namespace: str, giant_talk: list[Giant]
) -> None:
    await say_all(engine, namespace, "ann", "The platypus lays eggs in a burrow.")
    await engine.indexer.flush(namespace)
    indexed, exact = await nearest(engine, namespace, "ann", "Which animal that lays eggs lives underground?")
    assert indexed[0] == exact[0]
    found = await engine.recall.recall(namespace, "Which animal lays eggs?", Scope(owner="ann"))
    assert found.memories[0].text == "The platypus lays eggs in a burrow."


async def test_an_index_is_renewed_when_its_owner_outgrows_it(
    engine: Engine, namespace: str, giant_talk: list[Giant]
) -> None:
    await say_all(engine, namespace, "ann", *sentences(120, seed=4))
    await engine.indexer.flush(namespace)
    renewed = await engine.maintenance.build_indexes(namespace)
    assert {giant.owner for giant in renewed} == {None, "ann"}
    assert min(giant.watermark for giant in renewed) > max(giant.watermark for giant in giant_talk)
    async with engine.database.unscoped() as connection:
        for old in giant_talk:
            assert await connection.fetchval("select to_regclass($1)", old.index_name) is None


async def test_there_are_never_more_indexes_than_allowed(
    engine: Engine, namespace: str, small_threshold: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.flows.indexing.maintenance.MAX_GIANTS", 0)
    await say_all(engine, namespace, "ann", *sentences(120, seed=5))
    await engine.indexer.flush(namespace)
    assert await engine.maintenance.build_indexes(namespace) == []


async def test_a_few_items_of_a_kind_are_scanned_once_however_large_the_namespace_is(
    engine: Engine, namespace: str, giant_talk: list[Giant], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = await engine.cognition.store_dialogue(namespace, "talk", "user", "They fish.")
    await engine.cognition.compress(namespace, "The harbour lives on fish.", [said.seq])
    statements: list[str] = []
    ask = Statements.all

    async def noted(self: Statements, query: Query, **values: Any) -> Any:
        statements.append(query.name)
        return await ask(self, query, **values)

    monkeypatch.setattr(Statements, "all", noted)
    found = await engine.cognition.hybrid_search(namespace, "What does the port live on?")
    assert [each.insight.content for each in found.results] == ["The harbour lives on fish."]
    assert [name for name in statements if "by_meaning" in name] == ["search.by_meaning_among"]
