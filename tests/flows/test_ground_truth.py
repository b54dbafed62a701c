"""Agreed judgements become expectations of a golden query, by an explicit step."""

from typing import Literal

import pytest

from recollect.engine import Engine
from recollect.errors import LimitReached, NotFound
from recollect.flows.cognitive import ground_truth
from recollect.flows.cognitive.golden_test import Entry
from recollect.memory.cognitive.judging import Evaluation, JudgeScore, Judging
from tests.flows.test_hybrid_search import fill

QUERY = "Which train goes to Lisbon?"


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


async def judged(engine: Engine, namespace: str, query_id: int, query: str, *scores: tuple[int, float, float]) -> None:
    each = tuple(JudgeScore(document, one, "r", other, "r") for document, one, other in scores)
    async with engine.database.transaction(namespace) as tx:
        await Judging().add(tx, Evaluation(query_id, query, "one", "two", 0.5, 0.5, 0.0, "slight", each))


async def test_only_what_both_judges_found_relevant_is_expected(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    (golden,) = await engine.golden_test.add(namespace, [Entry(QUERY, stored[:1])])
    unknown = stored[-1] + 1_000_000
    await judged(
        engine,
        namespace,
        golden.id,
        QUERY,
        *((stored[0], 0.2, 0.1), (stored[1], 0.9, 0.5), (stored[2], 0.3, 0.8), (stored[3], 0.51, 1.0)),
        (unknown, 1.0, 1.0),
    )
    accepted = await engine.ground_truth.accept(namespace, golden.id)
    assert accepted.query.expected_ids == [stored[0], stored[3]]
    assert (accepted.added, accepted.disputed, accepted.irrelevant) == ([stored[3]], stored[1:3], stored[:1])
    assert accepted.unknown == [unknown]
    assert [query.expected_ids for query in await engine.golden_test.queries(namespace)] == [[stored[0], stored[3]]]


async def test_the_last_judgement_of_a_document_counts_if_it_is_about_this_query(
    engine: Engine, namespace: str
) -> None:
    stored = await fill(engine, namespace)
    (golden,) = await engine.golden_test.add(namespace, [Entry(QUERY)])
    await judged(engine, namespace, golden.id, QUERY, (stored[0], 1.0, 1.0), (stored[1], 0.0, 0.0))
    await judged(engine, namespace, golden.id, "which train goes to LISBON", (stored[0], 0.0, 0.0))
    await judged(engine, namespace, golden.id, "Who likes parrots?", (stored[1], 1.0, 1.0))
    accepted = await engine.ground_truth.accept(namespace, golden.id)
    assert (accepted.query.expected_ids, accepted.irrelevant) == ([], stored[:2])


async def test_there_is_nothing_to_accept_without_a_query_or_a_judgement(engine: Engine, namespace: str) -> None:
    with pytest.raises(NotFound, match="query_id 7 is not in the golden set"):
        await engine.ground_truth.accept(namespace, 7)
    (golden,) = await engine.golden_test.add(namespace, [Entry(QUERY)])
    with pytest.raises(NotFound, match="has not been judged"):
        await engine.ground_truth.accept(namespace, golden.id)


async def test_more_than_a_query_may_expect_is_refused_whole(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ground_truth, "MAX_EXPECTED", 1)
    stored = await fill(engine, namespace)
    (golden,) = await engine.golden_test.add(namespace, [Entry(QUERY)])
    await judged(engine, namespace, golden.id, QUERY, (stored[0], 1.0, 1.0), (stored[1], 1.0, 1.0))
    with pytest.raises(LimitReached, match="would expect 2 insights, more than the limit of 1"):
        await engine.ground_truth.accept(namespace, golden.id)
    assert [query.expected_ids for query in await engine.golden_test.queries(namespace)] == [[]]
