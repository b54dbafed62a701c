"""What went wrong, as a page that says it and where to go from there."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from recollect.doors.console import cookies, rendering
from recollect.errors import (
    AccessDenied,
    Conflict,
    Invalid,
    LimitReached,
    NotFound,
    RecollectError,
    Unavailable,
)

NOT_OURS = "The form was not sent from a page of this console, or the page is too old: open it again and repeat"

_TITLES: dict[type[RecollectError], tuple[int, str]] = {
    Invalid: (422, "That cannot be done as it is"),
    NotFound: (404, "Not found"),
    AccessDenied: (403, "Not allowed"),
    Conflict: (409, "In conflict with what is stored"),
    LimitReached: (429, "A limit was reached"),
    Unavailable: (503, "Not available at the moment"),
}


def failed(request: Request, problem: RecollectError) -> Response:
    """The page of an error of ours."""
    status, title = told(problem)
    token = cookies.token_in(request.headers)
    csrf = "" if token is None else cookies.csrf_of(token)
    return rendering.page(request, "problem.html", status, title=title, sentence=str(problem), csrf=csrf)


def told(problem: RecollectError) -> tuple[int, str]:
    """The status and the title of an error of ours."""
    found = (shown for category, shown in _TITLES.items() if isinstance(problem, category))
    return next(found, (500, "The deployment must be changed"))


def refused(scope: Scope, status: int, sentence: str) -> Response:
    """The page of a refusal before any page was reached. Who is not signed in is sent to sign in, then comes back.

    A browser that follows a link of another site leaves our cookie out: it is told to ask again by itself.
    """
    request = Request(scope)
    if status == 401 and scope["method"] == "GET":
        asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        if request.headers.get("sec-fetch-site") == "cross-site":
            return rendering.page(request, "again.html", again=asked)
        return RedirectResponse(f"/console/sign-in?next={quote(asked, safe='')}", status_code=303)
    return rendering.page(request, "problem.html", status, title="Not allowed", sentence=sentence)
