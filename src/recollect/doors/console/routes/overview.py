"""The first page: what is stored, what happens, what waits, and what needs attention."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from markupsafe import Markup
from starlette.responses import Response

from recollect.doors.console import charts
from recollect.doors.console.charts import Column
from recollect.doors.console.visit import Visit, get
from recollect.flows.status import waits_for_review
from recollect.memory.accounts.usage import UsageLine

# Above this, numbers are estimates: counting more would keep the reader waiting.
COUNTED = 10_000

# Days whose tokens are shown.
DAYS = 14

# Where to look at what is counted; what has no list of its own is among the memories.
PLACES = {
    "sessions": "/console/sessions",
    "messages": "/console/sessions",
    "graph_nodes": "/console/graph",
    "graph_edges": "/console/graph",
    "memories": "/console/memories",
}


async def overview(visit: Visit) -> Response:
    """Everything that `recollect status` knows."""
    engine = visit.engine
    report = await engine.status.report(visit.namespace, COUNTED)
    degraded = await engine.degraded()
    waits = waits_for_review(report.defence)
    largest = max((size.bytes for size in report.memory.values()), default=0)
    return visit.page(
        "overview.html",
        report=report,
        # What waits for review has a link here in place of a command.
        attention=[each for each in (*report.attention, degraded) if each and not (waits and each.startswith(waits))],
        waits=waits,
        places=PLACES,
        writes=by_hour("Writes per hour", ("Writes",), [(hour.start, (hour.writes,)) for hour in report.activity]),
        recalls=by_hour(
            "Recalls per hour",
            ("Complete", "By keyword only", "Failed"),
            [(hour.start, (hour.recalls, hour.degraded, hour.failed)) for hour in report.activity],
        ),
        totals={
            "writes": sum(hour.writes for hour in report.activity),
            "recalls": sum(hour.recalls + hour.degraded + hour.failed for hour in report.activity),
        },
        bars={
            kind: charts.bar(size.bytes, largest, f"{kind}: compared with the largest")
            for kind, size in report.memory.items()
        },
        budget=charts.bar(
            report.llm.spent_today,
            report.llm.daily_tokens,
            f"{report.llm.spent_today:,} of {report.llm.daily_tokens:,} tokens of today are spent",
        ),
        tokens=tokens_by_day(await engine.spending.lines(visit.namespace, DAYS)),
        days=DAYS,
        embedder=await engine.namespace_models.embedder(visit.namespace),
        llm=engine.settings.llm,
        redis={"is_used": engine.settings.redis_url is not None, "answers": degraded is None},
    )


def by_hour(title: str, series: Sequence[str], hours: Sequence[tuple[datetime, Sequence[int]]]) -> Markup:
    """What happened in each of some hours; the last is not over yet."""
    return charts.columns(title, series, [Column(f"{start:%d %b %H:%M}", values) for start, values in hours])


def tokens_by_day(lines: Sequence[UsageLine]) -> Markup:
    """What each feature took on each of the last days; nothing if no model was asked."""
    if not lines:
        return Markup("")
    features = sorted({line.feature for line in lines})
    spent: Counter[tuple[date, str]] = Counter()
    for line in lines:
        spent[line.day, line.feature] += line.input_tokens + line.output_tokens
    today = datetime.now(UTC).date()
    days = [today - timedelta(days=ago) for ago in reversed(range(DAYS))]
    points = [Column(f"{day:%d %b}", [spent[day, feature] for feature in features]) for day in days]
    return charts.columns(f"Tokens of the last {DAYS} days", features, points)


ROUTES = [get("/console", overview)]
