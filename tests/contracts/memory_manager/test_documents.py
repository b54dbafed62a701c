"""Contract memory-manager: documents, semantic search, temporal queries, health."""

import math
import random
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from recollect import MemoryManager

DIMENSIONS = 1536


def unit(*hot: int) -> list[float]:
    vector = [0.0] * DIMENSIONS
    for place in hot:
        vector[place] = 1.0
    return vector


async def test_a_document_comes_back_with_exactly_the_embedding_it_was_given(memory: MemoryManager) -> None:
    numbers = random.Random(7)
    embedding = [round(numbers.uniform(-1, 1), 6) for _ in range(DIMENSIONS)]
    document_id = await memory.store_document("A paper on memory.", {"category": "research"}, embedding)
    (found,) = await memory.semantic_search(embedding)
    assert isinstance(document_id, UUID)
    assert found.id == document_id
    assert found.content == "A paper on memory."
    assert found.embedding == embedding
    assert found.metadata_ == {"category": "research"}
    assert found.created_at == found.updated_at


async def test_search_orders_by_cosine_similarity_and_agrees_with_plain_arithmetic(memory: MemoryManager) -> None:
    numbers = random.Random(3)
    vectors = [[numbers.gauss(0, 1) * scale for _ in range(DIMENSIONS)] for scale in (0.1, 1, 10, 2, 5, 7)]
    query = [numbers.gauss(0, 1) for _ in range(DIMENSIONS)]
    ids = [await memory.store_document(f"document {n}", embedding=vector) for n, vector in enumerate(vectors)]

    def cosine(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))

    expected = sorted(ids, key=lambda i: -cosine(vectors[ids.index(i)], query))
    assert [d.id for d in await memory.semantic_search(query)] == expected


async def test_top_k_bounds_the_results_and_is_ten_by_default(memory: MemoryManager) -> None:
    for place in range(12):
        await memory.store_document(f"document {place}", embedding=unit(0, place + 1))
    assert len(await memory.semantic_search(unit(0))) == 10
    assert len(await memory.semantic_search(unit(0), top_k=3)) == 3


async def test_documents_without_an_embedding_are_not_found_by_vector(memory: MemoryManager) -> None:
    await memory.store_document("no vector")
    assert await memory.semantic_search(unit(0)) == []


async def test_metadata_filters_must_all_hold(memory: MemoryManager) -> None:
    kept = await memory.store_document("a", {"category": "research", "year": 2025}, unit(1))
    await memory.store_document("b", {"category": "research", "year": 2024}, unit(1))
    await memory.store_document("c", None, unit(1))
    filters = {"category": "research", "year": 2025}
    assert [d.id for d in await memory.semantic_search(unit(1), metadata_filters=filters)] == [kept]
    now = datetime.now(UTC)
    found = await memory.temporal_query(now - timedelta(hours=1), now + timedelta(hours=1), filters)
    assert [d.id for d in found] == [kept]


async def test_an_empty_filter_asks_for_nothing(memory: MemoryManager) -> None:
    document = await memory.store_document("no metadata", None, unit(2))
    assert [d.id for d in await memory.semantic_search(unit(2), metadata_filters={})] == [document]


async def test_a_temporal_query_gives_newest_first_and_keeps_both_ends(memory: MemoryManager) -> None:
    ids = [await memory.store_document(f"document {n}") for n in range(3)]
    everything = await memory.temporal_query(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
    assert [d.id for d in everything] == ids[::-1]
    middle = everything[1]
    exactly = await memory.temporal_query(middle.created_at, middle.created_at)
    assert middle.id in [d.id for d in exactly]
    assert await memory.temporal_query(datetime(2000, 1, 1), datetime(2000, 1, 2)) == []


async def test_naive_times_are_taken_as_utc_and_others_are_converted(memory: MemoryManager) -> None:
    document_id = await memory.store_document("now")
    naive = datetime.now(UTC).replace(tzinfo=None)
    hour = timedelta(hours=1)
    assert [d.id for d in await memory.temporal_query(naive - hour, naive + hour)] == [document_id]
    east = datetime.now(timezone(timedelta(hours=9)))
    assert [d.id for d in await memory.temporal_query(east - hour, east + hour)] == [document_id]


async def test_an_end_before_its_start_is_refused(memory: MemoryManager) -> None:
    now = datetime.now(UTC)
    with pytest.raises(ValueError, match="before start_date"):
        await memory.temporal_query(now, now - timedelta(seconds=1))


@pytest.mark.parametrize(
    ("embedding", "sentence"),
    [
        ([0.5] * 1535, "1536 numbers, not 1535"),
        ([0.5] * 1537, "1536 numbers, not 1537"),
        ([], "1536 numbers, not 0"),
        ([0.5] * 1535 + [float("nan")], "finite"),
        ([float("inf")] + [0.5] * 1535, "finite"),
        ([1e39] + [0.5] * 1535, "finite"),
        ([10**400] + [0.5] * 1535, "finite"),
        ([1e38] * 1536, "normalise it"),
        ([1e-30] * 1536, "normalise it"),
        (["0.5"] * 1536, "only numbers"),
        ("x" * 1536, "list of 1536"),
    ],
)
async def test_a_bad_embedding_is_refused_and_nothing_is_stored(
    memory: MemoryManager, embedding: Any, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        await memory.store_document("text", embedding=embedding)
    with pytest.raises(ValueError, match=sentence):
        await memory.semantic_search(embedding)
    assert await memory.temporal_query(datetime(2000, 1, 1), datetime(2100, 1, 1)) == []


async def test_a_query_of_zeros_is_refused_because_it_has_no_direction(memory: MemoryManager) -> None:
    with pytest.raises(ValueError, match="direction"):
        await memory.semantic_search([0.0] * DIMENSIONS)


@pytest.mark.parametrize("top_k", [0, -3])
async def test_a_top_k_that_is_not_positive_is_refused(memory: MemoryManager, top_k: int) -> None:
    with pytest.raises(ValueError, match="top_k"):
        await memory.semantic_search(unit(0), top_k=top_k)


@pytest.mark.parametrize("content", ["", "  ", "a\x00b"])
async def test_a_document_needs_storable_text(memory: MemoryManager, content: str) -> None:
    with pytest.raises(ValueError, match="content"):
        await memory.store_document(content)


async def test_filters_that_are_not_json_are_refused(memory: MemoryManager) -> None:
    with pytest.raises(ValueError, match="metadata_filters"):
        await memory.semantic_search(unit(0), metadata_filters={"x": object()})


async def test_health_names_the_versions(memory: MemoryManager) -> None:
    health = await memory.health_check()
    assert health["status"] == "healthy"
    assert int(health["postgres_version"].split(".")[0]) >= 15
    assert health["pgvector_version"].startswith("0.")
