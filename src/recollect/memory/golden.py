"""Golden queries: what a good search finds for them, how well each day's run did, and the baseline it is held to."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from recollect.storage.database import Statements, Transaction
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="golden.sql"):
    put: Query
    queries: Query
    find: Query
    count: Query
    remove: Query
    first_baseline: Query
    new_baseline: Query
    baseline: Query
    record: Query
    forget_results: Query
    add_results: Query
    history: Query
    results: Query


@dataclass(frozen=True, slots=True)
class GoldenQuery:
    """A query and the insights it should find; one that expects none is there to be judged, and is not measured."""

    id: int
    query: str
    expected_ids: list[int]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What one query of a run found, and how much of that was expected."""

    query_id: int
    query_type: str
    hits: int
    found_ids: list[int]


@dataclass(frozen=True, slots=True)
class Baseline:
    """The precision that runs are held to, of which golden set, and since when."""

    precision_at_5: float
    fingerprint: str
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

    async def put(self, tx: Transaction, query: str, expected_ids: list[int]) -> GoldenQuery:
        """Add a query, or give the one that is there already another expectation."""
        row = await tx.one(_Sql.put, query, hashlib.sha256(query.encode()).digest(), expected_ids)
        return GoldenQuery(row["id"], query, expected_ids, row["created_at"])

    async def queries(self, db: Statements) -> list[GoldenQuery]:
        """The golden set in the order it was made."""
        return [GoldenQuery(*row) for row in await db.all(_Sql.queries)]

    async def find(self, db: Statements, query_id: int) -> GoldenQuery | None:
        """One query of the golden set."""
        row = await db.first(_Sql.find, query_id)
        return None if row is None else GoldenQuery(*row)

    async def count(self, db: Statements) -> int:
        """How large the golden set is."""
        counted: int = (await db.one(_Sql.count))["count"]
        return counted

    async def remove(self, tx: Transaction, query_id: int) -> bool:
        """Delete one query; False if there is none."""
        return await tx.first(_Sql.remove, query_id) is not None

    async def baseline(self, tx: Transaction, measured: Baseline, *, replace: bool) -> Baseline:
        """The baseline; what was just measured becomes it if there is none, or if it is to be replaced."""
        statement = _Sql.new_baseline if replace else _Sql.first_baseline
        await tx.all(statement, measured.precision_at_5, measured.fingerprint, measured.set_on)
        return Baseline(*await tx.one(_Sql.baseline))

    async def record(self, tx: Transaction, run: GoldenRun, results: Sequence[QueryResult]) -> None:
        """Store a run; an earlier one of the same day is replaced."""
        await tx.all(
            _Sql.record,
            run.day,
            run.precision_at_5,
            run.baseline_precision,
            run.drift_detected,
            run.queries_tested,
            run.fingerprint,
        )
        await tx.all(_Sql.forget_results, run.day)
        await tx.all(
            _Sql.add_results,
            run.day,
            [result.query_id for result in results],
            [result.query_type for result in results],
            [result.hits for result in results],
            ["{" + ",".join(map(str, result.found_ids)) + "}" for result in results],
        )

    async def history(self, db: Statements, limit: int) -> list[GoldenRun]:
        """The last runs, the oldest first."""
        return [GoldenRun(*row) for row in reversed(await db.all(_Sql.history, limit))]

    async def results(self, db: Statements, day: date) -> list[QueryResult]:
        """What the run of a day found for each query."""
        return [QueryResult(*row) for row in await db.all(_Sql.results, day)]
