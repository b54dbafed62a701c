"""The golden test: precision at 5 of hybrid search on queries whose answers are known, day by day, and its drift."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from recollect import checks, origin
from recollect.errors import Invalid, LimitReached, NotFound
from recollect.flows.cognitive.cognition import Cognition
from recollect.flows.cognitive.drift import RANKS, TOLERATED_FALL, SetChanges, compare, precision
from recollect.flows.defence.masking import MasksSecrets, masks
from recollect.flows.indexing.namespace_models import NotSearched
from recollect.language.lengths import LENGTHS, Length, length_of
from recollect.memory.changes import Change, Changes
from recollect.memory.cognitive.golden import Baseline, Golden, GoldenQuery, GoldenRun, PutQuery, QueryResult
from recollect.memory.cognitive.insights import Insight, Insights
from recollect.storage.database import Database, Statements

MAX_QUERIES = 1000
MAX_EXPECTED = 100
MAX_RUNS = 3650

EMPTY_SET = (
    "The golden test set is empty: there are no queries to measure precision with. "
    "Add one with `recollect golden add QUERY --expect ID`."
)
NOTHING_EXPECTED = (
    "The golden test set has {queries}: nothing can be measured. "
    "Set what a query should find with `recollect golden add QUERY --expect ID`."
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A query for the golden set; `place` says where it comes from, for the sentence that refuses it.

    Without expectations, a query that is there already keeps its own, and a new one is there to be judged.
    """

    query: str
    expected_ids: Sequence[int] | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class LengthResult:
    """How well the queries of about one length did; of none, there is no precision."""

    count: int
    precision_at_5: float | None


@dataclass(frozen=True, slots=True)
class GoldenReport:
    """A run, in words and by the length of its queries, and what could not be compared."""

    run: GoldenRun
    details: str
    breakdown: Mapping[Length, LengthResult]
    changes: SetChanges


@dataclass(frozen=True, slots=True)
class Standing:
    """A golden query, what it found in the last run, and what it is held to; None before its first run."""

    query: GoldenQuery
    result: QueryResult | None
    baseline: Baseline | None

    @property
    def missed(self) -> list[int]:
        """What it expects and did not find among the first five."""
        found = () if self.result is None else self.result.found_ids
        return [] if self.result is None else [each for each in self.query.expected_ids if each not in found]

    @property
    def fall(self) -> int:
        """By how many hits it is below its baseline, if it still expects what it expected then."""
        if self.result is None or self.baseline is None:
            return 0
        same = set(self.baseline.expected_ids) == set(self.query.expected_ids)
        return max(self.baseline.hits - self.result.hits, 0) if same else 0


def threshold(run: GoldenRun) -> float:
    """The precision below which a run counts as drift."""
    return run.baseline_precision * (1 - TOLERATED_FALL)


def utc_today() -> date:
    """Days are those of UTC, on every machine."""
    return datetime.now(UTC).date()


