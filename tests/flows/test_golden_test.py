"""The golden test: precision at 5 by the length of the query, held to the baseline, one run a day."""

from datetime import date, timedelta
from typing import Any, Literal

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid, LimitReached, NotFound, Unavailable
from recollect.flows.cognitive import golden_test
from recollect.flows.cognitive.drift import NORMAL, SetChanges, has_drifted
from recollect.flows.cognitive.golden_test import Entry, GoldenTest
from recollect.language.lengths import length_of, word_count
from tests.flows.test_hybrid_search import TEXTS, fill

DAY = date(2026, 3, 1)
SHORT = "train to Lisbon"
MEDIUM = "At what time in the morning does the train to Lisbon leave?"
LONG = "Please tell me, if you remember it, what the physician said the other day about coffee and about sleep at night"


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


def on(engine: Engine, day: date) -> GoldenTest:
    """The golden test as it would be on some day."""
    memory = engine.capabilities
    return GoldenTest(
        engine.database, memory.golden, memory.insights, memory.changes, engine.cognition, today=lambda: day
    )


async def forget_all(engine: Engine, namespace: str, ids: list[int]) -> None:
    for insight in ids:
        await engine.forget.item(namespace, f"insight:{insight}")


async def test_precision_is_the_part_of_five_places_that_held_what_was_expected(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    await engine.golden_test.add(
        namespace, [Entry(SHORT, stored[3:]), Entry(MEDIUM, stored[3:]), Entry(LONG, [stored[0], stored[2]])]
    )
    report = await engine.golden_test.run(namespace)
    assert report.run.day == golden_test.utc_today()
    assert report.run.precision_at_5 == pytest.approx((1 + 1 + 2) / 15)
    assert report.run.baseline_precision == report.run.precision_at_5
    assert (report.run.drift_detected, report.run.queries_tested, report.details) == (False, 3, NORMAL)
    assert {length: (part.count, part.precision_at_5) for length, part in report.breakdown.items()} == {
        "short": (1, 0.2),
        "medium": (1, 0.2),
        "long": (1, 0.4),
    }
    async with engine.database.reading(namespace) as db:
        results = await engine.capabilities.golden.results(db, report.run.day)
    assert [(result.query_type, result.hits) for result in results] == [("short", 1), ("medium", 1), ("long", 2)]
    assert results[0].found_ids[0] == stored[3]
    assert len(results[0].found_ids) == len(TEXTS)


async def test_a_length_without_queries_has_no_precision(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    await engine.golden_test.add(namespace, [Entry(SHORT, stored[3:])])
    breakdown = (await engine.golden_test.run(namespace)).breakdown
    assert (breakdown["long"].count, breakdown["long"].precision_at_5) == (0, None)


async def test_drift_is_told_against_the_first_run_until_there_is_a_new_baseline(
    engine: Engine, namespace: str
) -> None:
    stored = await fill(engine, namespace)
    await engine.golden_test.add(namespace, [Entry(SHORT, stored[:2]), Entry(MEDIUM, stored[2:])])
    first = await on(engine, DAY).run(namespace)
    assert first.run.precision_at_5 == pytest.approx(0.4)
    await forget_all(engine, namespace, stored[:1])
    second = await on(engine, DAY + timedelta(days=1)).run(namespace)
    assert [second.run.precision_at_5, second.run.baseline_precision] == pytest.approx([0.3, 0.4])
    assert second.run.drift_detected
    assert second.details == "Drift: precision at 5 is 0.300, 25.0% below the baseline of 0.400 set on 2026-03-01."
    third = await on(engine, DAY + timedelta(days=2)).run(namespace, new_baseline=True)
    assert third.run.baseline_precision == pytest.approx(0.3)
    assert not third.run.drift_detected
    fourth = await on(engine, DAY + timedelta(days=3)).run(namespace)
    assert not fourth.run.drift_detected
    history = await engine.golden_test.history(namespace)
    assert history == [first.run, second.run, third.run, fourth.run]
    assert await engine.golden_test.history(namespace, limit=2) == [third.run, fourth.run]


async def test_a_second_run_of_a_day_replaces_the_first_but_not_the_baseline(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    (kept, gone) = await engine.golden_test.add(namespace, [Entry(SHORT, stored), Entry(MEDIUM, stored)])
    today = on(engine, DAY)
    before = await today.run(namespace)
    await engine.golden_test.remove(namespace, gone.id)
    await forget_all(engine, namespace, stored[:2])
    after = await today.run(namespace)
    assert after.run.baseline_precision == before.run.precision_at_5
    assert after.run.drift_detected
    assert await engine.golden_test.history(namespace) == [after.run]
    async with engine.database.reading(namespace) as db:
        assert [result.query_id for result in await engine.capabilities.golden.results(db, DAY)] == [kept.id]


async def test_a_new_query_that_is_answered_perfectly_is_no_drift(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    await engine.golden_test.add(namespace, [Entry(SHORT, stored)])
    await on(engine, DAY).run(namespace)
    (added,) = await engine.golden_test.add(namespace, [Entry(MEDIUM, stored[3:])])
    report = await on(engine, DAY + timedelta(days=1)).run(namespace)
    assert [report.run.precision_at_5, report.run.baseline_precision] == pytest.approx([0.5, 0.5])
    assert not report.run.drift_detected
    assert report.changes == SetChanges(new=(added.id,))
    assert report.details == (
        f"{NORMAL}. The golden set has changed (1 new): drift is measured on the 1 unchanged query. "
        "For the others, this run is the baseline."
    )
    assert (await on(engine, DAY + timedelta(days=2)).run(namespace)).details == NORMAL


async def test_drift_of_the_same_queries_shows_through_new_ones(engine: Engine, namespace: str) -> None:
    """New queries count as they are, so a fall of the old ones would be thinned out among them."""
    stored = await fill(engine, namespace)
    await engine.golden_test.add(namespace, [Entry(SHORT, stored[:2])])
    await on(engine, DAY).run(namespace)
    many = [Entry(f"{MEDIUM} {word}", stored[1:]) for word in ("really", "exactly", "then", "now", "please", "again")]
    await engine.golden_test.add(namespace, [*many, *(Entry(f"{each.query}?", stored[1:]) for each in many)])
    await forget_all(engine, namespace, stored[:1])
    report = await on(engine, DAY + timedelta(days=1)).run(namespace)
    assert report.run.precision_at_5 > report.run.baseline_precision * 0.95
    assert report.run.drift_detected
    assert "precision at 5 is 0.200, 50.0% below the baseline of 0.400 set on 2026-03-01. The golden" in report.details


async def test_changed_and_removed_queries_are_told_and_not_compared(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    entries = [Entry(SHORT, stored), Entry(MEDIUM, stored), Entry(LONG, stored)]
    (same, changed, removed) = await engine.golden_test.add(namespace, entries)
    await on(engine, DAY).run(namespace)
    await engine.golden_test.add(namespace, [Entry(MEDIUM, stored[3:])])
    await engine.golden_test.remove(namespace, removed.id)
    report = await on(engine, DAY + timedelta(days=1)).run(namespace)
    assert report.changes == SetChanges(changed=(changed.id,), removed=(removed.id,))
    assert not report.run.drift_detected
    assert "has changed (1 with changed expected insights, 1 removed): drift is measured on" in report.details
    await engine.golden_test.remove(namespace, same.id)
    await engine.golden_test.add(namespace, [Entry(MEDIUM, stored)])
    report = await on(engine, DAY + timedelta(days=2)).run(namespace)
    assert "no query can be compared, so this run is the new baseline" in report.details
    assert not report.run.drift_detected


async def test_the_order_of_expectations_is_no_change(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    await engine.golden_test.add(namespace, [Entry(SHORT, stored[:2])])
    await on(engine, DAY).run(namespace)
    await engine.golden_test.add(namespace, [Entry(SHORT, stored[1::-1])])
    assert (await on(engine, DAY + timedelta(days=1)).run(namespace)).details == NORMAL


async def test_a_new_baseline_forgets_queries_that_are_gone(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    (_, gone) = await engine.golden_test.add(namespace, [Entry(SHORT, stored), Entry(MEDIUM, stored)])
    await on(engine, DAY).run(namespace)
    await engine.golden_test.remove(namespace, gone.id)
    await on(engine, DAY + timedelta(days=1)).run(namespace, new_baseline=True)
    assert (await on(engine, DAY + timedelta(days=2)).run(namespace)).details == NORMAL


async def test_an_empty_golden_set_is_an_error(engine: Engine, namespace: str) -> None:
    with pytest.raises(NotFound, match="golden test set is empty"):
        await engine.golden_test.run(namespace)
    assert await engine.golden_test.history(namespace) == []


async def test_a_golden_set_in_which_nothing_is_expected_is_told_from_an_empty_one(
    engine: Engine, namespace: str
) -> None:
    await engine.golden_test.add(namespace, [Entry("to be judged, and expecting nothing")])
    with pytest.raises(NotFound, match="has 1 query without expected insights: nothing can be measured"):
        await engine.golden_test.run(namespace)
    await engine.golden_test.add(namespace, [Entry("another one to be judged")])
    with pytest.raises(NotFound, match=r"has 2 queries, none with expected insights: nothing .* --expect ID"):
        await engine.golden_test.run(namespace)
    assert await engine.golden_test.history(namespace) == []


async def test_a_query_that_expects_nothing_is_not_measured(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    await engine.golden_test.add(namespace, [Entry(SHORT, stored[3:]), Entry("to be judged")])
    assert (await engine.golden_test.run(namespace)).run.queries_tested == 1


async def test_adding_a_query_again_changes_what_it_expects(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    (before,) = await engine.golden_test.add(namespace, [Entry(SHORT, stored[:1])])
    assert (before.change, before.expected_before) == ("added", None)
    (after,) = await engine.golden_test.add(namespace, [Entry(SHORT, [stored[3], stored[3]])])
    assert (after.id, after.expected_ids) == (before.id, stored[3:])
    assert (after.change, after.expected_before) == ("changed", stored[:1])
    assert [query.expected_ids for query in await engine.golden_test.queries(namespace)] == [stored[3:]]


async def test_adding_a_query_again_without_expectations_leaves_it_as_it_is(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    await engine.golden_test.add(namespace, [Entry(SHORT, stored)])
    (again,) = await engine.golden_test.add(namespace, [Entry(SHORT)])
    assert (again.change, again.expected_ids) == ("unchanged", stored)
    (emptied,) = await engine.golden_test.add(namespace, [Entry(SHORT, [])])
    assert (emptied.change, emptied.expected_ids) == ("changed", [])


async def test_queries_longer_than_an_index_can_hold_are_kept_apart(engine: Engine, namespace: str) -> None:
    words = "word " * 3990
    await engine.golden_test.add(namespace, [Entry(words + "one"), Entry(words + "two")])
    assert len(await engine.golden_test.queries(namespace)) == 2


async def test_a_search_that_fails_leaves_no_run(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    await engine.golden_test.add(namespace, [Entry(SHORT, stored)])
    await engine.database.close()
    with pytest.raises(Unavailable):
        await engine.golden_test.run(namespace)


async def test_namespaces_have_golden_sets_of_their_own(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    (added,) = await engine.golden_test.add(namespace, [Entry(SHORT, stored)])
    other = f"{namespace}-other"
    assert await engine.golden_test.queries(other) == []
    with pytest.raises(NotFound, match="expect contains unknown insight ids"):
        await engine.golden_test.add(other, [Entry(SHORT, stored)])
    with pytest.raises(NotFound, match=f"query_id {added.id} is not in the golden set"):
        await engine.golden_test.remove(other, added.id)


@pytest.mark.parametrize(
    ("entry", "error", "sentence"),
    [
        (Entry(" "), Invalid, "query is empty"),
        (Entry("🎉"), Invalid, "query has no letters"),
        (Entry("tea", [2**63]), NotFound, f"expect contains unknown insight ids: {2**63}"),
        (Entry("tea", [0], "golden.jsonl line 7: "), NotFound, "golden.jsonl line 7: expect contains unknown insight"),
        (Entry("tea", ["1"]), Invalid, "expect must contain insight ids"),  # type: ignore[list-item]
        (Entry("tea", [True]), Invalid, r"\(whole numbers\), not True"),
        (Entry("tea", "12"), Invalid, "expect must be a list"),  # type: ignore[arg-type]
        (Entry("tea", [1] * 101), Invalid, "expect has 101 ids, more than the limit of 100"),
    ],
)
async def test_a_bad_entry_is_refused_and_with_it_all_others(
    engine: Engine, namespace: str, entry: Entry, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        await engine.golden_test.add(namespace, [Entry("a good one"), entry])
    assert await engine.golden_test.queries(namespace) == []


async def test_a_golden_set_has_a_limit(engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden_test, "MAX_QUERIES", 2)
    await engine.golden_test.add(namespace, [Entry("one")])
    with pytest.raises(LimitReached, match="at most 2 queries"):
        await engine.golden_test.add(namespace, [Entry("two"), Entry("three")])
    await engine.golden_test.add(namespace, [Entry("one"), Entry("two")])
    assert len(await engine.golden_test.queries(namespace)) == 2


@pytest.mark.parametrize("query_id", [0, -1, 2**63, 7])
async def test_an_unknown_query_cannot_be_removed(engine: Engine, namespace: str, query_id: int) -> None:
    with pytest.raises(NotFound, match=f"query_id {query_id} is not in the golden set"):
        await engine.golden_test.remove(namespace, query_id)


@pytest.mark.parametrize(
    ("precision", "baseline", "drifted"),
    [
        (0.78, 0.82, False),
        (0.779, 0.82, False),
        (0.778, 0.82, True),
        (0.76, 0.8, False),
        (0.7599, 0.8, True),
        (0.19, 0.2, False),
        (1.0, 0.5, False),
        (0.0, 0.0, False),
    ],
)
def test_drift_is_a_fall_of_more_than_a_twentieth_of_the_baseline(
    precision: float, baseline: float, drifted: bool
) -> None:
    assert has_drifted(precision, baseline) is drifted


@pytest.mark.parametrize(
    ("query", "words", "length"),
    [
        ("one", 1, "short"),
        ("one two three four five", 5, "short"),
        ("one two - three four five", 5, "short"),
        ("one two three four five six", 6, "medium"),
        (" ".join(["word"] * 15), 15, "medium"),
        (" ".join(["word"] * 16), 16, "long"),
        ("我的猫最喜欢吃什么鱼", 5, "short"),
        ("我的猫最喜欢吃什么鱼呢", 6, "medium"),
    ],
)
def test_a_query_is_short_medium_or_long_by_its_words(query: str, words: int, length: Any) -> None:
    assert (word_count(query), length_of(query)) == (words, length)
