"""What all of cognition shares: namespaces apart, bad input refused, everything back after a reopening."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid, NotFound
from recollect.settings import Settings

TEXT = "The code of the safe is 4711."


async def fill(engine: Engine, namespace: str) -> int:
    """The same of everything; returns the id of the dialogue."""
    message = await engine.cognition.store_dialogue(namespace, "talk", "Ann", TEXT)
    await engine.cognition.compress(namespace, TEXT, [message.seq])
    update = await engine.cognition.update_working(namespace, TEXT)
    await engine.cognition.archive(namespace, update.added_id)
    await engine.cognition.update_working(namespace, TEXT)
    await engine.cognition.store_episode(namespace, TEXT, 1.0, TEXT)
    return message.seq


async def everything(engine: Engine, namespace: str) -> dict[str, list[int]]:
    """The ids that each way of reading shows."""
    cognition = engine.cognition
    hybrid = await cognition.hybrid_search(namespace, TEXT, top_k=100)
    return {
        "raw": [message.seq for message in await cognition.raw(namespace)],
        "raw of a session": [message.seq for message in await cognition.raw(namespace, session_id="talk")],
        "insights": [found.id for found in await cognition.newest_insights(namespace)],
        "insights by query": [found.insight.id for found in await cognition.insights(namespace, TEXT)],
        "hybrid search": [result.insight.id for result in hybrid.results],
        "working": [item.id for item in await cognition.working(namespace)],
        "stale": [item.id for item in await cognition.stale(namespace)],
        "episodes": [similar.episode.id for similar in await cognition.similar_episodes(namespace, TEXT)],
    }


async def test_one_namespace_never_sees_another_with_the_same_texts(engine: Engine, namespace: str) -> None:
    other = f"test-{uuid4()}"
    seq = await fill(engine, namespace)
    assert not any((await everything(engine, other)).values())
    with pytest.raises(NotFound, match=str(seq)):
        await engine.cognition.compress(other, TEXT, [seq])
    await fill(engine, other)
    ours, theirs = await everything(engine, namespace), await everything(engine, other)
    for way, ids in ours.items():
        assert len(ids) == len(theirs[way]) == 1, way
        assert ids != theirs[way], way


async def test_what_was_stored_is_there_after_a_reopening(engine: Engine, namespace: str, settings: Settings) -> None:
    await fill(engine, namespace)
    before = await everything(engine, namespace)
    again = await Engine.open(settings)
    try:
        assert await everything(again, namespace) == before
    finally:
        await again.close()


@pytest.mark.parametrize(
    ("session_id", "speaker", "content", "metadata", "named"),
    [
        ("", "user", "x", None, "session_id is empty"),
        ("s" * 256, "user", "x", None, "session_id is longer"),
        ("s", " ", "x", None, "speaker is empty"),
        ("s", "user", "", None, "content is empty"),
        ("s", "user", 5, None, "content must be text"),
        ("s", "user", "x", ["list"], "metadata must be a JSON object"),
        ("s", "user", "x", {"a": float("inf")}, "metadata is not JSON"),
    ],
)
async def test_bad_dialogue_is_refused_and_nothing_is_stored(
    engine: Engine, namespace: str, session_id: str, speaker: str, content: str, metadata: dict[str, object], named: str
) -> None:
    with pytest.raises(Invalid, match=named):
        await engine.cognition.store_dialogue(namespace, session_id, speaker, content, metadata)
    assert await engine.cognition.raw(namespace) == []


@pytest.mark.parametrize(
    ("filters", "named"),
    [
        ({"session_id": ""}, "session_id is empty"),
        ({"speaker": "a\x00"}, "speaker contains a NUL"),
        ({"limit": 0}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"order": "up"}, "order must be one of asc, desc"),
        ({"start": "2025-01-01"}, "start must be a datetime"),
        (
            {"start": datetime(2025, 1, 2, tzinfo=UTC), "end": datetime(2025, 1, 1, tzinfo=UTC)},
            "end .* is before start",
        ),
    ],
)
async def test_a_bad_filter_of_raw_dialogue_is_refused(
    engine: Engine, namespace: str, filters: dict[str, object], named: str
) -> None:
    with pytest.raises(Invalid, match=named):
        await engine.cognition.raw(namespace, **filters)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "importance", "named"),
    [
        ("", 0.5, "content is empty"),
        ("x", 1.01, "importance must be a number between 0.0 and 1.0"),
        ("x", -0.01, "importance"),
        ("x", float("nan"), "importance"),
        ("x", "high", "importance"),
        ("x", True, "importance"),
    ],
)
async def test_a_bad_item_is_refused_and_nothing_is_kept(
    engine: Engine, namespace: str, content: str, importance: float, named: str
) -> None:
    with pytest.raises(Invalid, match=named):
        await engine.cognition.update_working(namespace, content, importance)
    assert await engine.cognition.working(namespace) == []


@pytest.mark.parametrize(
    ("filters", "named"),
    [
        ({"reason": "BOREDOM"}, "reason must be one of LRU_EVICTION, MANUAL_ARCHIVE"),
        ({"days_back": 0}, "days_back"),
        ({"days_back": 1.5}, "days_back"),
        ({"importance_min": 2}, "importance_min"),
        ({"limit": 1001}, "limit"),
    ],
)
async def test_a_bad_filter_of_the_archive_is_refused(
    engine: Engine, namespace: str, filters: dict[str, object], named: str
) -> None:
    with pytest.raises(Invalid, match=named):
        await engine.cognition.stale(namespace, **filters)  # type: ignore[arg-type]
