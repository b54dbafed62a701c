"""Golden queries: what a good search finds for them, how well each day's run did, and the baseline it is held to."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal

from recollect import checks
from recollect.errors import NotFound
from recollect.storage.database import Statements, Transaction
from recollect.storage.record import Record
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="golden.sql"):
    known: Query
    put: Query
    keep: Query
    queries: Query
    find: Query
    lock: Query
    expect: Query
    count: Query
    remove: Query
    baselines: Query
    begin: Query
    end: Query
    record: Query
    forget_results: Query
    add_results: Query
    history: Query
    results: Query
    page_golden_queries: Query
    restore_golden_queries: Query
    compare_golden_queries: Query
    shown_golden_queries: Query
    page_golden_runs: Query
    restore_golden_runs: Query
    compare_golden_runs: Query
    page_golden_results: Query
    restore_golden_results: Query
    compare_golden_results: Query
    page_golden_query_baselines: Query
    restore_golden_query_baselines: Query
    compare_golden_query_baselines: Query


QUERY_RECORD = Record(
    "golden_query",
    "golden_queries",
    ("id",),
    _Sql.page_golden_queries,
    _Sql.restore_golden_queries,
    _Sql.compare_golden_queries,
    shown=_Sql.shown_golden_queries,
)
RUN_RECORD = Record(
    "golden_run", "golden_runs", ("day",), _Sql.page_golden_runs, _Sql.restore_golden_runs, _Sql.compare_golden_runs
)
RESULT_RECORD = Record(
    "golden_result",
    "golden_results",
    ("day", "query_id"),
    _Sql.page_golden_results,
    _Sql.restore_golden_results,
    _Sql.compare_golden_results,
)
BASELINE_RECORD = Record(
    "golden_query_baseline",
    "golden_query_baselines",
    ("query_id",),
    _Sql.page_golden_query_baselines,
    _Sql.restore_golden_query_baselines,
    _Sql.compare_golden_query_baselines,
)


Change = Literal["added", "changed", "unchanged"]


@dataclass(frozen=True, slots=True)
class GoldenQuery:
    """A query and the insights it should find; one that expects none is there to be judged, and is not measured."""

    id: int
    query: str
    expected_ids: list[int]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PutQuery(GoldenQuery):
    """A query that was added, and what it expected before; None if it is new."""

    expected_before: list[int] | None

    @property
    def change(self) -> Change:
        """What adding it has done."""
        if self.expected_before is None:
            return "added"
        return "unchanged" if set(self.expected_before) == set(self.expected_ids) else "changed"


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What one query of a run found, and how much of that was expected."""

    query_id: int
    query_type: str
    hits: int
    found_ids: list[int]


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a query found when it was first measured with these expectations."""

    query_id: int
    expected_ids: list[int]
    hits: int
    set_on: date


@dataclass(frozen=True, slots=True)
class GoldenRun:
    """The run of one day."""

    day: date
    precision_at_5: float
    baseline_precision: float
    drift_detected: bool
    queries_tested: int
    fingerprint: str


class Golden:
    """Stores the golden set, one run a day, and the baseline."""

    async def put(self, tx: Transaction, query: str, expected_ids: list[int] | None) -> PutQuery:
        """Add a query, or give the one that is there already another expectation; None leaves it as it is."""
        digest = hashlib.sha256(query.encode()).digest()
        known = await tx.first(_Sql.known, digest=digest)
        before = None if known is None else known["expected_ids"]
        if expected_ids is None:
            row = await tx.one(_Sql.keep, query=query, digest=digest)
        else:
            row = await tx.one(_Sql.put, query=query, digest=digest, expected_ids=expected_ids)
        if known is None:
            tx.tally.add(None, query)
        return PutQuery(row["id"], query, row["expected_ids"], row["created_at"], before)

    async def queries(self, db: Statements) -> list[GoldenQuery]:
        """The golden set in the order it was made."""
        return [GoldenQuery(*row) for row in await db.all(_Sql.queries)]

    async def find(self, db: Statements, query_id: int) -> GoldenQuery:
        """One query of the golden set; NotFound if it has none of this id."""
        return GoldenQuery(*await _one(db, _Sql.find, query_id))

    async def lock(self, tx: Transaction, query_id: int) -> GoldenQuery:
        """The same, locked against changes until the transaction ends."""
        return GoldenQuery(*await _one(tx, _Sql.lock, query_id))

    async def expect(self, tx: Transaction, query_id: int, expected_ids: list[int]) -> None:
        """Give a query another expectation."""
        await tx.all(_Sql.expect, query_id=query_id, expected_ids=expected_ids)

    async def count(self, db: Statements) -> int:
        """How large the golden set is."""
        counted: int = (await db.one(_Sql.count))["count"]
        return counted

    async def remove(self, tx: Transaction, query_id: int) -> None:
        """Delete one query; NotFound if there is none."""
        await _one(tx, _Sql.remove, query_id)

    async def baselines(self, db: Statements) -> dict[int, Baseline]:
        """What runs are held to, by the id of the query."""
        return {row["query_id"]: Baseline(*row) for row in await db.all(_Sql.baselines)}

    async def begin(self, tx: Transaction, baselines: Collection[Baseline]) -> None:
        """Hold queries to what they found now."""
        await tx.all(
            _Sql.begin,
            query_ids=[baseline.query_id for baseline in baselines],
            expected_ids=[_array(baseline.expected_ids) for baseline in baselines],
            hits=[baseline.hits for baseline in baselines],
            set_ons=[baseline.set_on for baseline in baselines],
        )

    async def end(self, tx: Transaction, query_ids: Sequence[int]) -> None:
        """Forget the baselines of queries that are no longer measured."""
        await tx.all(_Sql.end, query_ids=list(query_ids))

    async def record(self, tx: Transaction, run: GoldenRun, results: Sequence[QueryResult]) -> None:
        """Store a run; an earlier one of the same day is replaced."""
        await tx.all(
            _Sql.record,
            day=run.day,
            precision_at_5=run.precision_at_5,
            baseline_precision=run.baseline_precision,
            drift_detected=run.drift_detected,
            queries_tested=run.queries_tested,
            fingerprint=run.fingerprint,
        )
        await tx.all(_Sql.forget_results, day=run.day)
        await tx.all(
            _Sql.add_results,
            day=run.day,
            query_ids=[result.query_id for result in results],
            query_types=[result.query_type for result in results],
            hits=[result.hits for result in results],
            found_ids=[_array(result.found_ids) for result in results],
        )

    async def history(self, db: Statements, limit: int) -> list[GoldenRun]:
        """The last runs, the oldest first."""
        return [GoldenRun(*row) for row in reversed(await db.all(_Sql.history, limit=limit))]

    async def results(self, db: Statements, day: date) -> list[QueryResult]:
        """What the run of a day found for each query."""
        return [QueryResult(*row) for row in await db.all(_Sql.results, day=day)]


def _array(ids: Sequence[int]) -> str:
    """Ids as PostgreSQL writes an array: arrays of different lengths travel as texts."""
    return "{" + ",".join(map(str, ids)) + "}"


async def _one(db: Statements, query: Query, query_id: int) -> Any:
    """The row of a query of the golden set."""
    row = await db.first(query, query_id=query_id) if 0 < query_id <= checks.LARGEST_ID else None
    if row is None:
        raise NotFound(
            f"query_id {query_id} is not in the golden set: list ids with `recollect golden list`, "
            "add a query with `recollect golden add QUERY`"
        )
    return row
