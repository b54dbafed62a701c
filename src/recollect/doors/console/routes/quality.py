"""How well search finds what it should: golden queries, their runs, and whether the two judges agree."""

from collections.abc import Sequence

from starlette.responses import Response

from recollect import checks
from recollect.doors.console import charts
from recollect.doors.console.charts import Mark
from recollect.doors.console.visit import Visit, get, post
from recollect.doors.expectations import insight_ids
from recollect.errors import Invalid
from recollect.flows.cognitive.agreement import RELEVANT_ABOVE, is_disputed
from recollect.flows.cognitive.drift import RANKS, TOLERATED_FALL, precision
from recollect.flows.cognitive.golden_test import MAX_QUERIES, Entry, Standing, threshold
from recollect.flows.cognitive.judge import Document
from recollect.flows.indexing.namespace_models import NotSearched
from recollect.memory.cognitive.golden import GoldenRun

PAGE = "/console/quality"
QUERY_PAGE = "/console/quality/query"

ROWS = 50
RUNS = 90

# Of one query, the last hearings of the judges.
HEARINGS = 5


async def quality(visit: Visit) -> Response:
    """The runs over time, every golden query with what it missed, and the judges."""
    skip = visit.number_asked("skip", 0, 0, MAX_QUERIES)
    golden = visit.engine.golden_test
    runs = await golden.history(visit.namespace, RUNS)
    standings = await golden.standings(visit.namespace)
    shown = standings[skip : skip + ROWS]
    overall = await visit.engine.judges.overall(visit.namespace)
    return visit.page(
        "quality.html",
        done=visit.asked("done"),
        last=runs[-1] if runs else None,
        chart=chart_of(runs),
        best=best_of(standings),
        threshold=threshold(runs[-1]) if runs else None,
        tolerated=TOLERATED_FALL,
        ranks=RANKS,
        standings=shown,
        measurable=sum(1 for each in standings if each.query.expected_ids),
        total=len(standings),
        skip=skip,
        following=skip + ROWS if skip + ROWS < len(standings) else None,
        insights=await golden.insights(visit.namespace, [each for one in shown for each in one.missed[:RANKS]]),
        overall=overall,
        disputed=[] if overall is None else overall.disputed[:ROWS],
        missing_key=visit.engine.judges.missing_key,
        relevant_above=RELEVANT_ABOVE,
    )


def best_of(standings: Sequence[Standing]) -> float | None:
    """The precision if the last run had found all that its queries expect; None before a run."""
    expected = [len(each.query.expected_ids) for each in standings if each.result and each.query.expected_ids]
    return precision([min(number, RANKS) for number in expected])


def chart_of(runs: list[GoldenRun]) -> str:
    """The precision of each day with the baseline of that day, and the present threshold."""
    marks = [Mark(run.day.isoformat(), run.precision_at_5, run.drift_detected) for run in runs]
    limit = threshold(runs[-1]) if runs else None
    return charts.line("Precision at 5", marks, limit, baseline=[run.baseline_precision for run in runs])


async def query(visit: Visit) -> Response:
    """One golden query: what it expects, what search finds now, and what the judges said."""
    engine, namespace = visit.engine, visit.namespace
    query_id = visit.number_asked("id", 0, 0, checks.LARGEST_ID)
    standing = await engine.golden_test.query(namespace, query_id)
    try:
        found = await engine.cognition.hybrid_search(namespace, standing.query.query, top_k=RANKS)
        results, degraded = [each.insight for each in found.results], found.degraded
    except NotSearched as problem:
        results, degraded = [], str(problem)
    hearings = await engine.judges.judgements(namespace, query_id, HEARINGS)
    judged = [score.document_id for hearing in hearings for score in hearing.evaluation.scores]
    return visit.page(
        "quality_query.html",
        done=visit.asked("done"),
        standing=standing,
        query=standing.query,
        results=results,
        degraded=degraded,
        hearings=hearings,
        insights=await engine.golden_test.insights(namespace, [*standing.query.expected_ids, *judged]),
        missing_key=engine.judges.missing_key,
        is_disputed=is_disputed,
    )


async def add(visit: Visit) -> Response:
    """A new golden query, or other expectations of one that is there."""
    expected = insight_ids([visit.given("expect")], "Expected insights")
    entry = Entry(visit.given("query").strip(), expected or None)
    (put,) = await visit.engine.golden_test.add(visit.namespace, [entry])
    return visit.go(QUERY_PAGE, id=str(put.id), done=put.change)


async def expect(visit: Visit) -> Response:
    """Let a query expect other insights, or some no longer."""
    query_id = visit.number_given("id", 1, checks.LARGEST_ID)
    more = insight_ids(visit.all_given("more"), "Expected insights")
    less = insight_ids(visit.all_given("less"), "Expected insights")
    if not more and not less:
        raise Invalid("Name at least one insight by its id")
    await visit.engine.golden_test.expect(visit.namespace, query_id, more, less)
    return visit.go(QUERY_PAGE, id=str(query_id), done="changed")


async def remove(visit: Visit) -> Response:
    """Take a query out of the golden set."""
    await visit.engine.golden_test.remove(visit.namespace, visit.number_given("id", 1, checks.LARGEST_ID))
    return visit.go(PAGE, done="removed")


async def run(visit: Visit) -> Response:
    """Measure now. It goes on to its end if the browser leaves meanwhile."""
    new_baseline = visit.given("baseline") == "new"
    await visit.engine.golden_test.run(visit.namespace, new_baseline=new_baseline)
    return visit.go(PAGE, done="baseline" if new_baseline else "ran")


async def judge(visit: Visit) -> Response:
    """Let both judges score some insights for a query."""
    engine, namespace = visit.engine, visit.namespace
    query_id = visit.number_given("id", 1, checks.LARGEST_ID)
    wanted = insight_ids(visit.all_given("document"), "Insights to judge")
    insights = await engine.golden_test.insights(namespace, wanted)
    asked = (await engine.golden_test.query(namespace, query_id)).query.query
    documents = [Document(each, insights[each].content) for each in dict.fromkeys(wanted) if each in insights]
    await engine.judges.evaluate(namespace, query_id, asked, documents)
    return visit.go(QUERY_PAGE, id=str(query_id), done="judged")


async def accept(visit: Visit) -> Response:
    """Let a query expect what both judges found relevant."""
    query_id = visit.number_given("id", 1, checks.LARGEST_ID)
    accepted = await visit.engine.ground_truth.accept(visit.namespace, query_id)
    return visit.go(QUERY_PAGE, id=str(query_id), done="accepted" if accepted.added else "nothing-new")


ROUTES = [
    get(PAGE, quality),
    get(QUERY_PAGE, query),
    post("/console/quality/add", add),
    post("/console/quality/expect", expect),
    post("/console/quality/remove", remove),
    post("/console/quality/run", run),
    post("/console/quality/judge", judge),
    post("/console/quality/accept", accept),
]
