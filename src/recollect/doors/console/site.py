"""Every page of the console."""

from starlette.requests import Request
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.doors.console import consent, rendering
from recollect.doors.console.routes import (
    access,
    forget,
    graph,
    item,
    jobs,
    memories,
    memory,
    overview,
    quality,
    recall,
    review,
    session,
    sessions,
    signing_in,
    static,
    watch,
)

MODULES = (
    signing_in,
    static,
    overview,
    sessions,
    session,
    quality,
    access,
    recall,
    review,
    watch,
    memories,
    memory,
    item,
    forget,
    graph,
    jobs,
)

ROUTES: tuple[Route, ...] = tuple(route for module in MODULES for route in module.ROUTES)


def site() -> ASGIApp:
    """The pages as an application; the gate has admitted the caller."""
    return Router([*ROUTES, *consent.ROUTES], default=_not_found)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    sentence = "The console has no such page"
    page = rendering.page(Request(scope), "problem.html", 404, title="Not found", sentence=sentence)
    await page(scope, receive, send)
