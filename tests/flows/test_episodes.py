"""Episodes: lessons found by a query like the one that led to them."""

from datetime import UTC, datetime, timedelta

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.indexing.namespace_models import NotSearched
from recollect.storage.sql import Query
from tests.flows.test_insights import without_model

LESSON = "Problem: vague answer. Lesson: name the sources."
AGE = Query.named("test.age", "update episodes set created_at = :at where namespace = :namespace and id = :id")
AGE_PASSAGE = Query.named(
    "test.age_passage", "update passages set at = :at where namespace = :namespace and item_id = :id::bigint::text"
)


async def age(engine: Engine, namespace: str, episode_id: int, days: int) -> None:
    async with engine.database.transaction(namespace) as tx:
        for query in (AGE, AGE_PASSAGE):
            await tx.all(query, id=episode_id, at=datetime.now(UTC) - timedelta(days=days))


async def test_an_episode_is_found_by_a_similar_query(engine: Engine, namespace: str) -> None:
    stored = await engine.cognition.store_episode(namespace, "How does working memory work?", 0.8, LESSON)
    assert stored.embedding_status == "success"
    await engine.cognition.store_episode(namespace, "Which train goes to Lisbon?", 0.8, LESSON)
    (found,) = await engine.cognition.similar_episodes(namespace, "Explain how working memory functions")
    assert found.episode == stored.episode
    assert (found.episode.reward, found.episode.reflection) == (0.8, LESSON)
    assert 0.5 <= found.similarity <= 1.0


async def test_the_lesson_itself_is_not_searched(engine: Engine, namespace: str) -> None:
    await engine.cognition.store_episode(namespace, "Which train goes to Lisbon?", 0.8, "Parrots are loud.")
    assert await engine.cognition.similar_episodes(namespace, "loud parrots") == []
    (memory,) = (await engine.recall.recall(namespace, "train to Lisbon")).memories
    assert memory.kind == "episode"
    assert memory.metadata == {"reward": 0.8, "reflection": "Parrots are loud."}


@pytest.mark.parametrize("with_model", [True, False])
async def test_the_most_similar_comes_first_within_top_k_and_above_the_threshold(
    engine: Engine, namespace: str, with_model: bool
) -> None:
    queries = ["Why is memory consistency hard?", "Why is the sky blue today?", "Is memory consistency hard to test?"]
    for query in queries:
        await engine.cognition.store_episode(namespace, query, 0.0, LESSON)
    if not with_model:
        without_model(engine)
    ask = engine.cognition.similar_episodes
    found = await ask(namespace, queries[0], min_similarity=0.3)
    assert [similar.episode.query for similar in found][:2] == [queries[0], queries[2]]
    assert found[0].similarity == pytest.approx(1.0, abs=0.01)
    assert found[0].similarity <= 1.0
    assert len(await ask(namespace, queries[0], top_k=1, min_similarity=0.0)) == 1
    assert [similar.episode.query for similar in await ask(namespace, queries[0], min_similarity=0.99)] == queries[:1]


@pytest.mark.parametrize("with_model", [True, False])
async def test_rewards_and_ages_filter_before_the_number_is_cut(
    engine: Engine, namespace: str, with_model: bool
) -> None:
    query = "How do parrots learn to talk?"
    stored = [(await engine.cognition.store_episode(namespace, query, r, LESSON)).episode for r in (-1.0, 0.2, 0.9)]
    await age(engine, namespace, stored[2].id, days=40)
    if not with_model:
        without_model(engine)

    async def rewards(**filters: float) -> list[float]:
        found = await engine.cognition.similar_episodes(namespace, query, **filters)  # type: ignore[arg-type]
        return [similar.episode.reward for similar in found]

    assert await rewards() == [-1.0, 0.2]
    assert await rewards(days_back=50) == [-1.0, 0.2, 0.9]
    assert await rewards(reward_min=0.0, top_k=1) == [0.2]
    assert await rewards(reward_min=0.9, days_back=50, top_k=1) == [0.9]
    if with_model:
        assert await rewards(reward_min=1.0) == []
    else:
        with pytest.raises(NotSearched):
            await rewards(reward_min=1.0)


async def test_a_long_query_is_one_episode(engine: Engine, namespace: str) -> None:
    query = " ".join(f"Question {n}: how are the parrots of house {n} fed at noon?" for n in range(100))
    stored = await engine.cognition.store_episode(namespace, query, 0.1, LESSON)
    (found,) = await engine.cognition.similar_episodes(namespace, "How are parrots fed at noon?", min_similarity=0.2)
    assert found.episode == stored.episode


@pytest.mark.parametrize(
    ("query", "reward", "reflection", "named"),
    [
        ("", 0.0, LESSON, "query is empty"),
        ("x", 1.1, LESSON, "reward must be a number between -1.0 and 1.0"),
        ("x", float("nan"), LESSON, "reward"),
        ("x", "good", LESSON, "reward"),
        ("x", 0.0, " ", "reflection is empty"),
        ("x", 0.0, "a\x00", "reflection contains a NUL"),
    ],
)
async def test_a_bad_episode_is_refused_and_nothing_is_stored(
    engine: Engine, namespace: str, query: str, reward: float, reflection: str, named: str
) -> None:
    with pytest.raises(Invalid, match=named):
        await engine.cognition.store_episode(namespace, query, reward, reflection)
    assert await engine.cognition.similar_episodes(namespace, "x", min_similarity=0.0) == []


@pytest.mark.parametrize(
    ("query", "filters", "named"),
    [
        ("", {}, "query is empty"),
        ("x", {"top_k": 0}, "top_k"),
        ("x", {"min_similarity": 1.5}, "min_similarity"),
        ("x", {"min_similarity": None}, "min_similarity"),
        ("x", {"reward_min": -2}, "reward_min"),
        ("x", {"days_back": 0}, "days_back"),
        ("x", {"days_back": 10**9}, "days_back"),
    ],
)
async def test_a_bad_query_is_refused_with_a_sentence(
    engine: Engine, namespace: str, query: str, filters: dict[str, object], named: str
) -> None:
    with pytest.raises(Invalid, match=named):
        await engine.cognition.similar_episodes(namespace, query, **filters)  # type: ignore[arg-type]
