"""Hybrid search: insights by semantic and keyword search, fused by rank, in the contract's terms."""

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.cognitive.cognition import HybridResults
from recollect.flows.indexing.namespace_models import NotSearched
from recollect.flows.search.fusion import Weights
from recollect.settings import Settings
from tests.flows.talk import say

TEXTS = (
    "The physician recommends more sleep and less coffee.",
    "The fence was painted green in April.",
    "Green tea is preferred over black tea.",
    "The train to Lisbon leaves at nine.",
)


async def fill(engine: Engine, namespace: str, *texts: str) -> list[int]:
    source = (await engine.cognition.store_dialogue(namespace, "talk", "user", "Where all of this was said.")).seq
    return [(await engine.cognition.compress(namespace, text, [source])).insight.id for text in texts or TEXTS]


def ids(found: HybridResults) -> list[int]:
    return [result.insight.id for result in found.results]


async def padded(engine: Engine, text: str) -> list[float]:
    embedder = engine.embedders.local
    assert embedder is not None
    vector: list[float] = (await embedder.embed_query(text)).tolist()
    return vector + [0.0] * (1536 - len(vector))


async def test_the_first_by_words_and_by_meaning_scores_one(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    found = await engine.cognition.hybrid_search(namespace, "When does the train to Lisbon leave?")
    assert ids(found)[0] == stored[3]
    assert found.results[0].score == pytest.approx(1.0)
    assert found.results[0].insight.content == TEXTS[3]
    assert (found.semantic_results_count, found.keyword_results_count) == (4, 1)
    scores = [result.score for result in found.results]
    assert scores == sorted(scores, reverse=True)


async def test_meaning_finds_what_words_do_not(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    found = await engine.cognition.hybrid_search(namespace, "What did the doctor advise?", top_k=1)
    assert ids(found) == [stored[0]]
    assert found.keyword_results_count == 0
    assert found.results[0].score == pytest.approx(0.7)


async def test_weights_decide_which_list_counts(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace, "Green, green, green!", "The physician recommends more sleep.")
    query, vector = "green", await padded(engine, "What did the doctor advise?")
    by_words = await engine.cognition.hybrid_search(namespace, query, vector, weights=Weights(0.0, 1.0))
    by_meaning = await engine.cognition.hybrid_search(namespace, query, vector, weights=Weights(1.0, 0.0))
    assert ids(by_words) == stored[:1]
    assert ids(by_meaning) == stored[::-1]


async def test_a_given_embedding_stands_for_the_text(engine: Engine, namespace: str) -> None:
    await fill(engine, namespace)
    text = "advice of the doctor"
    own = await engine.cognition.hybrid_search(namespace, text)
    given = await engine.cognition.hybrid_search(namespace, text, await padded(engine, text))
    scaled = [number * 1e6 for number in await padded(engine, text)]
    assert given == own
    assert await engine.cognition.hybrid_search(namespace, text, scaled) == own


async def test_only_insights_are_searched(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "ann", "The train to Lisbon leaves at ten.")
    await engine.remember.document(namespace, "Timetable of the train to Lisbon.", None, None)
    await engine.cognition.store_episode(namespace, "When does the train to Lisbon leave?", 0.5, "Ask at the station.")
    stored = await fill(engine, namespace)
    await engine.indexer.flush(namespace)
    found = await engine.cognition.hybrid_search(namespace, "train to Lisbon", top_k=100)
    assert set(ids(found)) == set(stored)


async def test_a_long_insight_is_one_result(engine: Engine, namespace: str) -> None:
    long = " ".join(f"Clause {n}: the parrots of house {n} are fed at noon." for n in range(100))
    stored = await fill(engine, namespace, long, "Parrots can talk.")
    found = await engine.cognition.hybrid_search(namespace, "parrots at noon", top_k=10)
    assert sorted(ids(found)) == stored
    assert (found.semantic_results_count, found.keyword_results_count) == (2, 2)


async def test_equals_come_in_the_order_they_were_stored_every_time(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace, *["Buy milk and bread."] * 8)
    for _ in range(3):
        assert ids(await engine.cognition.hybrid_search(namespace, "buy milk", top_k=8)) == stored


async def test_without_a_model_words_alone_count(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    vector = await padded(engine, "tea")
    engine.embedders.local = None
    found = await engine.cognition.hybrid_search(namespace, "green tea")
    assert ids(found) == [stored[2], stored[1]]
    assert found.semantic_results_count == 0
    assert found.results[0].score == pytest.approx(0.3)
    with pytest.raises(Invalid, match=r"Omit query_embedding .*: No embedding model is installed"):
        await engine.cognition.hybrid_search(namespace, "tea", vector)


@pytest.mark.alone
async def test_a_vector_for_a_provider_without_a_key_is_refused_for_want_of_the_key(
    settings: Settings, namespace: str
) -> None:
    engine = await Engine.open(settings.model_copy(update={"embedding_model": "openai:text-embedding-3-small"}))
    try:
        with pytest.raises(Invalid, match=r"query_embedding .*: API key not configured: set RECOLLECT_OPENAI_API_KEY"):
            await engine.cognition.hybrid_search(namespace, "tea", [1.0] * 1536)
    finally:
        await engine.close()


async def fill_without_model(engine: Engine, namespace: str, *texts: str) -> list[int]:
    model, engine.embedders.local = engine.embedders.local, None
    stored = await fill(engine, namespace, *texts)
    engine.embedders.local = model
    return stored


@pytest.mark.unindexed("it needs insights that still wait to be embedded")
@pytest.mark.parametrize("given", [True, False])
async def test_insights_that_are_not_embedded_yet_are_no_empty_success(
    engine: Engine, namespace: str, given: bool
) -> None:
    stored = await fill_without_model(engine, namespace)
    vector = await padded(engine, "doctor") if given else None
    with pytest.raises(NotSearched, match="4 insights are not embedded yet, and keyword search found nothing"):
        await engine.cognition.hybrid_search(namespace, "doctor", vector)
    with pytest.raises(NotSearched, match="4 insights are not embedded yet"):
        await engine.cognition.insights(namespace, "doctor")
    by_words = await engine.cognition.hybrid_search(namespace, "Lisbon", vector)
    assert (ids(by_words), by_words.degraded) == (
        [stored[3]],
        "4 insights are not embedded yet and can be found only by keyword search",
    )
    await engine.indexer.flush(namespace)
    found = await engine.cognition.hybrid_search(namespace, "doctor", vector, top_k=1)
    assert (ids(found), found.degraded) == ([stored[0]], None)


@pytest.mark.unindexed("it needs passages that still wait to be embedded")
async def test_only_insights_that_wait_are_counted(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    assert await engine.indexer.waiting(namespace) == 1  # the message that they were made from
    found = await engine.cognition.hybrid_search(namespace, "doctor", top_k=4)
    assert (set(ids(found)), found.degraded) == (set(stored), None)
    await fill_without_model(engine, namespace, "One more. " * 500)
    found = await engine.cognition.hybrid_search(namespace, "doctor")
    assert found.degraded == "1 insight is not embedded yet and can be found only by keyword search"


@pytest.mark.unindexed("it needs an episode that still waits to be embedded")
async def test_episodes_that_are_not_embedded_yet_are_no_empty_success(engine: Engine, namespace: str) -> None:
    model, engine.embedders.local = engine.embedders.local, None
    await engine.cognition.store_episode(namespace, "Why do dogs bark?", 0.5, "Ask the dog.")
    engine.embedders.local = model
    with pytest.raises(NotSearched, match="1 episode is not embedded yet"):
        await engine.cognition.similar_episodes(namespace, "Why do dogs bark?")


async def test_an_empty_memory_gives_an_empty_answer(engine: Engine, namespace: str) -> None:
    assert await engine.cognition.hybrid_search(namespace, "anything") == HybridResults([], 0, 0, query_dimensions=384)


@pytest.mark.parametrize(
    ("query", "options", "named"),
    [
        ("", {}, "query_text is empty"),
        ("🎉", {}, "query_text has no letters"),
        ("x" * 20_001, {}, "query_text is longer"),
        (None, {}, "query_text must be text"),
        ("tea", {"top_k": 0}, "top_k must be between 1 and 100"),
        ("tea", {"top_k": 101}, "top_k must be between 1 and 100"),
        ("tea", {"top_k": 2.0}, "top_k"),
        ("tea", {"weights": Weights(0.7, 0.7)}, "weights must sum to 1.0"),
        ("tea", {"query_embedding": [0.1] * 384}, "query_embedding must have 1536 numbers, not 384"),
        ("tea", {"query_embedding": [0.0] * 1536}, "query_embedding is all zeros"),
        ("tea", {"query_embedding": [float("nan")] * 1536}, "finite"),
        ("tea", {"query_embedding": ["1"] * 1536}, "query_embedding must contain only numbers"),
        ("tea", {"query_embedding": [0.1] * 1536}, "query_embedding does not match this namespace's model.*first 384"),
    ],
)
async def test_a_bad_search_is_refused_with_a_sentence(
    engine: Engine, namespace: str, query: str, options: dict[str, object], named: str
) -> None:
    with pytest.raises(Invalid, match=named):
        await engine.cognition.hybrid_search(namespace, query, **options)  # type: ignore[arg-type]
