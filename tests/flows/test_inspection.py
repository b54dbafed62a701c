"""Inspection: the ranking that an answer is taken from, which is exactly the answer that recall gives."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product

import pytest

from recollect.engine import Engine
from recollect.flows.search.recollection import BEYOND, Candidate, Memory, Recollection
from recollect.flows.search.relevance import Floor
from recollect.language.tokens import estimate_tokens
from recollect.memory.index.search import Scope
from tests.flows.talk import say_all

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
QUESTION = "Where is the spare key of the garden shed?"
SAID = (
    "The spare key is under the blue flowerpot.",
    "The garden shed has a new door.",
    "the spare key is under the blue flowerpot",
    "We painted the fence green.",
    "My neighbour keeps a key for us.",
    "The shed needs a new roof before winter.",
    "I had soup for lunch.",
    "The GARDEN shed has a new door!",
    "Keys get lost all the time.",
    "Our dog sleeps in the shed.",
    "The spare room is ready for guests.",
    "The spare key is under the blue flowerpot!",
    "The train leaves at nine.",
    "Garden work starts in spring.",
)


def plain(memory: Memory) -> Memory:
    """Without citations, which are of the passage in one and of the whole item in the other."""
    assert memory.explanation is not None
    return replace(memory, explanation=replace(memory.explanation, citations=(), cited_words=()))


def comparable(found: Recollection) -> Recollection:
    return replace(found, memories=list(map(plain, found.memories)))


def of(candidates: list[Candidate], fate: str) -> list[Memory]:
    return [candidate.memory for candidate in candidates if candidate.fate == fate]


@pytest.fixture
async def talk(engine: Engine, namespace: str) -> Engine:
    await say_all(engine, namespace, "ann", *SAID)
    await engine.indexer.flush(namespace)
    return engine


async def test_an_inspection_has_the_answer_of_recall_whatever_the_limits(talk: Engine, namespace: str) -> None:
    ranking = await talk.recall.inspect(namespace, QUESTION, Scope(), top_k=100, now=NOW)
    ranked = [candidate.memory for candidate in ranking.candidates]
    assert 8 < len(ranked) < len(SAID), "duplicates are folded"
    relevances = sorted({memory.relevance for memory in ranked})
    floors: list[Floor | None] = [None, "default", 0.0, relevances[1], relevances[-2], 1.0]
    budgets = [None, 1, estimate_tokens(ranked[0].text) + estimate_tokens(ranked[-1].text)]
    for floor, budget, top_k in product(floors, budgets, (1, 3, len(ranked), 100)):
        options = {"min_relevance": floor, "token_budget": budget, "top_k": top_k, "now": NOW}
        inspection = await talk.recall.inspect(namespace, QUESTION, Scope(), **options)  # type: ignore[arg-type]
        found = await talk.recall.recall(namespace, QUESTION, explain=True, **options)  # type: ignore[arg-type]
        assert comparable(inspection.found) == comparable(found), options
        fates = [candidate.fate for candidate in inspection.candidates]
        assert of(inspection.candidates, "shown") == inspection.found.memories
        assert len(fates[top_k:]) == min(BEYOND, max(0, len(ranked) - top_k)), options
        assert {*fates[top_k:]} <= {"beyond", "below_floor"}, options
        assert "beyond" not in fates[:top_k]
        seen = [candidate.memory.id for candidate in inspection.candidates]
        assert seen == [memory.id for memory in ranked[: top_k + BEYOND]], options


async def test_what_the_floor_cut_is_told_from_what_did_not_fit(talk: Engine, namespace: str) -> None:
    scope = Scope(owner="ann")
    everything = (await talk.recall.recall(namespace, QUESTION, scope, now=NOW)).memories
    floor = everything[1].relevance
    inspection = await talk.recall.inspect(namespace, QUESTION, scope, min_relevance=floor, token_budget=1, now=NOW)
    assert inspection.found.memories == []
    assert not inspection.found.answered
    fitting = [memory.id for memory in everything if memory.relevance >= floor]
    assert [memory.id for memory in of(inspection.candidates, "over_budget")] == fitting
    assert all(memory.relevance < floor for memory in of(inspection.candidates, "below_floor"))


async def test_a_question_that_nothing_answers_shows_what_the_default_floor_cut(talk: Engine, namespace: str) -> None:
    question = "Which violinist won the competition in Brussels?"
    inspection = await talk.recall.inspect(namespace, question, Scope(), min_relevance="default", top_k=2)
    assert inspection.found.memories == []
    assert [candidate.fate for candidate in inspection.candidates] == ["below_floor"] * (2 + BEYOND)


async def test_words_are_cited_where_they_stand_in_the_passage(engine: Engine, namespace: str) -> None:
    filler = "The committee met again and nothing of note was decided that day. " * 60
    await engine.remember.document(namespace, f"{filler}The treasure lies beneath the lighthouse. {filler}", None, None)
    inspection = await engine.recall.inspect(namespace, "Where does the treasure lie?", Scope())
    (best, *_) = inspection.found.memories
    assert best.explanation is not None
    cited = [best.text[start:end] for start, end in best.explanation.citations]
    assert cited == list(best.explanation.cited_words) == ["treasure", "lies"]
