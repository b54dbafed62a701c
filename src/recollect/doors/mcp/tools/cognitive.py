"""The tools of the cognitive-memory contract, except those for the graph."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from recollect.checks import EMBEDDING_DIMENSIONS
from recollect.doors.caller import Caller
from recollect.doors.mcp.errors import as_object
from recollect.doors.mcp.schema import WHOLE, AsOf
from recollect.doors.mcp.tool import ADDS, ASKS_MODELS, READS, Degradable, Tools
from recollect.flows.cognitive import cognition, judge
from recollect.flows.search import fusion
from recollect.memory.cognitive import working

TOOLS = Tools(as_object)

Share = Annotated[float, Field(ge=0.0, le=1.0, strict=True)]
EmbeddingStatus = Literal["success", "pending"]
Success = Literal["success"]

DEFAULT_TOP_K = 5

# Of measured figures.
DIGITS = 4


class Weights(BaseModel):
    """Weights of the two searches."""

    model_config = ConfigDict(extra="forbid")

    semantic: Annotated[Share, Field(description="Weight for semantic search results")] = 0.7
    keyword: Annotated[Share, Field(description="Weight for keyword search results")] = 0.3


class JudgedDocument(BaseModel):
    """A document for both judges. Search results can be passed as they are, with all their fields."""

    model_config = ConfigDict(extra="ignore")

    id: Annotated[int, Field(strict=True, description="Document identifier"), WHOLE]
    content: Annotated[str, Field(strict=True, min_length=1, description="Document content to evaluate for relevance")]


class StoredDialogue(BaseModel):
    """What was logged."""

    id: int
    timestamp: datetime
    session_id: str
    status: Success = "success"


class StoredInsight(BaseModel):
    """What was condensed, and how dense it is."""

    id: int
    embedding_status: EmbeddingStatus
    fidelity_score: float
    timestamp: datetime


class FoundInsight(BaseModel):
    """An insight that matches."""

    id: int
    content: str
    source_ids: list[int]
    score: float


class HybridResults(BaseModel):
    """The insights that match best, and how many each search brought."""

    results: list[FoundInsight]
    query_embedding_dimension: int
    semantic_results_count: int
    keyword_results_count: int
    final_results_count: int
    weights: Weights
    status: Literal["success", "degraded"]


class UpdatedWorkingMemory(BaseModel):
    """The item added and the item evicted."""

    added_id: int
    evicted_id: int | None
    archived_id: int | None
    status: Success = "success"


class StoredEpisode(BaseModel):
    """A lesson that was stored."""

    id: int
    embedding_status: EmbeddingStatus
    query: str
    reward: float
    created_at: datetime


class UnjudgedDocument(BaseModel):
    """A document that has no scores."""

    id: int
    details: str


def _is_empty(value: object) -> bool:
    return not value


class DualJudgeScores(BaseModel):
    """How far two judges agree. Fields outside the contract are present only if they have a value."""

    query_id: int
    judge1_score: float
    judge2_score: float
    kappa: float
    agreement: str
    evaluated_documents: int
    status: Literal["success", "degraded"] = "success"
    details: Annotated[str | None, Field(exclude_if=_is_empty)] = None
    failed_documents: Annotated[list[UnjudgedDocument], Field(exclude_if=_is_empty)] = []


class QueryTypeResult(BaseModel):
    """The precision of queries of about one length."""

    count: int
    precision_at_5: float | None


class QueryBreakdown(BaseModel):
    """The precision by length."""

    short: QueryTypeResult
    medium: QueryTypeResult
    long: QueryTypeResult


class GoldenTestResults(BaseModel):
    """One run of the golden test set."""

    date: str
    precision_at_5: float
    baseline_precision: float
    drift_detected: bool
    queries_tested: int
    details: str
    query_breakdown: QueryBreakdown


class Pong(BaseModel):
    """The ping answer."""

    response: Literal["pong"] = "pong"
    timestamp: datetime
    tool: Literal["ping"] = "ping"
    status: Literal["ok"] = "ok"


@TOOLS.tool("Store raw dialogue", ADDS)
async def store_raw_dialogue(
    caller: Caller,
    session_id: Annotated[str, Field(description="Unique identifier for the dialogue session")],
    speaker: Annotated[str, Field(description="Speaker identifier (user, assistant, etc.)")],
    content: Annotated[str, Field(description="Dialogue content text")],
    metadata: Annotated[
        dict[str, Any] | None, Field(description="Additional metadata for the dialogue (optional)")
    ] = None,
) -> StoredDialogue:
    """Store raw dialogue data to L0 memory"""
    message = await caller.engine.cognition.store_dialogue(caller.namespace, session_id, speaker, content, metadata)
    return StoredDialogue(id=message.seq, timestamp=message.created_at, session_id=message.session_id)


@TOOLS.tool("Compress to L2 insight", ADDS)
async def compress_to_l2_insight(
    caller: Caller,
    content: Annotated[str, Field(description="Compressed insight content to store with embedding")],
    source_ids: Annotated[
        Annotated[list[Annotated[int, WHOLE]], Field(fail_fast=True)],
        Field(description="Array of L0 raw memory IDs that were compressed into this insight"),
    ],
) -> Degradable[StoredInsight]:
    """Compress dialogue data to L2 insight with OpenAI embedding and semantic fidelity check"""
    stored = await caller.engine.cognition.compress(caller.namespace, content, source_ids)
    answer = StoredInsight(
        id=stored.insight.id,
        embedding_status=stored.embedding_status,
        fidelity_score=stored.insight.fidelity,
        timestamp=stored.insight.created_at,
    )
    return Degradable(answer, stored.degraded, stored.warnings)


@TOOLS.tool("Hybrid search", READS)
async def hybrid_search(
    caller: Caller,
    query_text: Annotated[
        str, Field(min_length=1, description="Query text for search (embedding generated automatically)")
    ],
    query_embedding: Annotated[
        Annotated[list[float], Field(min_length=EMBEDDING_DIMENSIONS, max_length=EMBEDDING_DIMENSIONS)] | None,
        Field(
            description="Optional: 1536-dimensional query embedding (auto-generated from query_text if omitted)",
        ),
    ] = None,
    top_k: Annotated[
        int, Field(ge=1, le=cognition.MAX_TOP_K, description="Maximum number of results to return"), WHOLE
    ] = DEFAULT_TOP_K,
    weights: Annotated[
        Weights, Field(description="Weights for fusing semantic and keyword results (must sum to 1.0)")
    ] = Weights(),  # noqa: B008  # never changed
    as_of: AsOf = None,
) -> Degradable[HybridResults]:
    """Perform hybrid semantic + keyword search with RRF fusion. Embedding is generated automatically from query_text
    if not provided."""
    shares = fusion.Weights(weights.semantic, weights.keyword)
    found = await caller.engine.cognition.hybrid_search(
        caller.namespace, query_text, query_embedding, top_k, shares, as_of
    )
    answer = HybridResults(
        results=[
            FoundInsight(
                id=each.insight.id,
                content=each.insight.content,
                source_ids=each.insight.source_ids,
                score=each.score,
            )
            for each in found.results
        ],
        query_embedding_dimension=max(EMBEDDING_DIMENSIONS, found.query_dimensions) if found.query_dimensions else 0,
        semantic_results_count=found.semantic_results_count,
        keyword_results_count=found.keyword_results_count,
        final_results_count=len(found.results),
        weights=weights,
        status="success" if found.degraded is None else "degraded",
    )
    return Degradable(answer, found.degraded)


@TOOLS.tool("Update working memory", ADDS)
async def update_working_memory(
    caller: Caller,
    content: Annotated[str, Field(description="Content to store in working memory")],
    importance: Annotated[
        Annotated[float, Field(ge=0.0, le=1.0)] | None,
        Field(
            description="Importance score (0.0-1.0, default: 0.5)",
            # What is in mind already keeps its own when it is stored again without one.
            json_schema_extra={"default": working.DEFAULT_IMPORTANCE},
        ),
    ] = None,
) -> UpdatedWorkingMemory:
    """Add item to Working Memory with atomic eviction handling. Returns {added_id: int, evicted_id: Optional[int],
    archived_id: Optional[int]}"""
    update = await caller.engine.cognition.update_working(caller.namespace, content, importance)
    return UpdatedWorkingMemory(added_id=update.added_id, evicted_id=update.evicted_id, archived_id=update.archived_id)


@TOOLS.tool("Store episode", ADDS)
async def store_episode(
    caller: Caller,
    query: Annotated[str, Field(min_length=1, description="User query that triggered the episode")],
    reward: Annotated[
        float, Field(ge=-1.0, le=1.0, description="Reward score from evaluation (-1.0=poor, +1.0=excellent)")
    ],
    reflection: Annotated[
        str, Field(min_length=1, description="Verbalized lesson learned (format: 'Problem: ... Lesson: ...')")
    ],
) -> Degradable[StoredEpisode]:
    """Store episode memory with query, reward, and reflection for verbal reinforcement learning"""
    stored = await caller.engine.cognition.store_episode(caller.namespace, query, reward, reflection)
    answer = StoredEpisode(
        id=stored.episode.id,
        embedding_status=stored.embedding_status,
        query=stored.episode.query,
        reward=stored.episode.reward,
        created_at=stored.episode.created_at,
    )
    return Degradable(answer, stored.degraded)


@TOOLS.tool("Store dual judge scores", ASKS_MODELS)
async def store_dual_judge_scores(
    caller: Caller,
    query_id: Annotated[
        int, Field(ge=1, description="Ground truth query ID (must exist in ground_truth table)"), WHOLE
    ],
    query: Annotated[str, Field(min_length=1, description="User query string for relevance evaluation")],
    docs: Annotated[
        list[JudgedDocument],
        Field(
            min_length=1,
            max_length=judge.MAX_DOCUMENTS,
            description="Array of documents to evaluate with both judges",
        ),
    ],
    progress: judge.Progress,
) -> DualJudgeScores:
    """Store dual judge evaluation scores using GPT-4o and Haiku for IRR validation. Evaluates documents with two
    independent judges and calculates Cohen's Kappa for methodologically valid ground truth creation."""
    documents = [judge.Document(document.id, document.content) for document in docs]
    heard = await caller.engine.judges.evaluate(caller.namespace, query_id, query, documents, progress)
    judged = heard.judgement.evaluation
    return DualJudgeScores(
        query_id=judged.query_id,
        judge1_score=round(judged.judge1_score, DIGITS),
        judge2_score=round(judged.judge2_score, DIGITS),
        kappa=round(judged.kappa, DIGITS),
        agreement=judged.agreement,
        evaluated_documents=len(judged.scores),
        status="degraded" if heard.unjudged else "success",
        details=" ".join(judge.reservations(heard)),
        failed_documents=[
            UnjudgedDocument(id=document.document_id, details=document.reason) for document in heard.unjudged
        ],
    )


@TOOLS.tool("Get golden test results", ADDS)
async def get_golden_test_results(caller: Caller) -> GoldenTestResults:
    """Execute Golden Test Set for daily Precision@5 tracking and model drift detection. Returns daily metrics and
    drift detection status."""
    report = await caller.engine.golden_test.run(caller.namespace)
    breakdown = {
        length: QueryTypeResult(
            count=part.count,
            precision_at_5=None if part.precision_at_5 is None else round(part.precision_at_5, DIGITS),
        )
        for length, part in report.breakdown.items()
    }
    return GoldenTestResults(
        date=report.run.day.isoformat(),
        precision_at_5=round(report.run.precision_at_5, DIGITS),
        baseline_precision=round(report.run.baseline_precision, DIGITS),
        drift_detected=report.run.drift_detected,
        queries_tested=report.run.queries_tested,
        details=report.details,
        query_breakdown=QueryBreakdown(**breakdown),
    )


@TOOLS.tool("Ping", READS)
async def ping(caller: Caller) -> Pong:
    """Simple ping tool for testing connectivity"""
    return Pong(timestamp=datetime.now(UTC))
