"""What screening has found: an admin looks at it, and releases it or goes on to forget it."""

from starlette.responses import Response

from recollect import origin
from recollect.doors import reviews
from recollect.doors.console.visit import Visit, get, post
from recollect.flows.defence.review import STATES, ReviewPage

PAGE = "/console/review"
ROWS = 50


async def review(visit: Visit) -> Response:
    """The list, the newest first."""
    chosen = visit.asked("state") if visit.asked("state") in STATES else None
    page = ReviewPage([], None)
    may_review = origin.may("admin") and origin.current().limits is None
    if may_review:
        page = await visit.engine.review.page(visit.namespace, chosen, ROWS, reviews.read(visit.asked("behind")))
    settings = visit.engine.settings
    return visit.page(
        "review.html",
        items=page.items,
        following=reviews.written(page.next),
        state=chosen or "",
        defence=settings.defence,
        masking=settings.masking,
        done=visit.asked("done"),
    )


async def release(visit: Visit) -> Response:
    """Let an item be recalled."""
    await visit.engine.review.release(visit.namespace, visit.given("item"))
    return visit.go(PAGE, done="released")


ROUTES = [get(PAGE, review), post("/console/review/release", release)]
