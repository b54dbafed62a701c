"""Insights: stored with their sources, their density and their grounding, found at once."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid, NotFound
from recollect.flows.cognitive.cognition import InsightFilter
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from tests.memory.test_passages import counts, statistics

DENSE = "Working memory holds ten items; critical importance protects against eviction."
SMALL_TALK = "So it was that they were there, and then we had some of it with them as well."


async def say(engine: Engine, namespace: str, *texts: str) -> list[int]:
    return [(await engine.cognition.store_dialogue(namespace, "talk", "user", text)).seq for text in texts]


def without_model(engine: Engine) -> None:
    engine.embedders.local = None


async def test_an_insight_keeps_its_sources_and_is_found_by_meaning_at_once(engine: Engine, namespace: str) -> None:
    sources = await say(engine, namespace, "My physician told me to sleep more.", "I go to bed at ten now.")
    stored = await engine.cognition.compress(namespace, "Doctor's advice: more rest; bedtime is ten.", sources)
    assert stored.embedding_status == "success"
    assert stored.insight.source_ids == sources
    assert await engine.cognition.newest_insights(namespace) == [stored.insight]
    found = await engine.cognition.hybrid_search(namespace, "recommendation to take it easy at night")
    assert [result.insight for result in found.results] == [stored.insight]
    assert found.semantic_results_count == 1
    assert (await engine.recall.recall(namespace, "bedtime")).memories[0].kind == "insight"


async def test_nothing_of_an_insight_is_left_to_the_indexer(engine: Engine, namespace: str) -> None:
    sources = await say(engine, namespace, "Bees make honey.")
    await engine.indexer.flush(namespace)
    before = await statistics(engine, namespace)
    await engine.cognition.compress(namespace, "Honey comes from bees.", sources)
    assert await counts(engine, namespace) == {
        "passages": 2,
        "passage_words": 2,
        "passage_vectors": 2,
        "passage_queue": 0,
    }
    counted = await statistics(engine, namespace)
    assert counted[0] == before[0] + 1
    await engine.indexer.flush(namespace)
    assert await statistics(engine, namespace) == counted


@pytest.mark.unindexed("it counts what waits")
async def test_the_backlog_stays_where_it_is(engine: Engine, namespace: str) -> None:
    sources = await say(engine, namespace, *(f"Sentence number {n}." for n in range(5)))
    await engine.cognition.compress(namespace, "Five numbered sentences.", sources)
    assert await engine.indexer.waiting(namespace) == 5


async def test_fidelity_is_the_density_of_the_text_and_warns_when_low(engine: Engine, namespace: str) -> None:
    sources = await say(engine, namespace, "Whatever.")
    dense = (await engine.cognition.compress(namespace, DENSE, sources)).insight
    vague = (await engine.cognition.compress(namespace, SMALL_TALK, sources)).insight
    assert dense.fidelity > 0.7
    assert vague.fidelity < 0.5
    assert (dense.metadata["fidelity_warning"], vague.metadata["fidelity_warning"]) == (False, True)


@pytest.mark.parametrize("with_model", [True, False])
async def test_grounding_tells_how_near_an_insight_is_to_its_sources(
    engine: Engine, namespace: str, with_model: bool
) -> None:
    sources = await say(
        engine, namespace, "Ann moved to Lisbon in March.", "She works there as a cook.", "Lisbon has many hills."
    )
    if not with_model:
        without_model(engine)

    async def grounding(content: str) -> float:
        value: float = (await engine.cognition.compress(namespace, content, sources)).insight.metadata["grounding"]
        assert 0.0 <= value <= 1.0
        return value

    near = await grounding("Ann works as a cook in Lisbon since March.")
    far = await grounding("Quarterly revenue of semiconductor vendors declined.")
    assert near > 0.6
    assert far < 0.3


@pytest.mark.unindexed("it counts what waits")
async def test_without_a_model_the_meaning_waits(engine: Engine, namespace: str) -> None:
    without_model(engine)
    sources = await say(engine, namespace, "Bees make honey.")
    stored = await engine.cognition.compress(namespace, "Honey comes from bees.", sources)
    assert stored.embedding_status == "pending"
    assert await engine.indexer.waiting(namespace) == 2
    assert [found.insight.id for found in await engine.cognition.insights(namespace, "honey")] == [stored.insight.id]


@pytest.mark.unindexed("it needs an insight that still waits to be embedded")
async def test_a_very_long_insight_gets_its_meaning_from_the_indexer(engine: Engine, namespace: str) -> None:
    sources = await say(engine, namespace, "Notes of a long meeting.")
    content = " ".join(f"Point {n}: the committee decided about budget line {n} of the plan." for n in range(700))
    stored = await engine.cognition.compress(namespace, content, sources)
    assert stored.embedding_status == "pending"
    assert (await engine.cognition.insights(namespace, "budget line 444"))[0].insight.id == stored.insight.id


@pytest.mark.unindexed("it counts what waits")
async def test_an_insight_that_repeats_itself_has_all_its_vectors(engine: Engine, namespace: str) -> None:
    sources = await say(engine, namespace, "Notes.")
    stored = await engine.cognition.compress(namespace, "Cats and dogs are friends here. " * 200, sources)
    assert stored.embedding_status == "success"
    assert stored.insight.metadata["fidelity_warning"]
    size = await counts(engine, namespace)
    assert size["passage_queue"] == 1
    assert size["passage_vectors"] == size["passages"] - 1 > 1


async def test_a_source_that_is_named_twice_counts_once(engine: Engine, namespace: str) -> None:
    first, second = await say(engine, namespace, "One.", "Two.")
    stored = await engine.cognition.compress(namespace, "Two numbers.", [second, first, second])
    assert stored.insight.source_ids == [second, first]


async def test_unknown_sources_are_named_and_nothing_is_stored(engine: Engine, namespace: str) -> None:
    (known,) = await say(engine, namespace, "One.")
    unknown = [known + 1_000_000, 2**70, -5, 0]
    with pytest.raises(NotFound, match=f"source_ids .*{unknown[0]}, {unknown[1]}, -5, 0") as refused:
        await engine.cognition.compress(namespace, "Content.", [known, *unknown])
    assert f" {known}," not in str(refused.value)
    assert await engine.cognition.newest_insights(namespace) == []


@pytest.mark.parametrize(
    ("content", "sources", "named"),
    [
        (" ", [1], "content is empty"),
        ("a\x00b", [1], "content contains a NUL"),
        ("text", "12", "source_ids must be a list"),
        ("text", None, "source_ids must be a list"),
        ("text", [True], "only whole numbers, not True"),
        ("text", ["1"], "only whole numbers, not '1'"),
        ("text", [1.5], "only whole numbers, not 1.5"),
        ("text", list(range(1001)), "limit of 1,000"),
    ],
)
async def test_a_bad_insight_is_refused_with_a_sentence(
    engine: Engine, namespace: str, content: str, sources: list[int], named: str
) -> None:
    with pytest.raises(Invalid, match=named):
        await engine.cognition.compress(namespace, content, sources)
    assert await engine.cognition.newest_insights(namespace) == []


async def test_insights_are_listed_newest_first_and_filtered(engine: Engine, namespace: str) -> None:
    sources = await say(engine, namespace, "Whatever.")
    contents = [DENSE, SMALL_TALK, "Eviction archives stale items."]
    stored = [(await engine.cognition.compress(namespace, content, sources)).insight for content in contents]

    async def read(query: str | None = None, **filters: Any) -> list[str]:
        if query is None:
            return [
                found.content for found in await engine.cognition.newest_insights(namespace, InsightFilter(**filters))
            ]
        found = await engine.cognition.insights(namespace, query, InsightFilter(**filters))
        return [each.insight.content for each in found]

    assert await read() == contents[::-1]
    assert await read(top_k=1) == contents[2:]
    assert await read(fidelity_min=0.5) == [contents[2], contents[0]]
    assert await read(created_after=stored[1].created_at) == [contents[2], contents[1]]
    assert await read(created_before=stored[1].created_at) == [contents[1], contents[0]]
    assert await read(created_before=datetime(2020, 1, 1, tzinfo=UTC)) == []
    assert await read(query="what does eviction do to items", top_k=2) == [contents[2], contents[0]]
    assert SMALL_TALK not in await read(query="items", fidelity_min=0.5)
    assert await read(query="eviction", created_before=stored[0].created_at) == [contents[0]]


@pytest.mark.parametrize(
    ("filters", "named"),
    [
        ({"query": ""}, "query is empty"),
        ({"query": "?!"}, "query has no letters"),
        ({"top_k": 0}, "top_k"),
        ({"top_k": 1001}, "top_k"),
        ({"fidelity_min": 1.1}, "fidelity_min"),
        ({"fidelity_min": float("nan")}, "fidelity_min"),
        ({"created_after": "yesterday"}, "created_after"),
        (
            {"created_after": datetime(2025, 1, 2, tzinfo=UTC), "created_before": datetime(2025, 1, 1, tzinfo=UTC)},
            "created_before .* is before created_after",
        ),
    ],
)
async def test_a_bad_filter_is_refused_with_a_sentence(
    engine: Engine, namespace: str, filters: dict[str, Any], named: str
) -> None:
    wanted = InsightFilter(**{name: value for name, value in filters.items() if name != "query"})
    with pytest.raises(Invalid, match=named):
        await engine.cognition.insights(namespace, filters.get("query", "anything"), wanted)
    if "query" not in filters:
        with pytest.raises(Invalid, match=named):
            await engine.cognition.newest_insights(namespace, wanted)


async def test_a_naive_time_is_taken_as_utc(engine: Engine, namespace: str) -> None:
    sources = await say(engine, namespace, "Whatever.")
    stored = (await engine.cognition.compress(namespace, DENSE, sources)).insight
    naive = stored.created_at.astimezone(UTC).replace(tzinfo=None)
    assert len(await engine.cognition.newest_insights(namespace, InsightFilter(created_after=naive))) == 1
    later = InsightFilter(created_after=naive + timedelta(seconds=1))
    assert await engine.cognition.newest_insights(namespace, later) == []


async def test_many_insights_at_once_are_all_stored_and_counted(engine: Engine, namespace: str) -> None:
    sources = await say(engine, namespace, "Whatever.")
    await engine.indexer.flush(namespace)
    contents = [f"Shared words of insight number {n}." for n in range(20)]
    await asyncio.gather(*(engine.cognition.compress(namespace, content, sources) for content in contents))
    assert {found.content for found in await engine.cognition.newest_insights(namespace)} == set(contents)
    assert (await statistics(engine, namespace))[0] == 21


async def test_an_insight_may_come_from_no_dialogue(engine: Engine, namespace: str) -> None:
    stored = await engine.cognition.compress(namespace, "Bees make honey in wooden hives.", [])
    assert stored.insight.source_ids == []
    assert "grounding" not in stored.insight.metadata
    assert stored.warnings == ()


async def test_a_text_that_says_little_or_something_else_is_warned_about(engine: Engine, namespace: str) -> None:
    sources = await say(engine, namespace, "The meeting is on Friday at nine.")
    vague = await engine.cognition.compress(namespace, "It is what it is, and so on and so forth.", [])
    assert len(vague.warnings) == 1
    assert "Low information density for the text's length" in vague.warnings[0]
    nonsense = await engine.cognition.compress(namespace, "Purple walrus quantum trombone marmalade.", sources)
    assert len(nonsense.warnings) == 1
    assert "little in common with its sources" in nonsense.warnings[0]


async def test_an_insight_is_trusted_no_more_than_the_least_of_its_sources(engine: Engine, namespace: str) -> None:
    imported = NewMessage("user", "Bees make honey.", trust="import")
    (message,) = await engine.remember.turn(namespace, Turn("talk", (imported,), owner_if_new="anna"))
    own = await say(engine, namespace, "Honey keeps for years.")
    await engine.cognition.compress(namespace, "Bees make honey, which keeps.", [*own, message.seq])
    await engine.cognition.compress(namespace, "It keeps for many years.", own)
    found = (await engine.recall.recall(namespace, "honey that bees make and that keeps")).memories
    trusted = {each.text: each.trust for each in found if each.kind == "insight"}
    assert trusted == {"Bees make honey, which keeps.": "import", "It keeps for many years.": "assistant"}
