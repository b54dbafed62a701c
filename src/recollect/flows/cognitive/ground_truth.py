"""Ground truth: what both judges found relevant to a golden query becomes what it expects, by an explicit step."""

import re
from dataclasses import dataclass, replace
from itertools import chain

from recollect.errors import LimitReached, NotFound
from recollect.flows.cognitive.agreement import RELEVANT_ABOVE
from recollect.flows.cognitive.golden_test import MAX_EXPECTED
from recollect.language.letters import fold
from recollect.memory.changes import Change, Changes
from recollect.memory.cognitive.golden import Golden, GoldenQuery
from recollect.memory.cognitive.insights import Insights
from recollect.memory.cognitive.judging import JudgeScore, Judging
from recollect.storage.database import Database

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Accepted:
    """A golden query after the step, and the ids of judged documents by what became of them."""

    query: GoldenQuery
    added: list[int]
    """Relevant to both judges, and expected from now on."""
    already_expected: list[int]
    irrelevant: list[int]
    """Irrelevant to both. One that is expected all the same stays so: the user may know better."""
    disputed: list[int]
    """Relevant to one judge only."""
    unknown: list[int]
    """Relevant to both, but there is no insight of that id."""


class GroundTruth:
    """Turns judgements into expectations."""

    def __init__(
        self, database: Database, golden: Golden, judging: Judging, insights: Insights, changes: Changes
    ) -> None:
        self._database = database
        self._golden = golden
        self._judging = judging
        self._insights = insights
        self._changes = changes

    async def accept(self, namespace: str, query_id: int) -> Accepted:
        """Let a golden query expect the insights that both judges found relevant, beside what it expects already.

        Where a document was judged several times, the last time counts.
        """
        async with self._database.transaction(namespace) as tx:
            query = await self._golden.lock(tx, query_id)
            evaluations = [judgement.evaluation for judgement in await self._judging.of_query(tx, query_id)]
            about_it = [each.scores for each in evaluations if asks_the_same(each.query, query)]
            last: dict[int, JudgeScore] = {}
            for score in chain.from_iterable(about_it):  # the last evaluation comes first
                last.setdefault(score.document_id, score)
            verdicts = list(last.values())
            if not verdicts:
                raise NotFound(f"Query {query_id} has not been judged: call the MCP tool `store_dual_judge_scores`")
            agreed = [score.document_id for score in verdicts if _relevance(score) == (True, True)]
            insights = await self._insights.find(tx, agreed)
            added = [insight for insight in agreed if insight in insights and insight not in query.expected_ids]
            expected = [*query.expected_ids, *added]
            if len(expected) > MAX_EXPECTED:
                raise LimitReached(
                    f"Query {query_id} would expect {len(expected)} insights, more than the limit of {MAX_EXPECTED}"
                )
            await self._golden.expect(tx, query_id, expected)
            if added:
                await self._changes.record(tx, [Change("update", "golden", str(query_id))])
        return Accepted(
            replace(query, expected_ids=expected),
            added,
            [insight for insight in agreed if insight in query.expected_ids],
            [score.document_id for score in verdicts if _relevance(score) == (False, False)],
            [score.document_id for score in verdicts if len(set(_relevance(score))) == 2],
            [insight for insight in agreed if insight not in insights],
        )


def asks_the_same(query: str, golden: GoldenQuery) -> bool:
    """Whether a query that judges are asked is the golden one, whatever its case, white space and punctuation."""
    return _words(query) == _words(golden.query)


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text))


def _relevance(score: JudgeScore) -> tuple[bool, bool]:
    return score.judge1_score > RELEVANT_ABOVE, score.judge2_score > RELEVANT_ABOVE
