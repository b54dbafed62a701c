"""What a recall costs the database: how often it is asked."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from recollect.engine import Engine
from recollect.flows.search import ranking
from recollect.memory.index.search import Scope
from recollect.memory.memories import MemoryScope
from recollect.storage.database import Connection, Statements
from recollect.storage.sql import Query
from tests.flows.talk import say_all

pytestmark = pytest.mark.unindexed("nothing but the recall may ask the database meanwhile")

QUESTION = "Where does Ann keep her bees?"


@contextmanager
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Everything that connections are asked, in order."""
    found: list[str] = []

    def noting(name: str) -> Any:
        original = getattr(Connection, name)

        async def noted(self: Connection, query: str, *values: Any, **options: Any) -> Any:
            found.append(query.strip())
            return await original(self, query, *values, **options)

        return noted

    with monkeypatch.context() as patch:
        for name in ("execute", "fetch", "fetchrow"):
            patch.setattr(Connection, name, noting(name))
        yield found


async def stored(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "Ann keeps her bees behind the barn.", "Are there many?", "Three hives.")
    await engine.indexer.flush(namespace)
    await engine.recall.recall(namespace, QUESTION, Scope(owner="ann"))


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_recall_is_four_statements_and_no_transaction(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored(engine, namespace)
    with asked(monkeypatch) as statements:
        found = await engine.recall.recall(namespace, QUESTION, Scope(owner="ann"))
    assert found.by_meaning
    assert found.memories
    assert len(statements) == 4
    assert not [statement for statement in statements if statement.startswith(("begin", "commit", "set"))]


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_decay_asks_once_more_only_if_memories_may_be_pinned(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored(engine, namespace)
    with asked(monkeypatch) as statements:
        await engine.recall.recall(namespace, QUESTION, Scope(owner="ann"), half_life_days=30)
    assert len(statements) == 4
    await engine.memories.add(namespace, "Ann sold her bees.", "fact", MemoryScope("ann"))
    await engine.indexer.flush(namespace)
    await engine.recall.recall(namespace, QUESTION, Scope(owner="ann"))
    with asked(monkeypatch) as statements:
        await engine.recall.recall(namespace, QUESTION, Scope(owner="ann"), half_life_days=30)
    assert len(statements) == 5


@pytest.mark.parametrize("pooling", ["transaction"], indirect=True)
async def test_behind_a_pooler_they_are_two_transactions(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored(engine, namespace)
    with asked(monkeypatch) as statements:
        assert (await engine.recall.recall(namespace, QUESTION, Scope(owner="ann"))).memories
    begun = [statement for statement in statements if statement.startswith("begin")]
    assert len(begun) == statements.count("commit") == 2
    assert all("force_custom_plan" in statement for statement in begun)
    assert len(statements) == 8


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_write_after_a_search_plans_as_any_other(engine: Engine, namespace: str) -> None:
    async def mode(db: Statements) -> str:
        (row,) = await db.all(Query("mode", "select current_setting('plan_cache_mode') as mode, $1::text"))
        return str(row["mode"])

    async with engine.database.searching(namespace) as db:
        assert await mode(db) == "force_custom_plan"
    async with engine.database.calling(namespace) as db:
        assert await mode(db) == "auto"
    async with engine.database.searching(f"{namespace}-other") as db:
        assert await mode(db) == "force_custom_plan"
    async with engine.database.transaction(namespace) as tx:
        assert await mode(tx) == "auto"


async def test_a_neighbour_counts_by_its_best_passage_and_asks_by_its_last(engine: Engine, namespace: str) -> None:
    rain = "It rained on the hills and the river rose a little every day until the bridge was closed to traffic. "
    long = rain * 30 + "Our bees swarmed at noon. " + rain * 30 + "Shall we go sailing?"
    await say_all(engine, namespace, "ann", long, "Yes, the bees can wait.")
    async with engine.database.searching(namespace) as db:
        words = await engine.capabilities.search.lexical(db, "ann", [("bee",)])
        found = await engine.capabilities.search.by_words(db, Scope(owner="ann"), words, 10)
        scored = await engine.capabilities.search.score(db, found, words, None, Scope())
    session = scored.nominees[0].session_id or ""
    message = ranking.neighbours(scored.around, 1.0, 0.0)["message", namespace, "ann", session, 0]
    assert message.words == max(each.lexical for each in scored.nominees if each.position == 0) > 0
    assert message.asks
    assert message.role == "user"
