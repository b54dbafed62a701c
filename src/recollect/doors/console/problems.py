"""What went wrong, as a page that says it and where to go from there."""

from urllib.parse import quote, urlencode

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

NOT_OURS = "This form has expired or did not come from this console: open the page again and repeat"

_STATUSES: dict[type[RecollectError], int] = {
    Invalid: 422,
    NotFound: 404,
    AccessDenied: 403,
    Conflict: 409,
    LimitReached: 429,
    Unavailable: 503,
}
_TITLES = {
    400: "Invalid request",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    409: "In conflict with what is stored",
    413: "Too large",
    421: "Wrong address",
    422: "Invalid request",
    429: "A limit was reached",
    500: "The server has a fault",
    503: "Not available at the moment",
}


def failed(request: Request, problem: RecollectError) -> Response:
    """The page of an error of ours."""
    status, title = status_and_title(problem)
    token = cookies.token_in(request.headers)
    csrf = "" if token is None else cookies.csrf_of(token)
    values = {"title": title, "sentence": str(problem), "now": now(request), "csrf": csrf}
    return rendering.page(request, "problem.html", status, **values)


def now(request: Request) -> str | None:
    """The same page as it is now, if it was asked for as it was at a time, which may be none."""
    asked = request.query_params
    if request.method != "GET" or "as_of" not in asked:
        return None
    kept = [(name, value) for name, value in asked.multi_items() if name != "as_of"]
    return f"{request.url.path}?{urlencode(kept)}"


def status_and_title(problem: RecollectError) -> tuple[int, str]:
    """How an error of ours is shown."""
    status = next((status for category, status in _STATUSES.items() if isinstance(problem, category)), 500)
    return status, "The server is misconfigured" if status == 500 else _TITLES[status]


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
    if status == 401:
        sentence = cookies.SIGNED_OUT
    return rendering.page(request, "problem.html", status, title=_TITLES.get(status, "Refused"), sentence=sentence)
