"""A question with every filter, and why it was answered as it was."""

import asyncio
from typing import Any

from starlette.responses import Response

from recollect import tasks
from recollect.doors.console import charts, cookies, problems, rendering
from recollect.doors.console.recalls import answer, calls, scores
from recollect.doors.console.recalls.question import Form
from recollect.doors.console.unknown_users import unknown_user
from recollect.doors.console.visit import Visit, get
from recollect.errors import RecollectError


async def recall(visit: Visit) -> Response:
    """The form, and the answer below it."""
    async with tasks.beside(visit.engine.feed.first_at(visit.namespace)) as (first,):
        values = await answered(visit)
        return visit.page("recall.html", first_at=await first, **values)


async def answer_alone(visit: Visit) -> Response:
    """The answer without the form, for the script that moves through time."""
    return rendering.fragment("recall_answer.html", **await answered(visit))


async def answered(visit: Visit) -> dict[str, Any]:
    """What the templates show; what is wrong with a question stands beside its form."""
    form = Form(visit)
    values: dict[str, Any] = {"labels": scores.LABELS, "width": charts.WIDTH}
    values |= {"form": form, "sides": [], "status": 200, "problem": "", "legend": [], "unknown": None}
    if not form["query"]:
        return values
    try:
        first = form.asked()
        asked = [first] if (other := form.other(first)) is None else [first, other]
        async with tasks.beside(*(each.inspect(visit.engine, visit.namespace) for each in asked)) as running:
            inspections = list(await asyncio.gather(*running))
    except RecollectError as problem:
        return values | {"status": problems.status_and_title(problem)[0], "problem": str(problem)}
    server, has_key = cookies.address(visit.request), visit.request.state.author is not None
    sides = answer.sides(
        asked, inspections, [calls.calls(each, server, visit.namespace, needs_key=has_key) for each in asked]
    )
    legend = scores.legend(result.parts for side in sides for result in side.results)
    has_results = any(side.results for side in sides)
    unknown = None if has_results else await unknown_user(visit, "user_id", "/console/recall")
    return values | {"sides": sides, "legend": legend, "unknown": unknown}


ROUTES = [get("/console/recall", recall), get("/console/recall/answer", answer_alone)]
