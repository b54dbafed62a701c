"""Judging: the raw scores of two judges for documents, and how far they agree."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recollect.storage.database import Statements, Transaction
from recollect.storage.record import Record
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="judging.sql"):
    add: Query
    add_scores: Query
    of_query: Query
    scores: Query
    recent: Query
    count_of_documents: Query
    remove_of_documents: Query
    remove_empty: Query
    page_judgements: Query
    restore_judgements: Query
    compare_judgements: Query
    page_judge_scores: Query
    restore_judge_scores: Query
    compare_judge_scores: Query


RECORD = Record(
    "judgement", "judgements", ("id",), _Sql.page_judgements, _Sql.restore_judgements, _Sql.compare_judgements
)
SCORE_RECORD = Record(
    "judge_score",
    "judge_scores",
    ("judgement_id", "document_id"),
    _Sql.page_judge_scores,
    _Sql.restore_judge_scores,
    _Sql.compare_judge_scores,
)

AGREEMENTS = ("poor", "slight", "fair", "moderate", "substantial", "almost perfect")
"""What an agreement may be called: the names of Landis and Koch (1977)."""


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """How relevant both judges found one document, from 0 to 1, and why."""

    document_id: int
    judge1_score: float
    judge1_reason: str
    judge2_score: float
    judge2_reason: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is to be stored of both judges: who they were, and their scores on average and one by one."""

    query_id: int
    query: str
    judge1_model: str
    judge2_model: str
    judge1_score: float
    judge2_score: float
    kappa: float
    agreement: str
    scores: tuple[JudgeScore, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A evaluation that is stored."""

    id: int
    judged_at: datetime
    evaluation: Evaluation


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What both judges said of a document for a query."""

    query_id: int
    query: str
    score: JudgeScore


class Judging:
    """Stores hearings of two judges, whole or not at all."""

    async def add(self, tx: Transaction, evaluation: Evaluation) -> Judgement:
        """Store one evaluation with every raw score."""
        row = await tx.one(
            _Sql.add,
            query_id=evaluation.query_id,
            query=evaluation.query,
            judge1_model=evaluation.judge1_model,
            judge2_model=evaluation.judge2_model,
            judge1_score=evaluation.judge1_score,
            judge2_score=evaluation.judge2_score,
            kappa=evaluation.kappa,
            agreement=evaluation.agreement,
        )
        scores = evaluation.scores
        await tx.all(
            _Sql.add_scores,
            judgement_id=row["id"],
            document_ids=[score.document_id for score in scores],
            judge1_scores=[score.judge1_score for score in scores],
            judge1_reasons=[score.judge1_reason for score in scores],
            judge2_scores=[score.judge2_score for score in scores],
            judge2_reasons=[score.judge2_reason for score in scores],
        )
        return Judgement(row["id"], row["judged_at"], evaluation)

    async def of_query(self, db: Statements, query_id: int, limit: int | None = None) -> list[Judgement]:
        """The evaluations about a golden query, the last first; all of them without a limit."""
        rows = await db.all(_Sql.of_query, query_id=query_id, limit=limit)
        scores: dict[int, list[JudgeScore]] = {row["id"]: [] for row in rows}
        for judgement_id, *score in await db.all(_Sql.scores, judgement_ids=list(scores)):
            scores[judgement_id].append(JudgeScore(*score))
        judgements: list[Judgement] = []
        for row in rows:
            fields = {name: value for name, value in row.items() if name not in ("id", "judged_at")}
            evaluation = Evaluation(**fields, scores=tuple(scores[row["id"]]))
            judgements.append(Judgement(row["id"], row["judged_at"], evaluation))
        return judgements

    async def recent(self, db: Statements, limit: int, most: int) -> list[Verdicts]:
        """The last scores of all queries, newest first, with so many characters of each reason."""
        rows = await db.all(_Sql.recent, limit=limit, most=most)
        return [Verdicts(query_id, query, JudgeScore(*score)) for query_id, query, *score in rows]

    async def count_of_documents(self, db: Statements, ids: Sequence[int]) -> int:
        """How many scores some documents have."""
        return int((await db.one(_Sql.count_of_documents, ids=list(ids)))["scores"])

    async def remove_of_documents(self, tx: Transaction, ids: Sequence[int]) -> int:
        """Delete the scores of documents, and hearings about nothing else; returns how many scores there were."""
        hearings = [row["judgement_id"] for row in await tx.all(_Sql.remove_of_documents, ids=list(ids))]
        if hearings:
            await tx.all(_Sql.remove_empty, hearings=hearings)
        return len(hearings)