class GoldenTest(MasksSecrets):
    """Keeps the golden set and measures search with it."""

    def __init__(
        self,
        database: Database,
        golden: Golden,
        insights: Insights,
        changes: Changes,
        cognition: Cognition,
        today: Callable[[], date] = utc_today,
    ) -> None:
        self._database = database
        self._golden = golden
        self._insights = insights
        self._changes = changes
        self._cognition = cognition
        self._today = today

    @masks("entries")
    async def add(self, namespace: str, entries: Sequence[Entry]) -> list[PutQuery]:
        """Add queries, all or none; one that is there already expects from now on what is given here, if anything."""
        if len(entries) > MAX_QUERIES:
            raise LimitReached(_too_many())
        checked: list[tuple[str, list[int] | None]] = []
        for entry in entries:
            query, expected, name = entry.query, entry.expected_ids, f"{entry.place}expect"
            checks.question(query, f"{entry.place}query")
            if expected is None:
                checked.append((query, None))
                continue
            if isinstance(expected, str | bytes) or not isinstance(expected, Sequence):
                raise Invalid(f"{name} must be a list of insight ids")
            for insight in expected:
                if isinstance(insight, bool) or not isinstance(insight, int):
                    raise Invalid(f"{name} must contain insight ids (whole numbers), not {insight!r}")
            if len(expected) > MAX_EXPECTED:
                raise Invalid(f"{name} has {len(expected)} ids, more than the limit of {MAX_EXPECTED}")
            _refuse_unknown(entry, [insight for insight in expected if not 0 < insight <= checks.LARGEST_ID])
            checked.append((query, list(dict.fromkeys(expected))))
        async with self._database.transaction(namespace) as tx:
            wanted = sorted({insight for _, expected in checked for insight in expected or ()})
            known = await self._insights.find(tx, wanted)
            for entry, (_, expected) in zip(entries, checked, strict=True):
                _refuse_unknown(entry, [insight for insight in expected or () if insight not in known])
            added = [await self._golden.put(tx, query, expected) for query, expected in checked]
            if await self._golden.count(tx) > MAX_QUERIES:
                raise LimitReached(_too_many())
            await self._changes.record(tx, list(_changes(added)))
        return added

    async def queries(self, namespace: str) -> list[GoldenQuery]:
        """The golden set."""
        async with self._database.reading(namespace) as db:
            return await self._golden.queries(db)

    async def query(self, namespace: str, query_id: int) -> Standing:
        """One query, and how it stands; NotFound if the golden set has none of this id."""
        async with self._database.reading(namespace) as db:
            query = await self._golden.find(db, query_id)
            results, baselines = await self._last(db)
        return Standing(query, results.get(query_id), baselines.get(query_id))

    async def standings(self, namespace: str) -> list[Standing]:
        """How every query stands after the last run, the largest fall and the most that was missed first."""
        async with self._database.reading(namespace) as db:
            queries = await self._golden.queries(db)
            results, baselines = await self._last(db)
        standings = [Standing(query, results.get(query.id), baselines.get(query.id)) for query in queries]
        return sorted(standings, key=lambda each: (-each.fall, -len(each.missed), each.query.id))

    async def expect(
        self, namespace: str, query_id: int, more: Sequence[int] = (), less: Sequence[int] = ()
    ) -> GoldenQuery:
        """Let a query expect other insights beside those that it expects already, and some of these no longer."""
        async with self._database.transaction(namespace) as tx:
            query = await self._golden.lock(tx, query_id)
            known = await self._insights.find(tx, [each for each in more if 0 < each <= checks.LARGEST_ID])
            _refuse_unknown(Entry(query.query), [each for each in more if each not in known])
            expected = [each for each in dict.fromkeys([*query.expected_ids, *more]) if each not in less]
            if len(expected) > MAX_EXPECTED:
                raise LimitReached(f"A golden query can expect at most {MAX_EXPECTED} insights: remove some first")
            if expected != query.expected_ids:
                await self._golden.expect(tx, query_id, expected)
                await self._changes.record(tx, [Change("update", "golden", str(query_id))])
        return replace(query, expected_ids=expected)

    async def insights(self, namespace: str, ids: Sequence[int]) -> dict[int, Insight]:
        """Those of some insights that still exist, by id."""
        async with self._database.reading(namespace) as db:
            found = await self._insights.find(db, ids)
        origin.touch(namespace, origin.READ, "insight", found)
        return found

    async def remove(self, namespace: str, query_id: int) -> None:
        """Take one query out of the golden set, with what judges said of it; past runs keep their figures."""
        async with self._database.transaction(namespace) as tx:
            await self._golden.remove(tx, query_id)
            await self._changes.record(tx, [Change("delete", "golden", str(query_id))])

    async def run(self, namespace: str, *, new_baseline: bool = False) -> GoldenReport:
        """Search for every query that expects something, and hold what it finds to its baseline.

        The first run of a query sets its baseline. One run a day is kept, the last. All searching is done before
        anything is written, so a search that fails leaves yesterday's figures and no half of today's.
        """
        origin.require("write")
        everything = await self.queries(namespace)
        if not everything:
            raise NotFound(EMPTY_SET)
        queries = [query for query in everything if query.expected_ids]
        if not queries:
            there = "1 query without expected insights"
            if len(everything) > 1:
                there = f"{len(everything)} queries, none with expected insights"
            raise NotFound(NOTHING_EXPECTED.format(queries=there))
        results = [await self._result(namespace, query) for query in queries]
        day = self._today()
        # Of sorted lines: in whatever order queries and expectations were added, it is the same.
        lines = sorted(f"{query.query}\n{sorted(query.expected_ids)}" for query in queries)
        fingerprint = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        async with self._database.transaction(namespace) as tx:
            baselines = await self._golden.baselines(tx)
            compared = compare(queries, results, {} if new_baseline else baselines, day)
            run = GoldenRun(
                day,
                _precision(results) or 0.0,
                compared.baseline_precision,
                compared.drift_detected,
                len(results),
                fingerprint,
            )
            await self._golden.record(tx, run, results)
            await self._golden.begin(tx, compared.begun.values())
            await self._golden.end(tx, sorted(baselines.keys() - {query.id for query in queries}))
        of_length = {length: [result for result in results if result.query_type == length] for length in LENGTHS}
        breakdown = {length: LengthResult(len(some), _precision(some)) for length, some in of_length.items()}
        return GoldenReport(run, compared.details(), breakdown, compared.changes)

    async def history(self, namespace: str, limit: int = 90) -> list[GoldenRun]:
        """The last runs, the oldest first."""
        checks.between(limit, 1, MAX_RUNS, "limit")
        async with self._database.reading(namespace) as db:
            return await self._golden.history(db, limit)

    async def _last(self, db: Statements) -> tuple[dict[int, QueryResult], dict[int, Baseline]]:
        """What the last run found and what runs are held to, by the id of the query."""
        runs = await self._golden.history(db, 1)
        results = await self._golden.results(db, runs[0].day) if runs else []
        return {result.query_id: result for result in results}, await self._golden.baselines(db)

    async def _result(self, namespace: str, query: GoldenQuery) -> QueryResult:
        try:
            found = await self._cognition.hybrid_search(namespace, query.query, top_k=RANKS)
        except NotSearched as problem:
            raise type(problem)(_not_recorded(str(problem))) from problem
        if found.degraded is not None:
            raise NotSearched(_not_recorded(found.degraded))
        ids = [result.insight.id for result in found.results]
        return QueryResult(query.id, length_of(query.query), len(set(ids) & set(query.expected_ids)), ids)


def _changes(put: Sequence[PutQuery]) -> Iterator[Change]:
    """What adding queries has changed; a query may be there twice."""
    for query in put:
        if query.change != "unchanged":
            yield Change("add" if query.change == "added" else "update", "golden", str(query.id))


def _not_recorded(degraded: str) -> str:
    return f"The golden test did not run, because semantic search is unavailable: {degraded}"


def _precision(results: Sequence[QueryResult]) -> float | None:
    return precision([result.hits for result in results])


def _refuse_unknown(entry: Entry, unknown: Sequence[int]) -> None:
    if unknown:
        raise NotFound(f"{entry.place}expect contains unknown insight ids: {', '.join(map(str, unknown))}")


def _too_many() -> str:
    return f"A golden set can have at most {MAX_QUERIES:,} queries: remove some with `recollect golden remove ID`"
