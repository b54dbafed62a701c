"""Signing in with a key, and out again."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from recollect.doors.console import cookies, problems, rendering
from recollect.doors.console.visit import Visit, post
from recollect.errors import RecollectError
from recollect.flows.accounts.access import BROWSER_PREFIX

PAGE = "/console/sign-in"


async def ask(request: Request) -> Response:
    """The form for a key."""
    return await _form(request, request.query_params.get("next", ""))


async def sign_in(request: Request) -> Response:
    """Take a key, and give the browser a cookie that stands for it for some hours."""
    request.scope["route"] = ROUTES[1]  # for the log
    try:
        async with request.form(max_files=0, max_fields=10) as form:
            key, to, token = (str(form.get(name, "")) for name in ("key", "next", cookies.FIELD))
        return await _signed_in(request, key, to, token)
    except HTTPException as problem:  # a form that cannot be read
        return problems.refused(request.scope, problem.status_code, problem.detail)
    except RecollectError as problem:
        return problems.failed(request, problem)


async def _signed_in(request: Request, key: str, to: str, token: str) -> Response:
    if not cookies.is_ours(request, token, cookies.BEFORE):
        return problems.refused(request.scope, 403, problems.NOT_OURS)
    signed_in = await request.app.state.engine.access.sign_in(key.strip(), cookies.token_in(request.headers))
    if signed_in is None:
        return await _form(request, to, wrong=True)
    known = await request.app.state.engine.access.browser(signed_in)
    if known is not None:
        # For the log and the audit.
        by = {"namespace": known.namespace, "author": known.label or known.key_id, "key_id": known.key_id}
        request.scope["state"].update(by)
    home = rendering.LIMITED_HOME if known is not None and known.limits else rendering.HOME
    response = RedirectResponse(to if _is_local(to) and to != rendering.HOME else home, status_code=303)
    cookies.keep(response, request, signed_in)
    return response


async def sign_out(visit: Visit) -> Response:
    """End what the cookie stands for, here and on the server."""
    token = cookies.token_in(visit.request.headers)
    if token is not None:
        await visit.engine.access.sign_out(visit.namespace, token)
    response = visit.go(PAGE)
    cookies.drop(response, visit.request)
    return response


async def _form(request: Request, to: str, wrong: bool = False) -> Response:
    token = cookies.token_of_form(request, cookies.BEFORE)
    ended = not wrong and await _has_ended(request)
    values = {"csrf": cookies.csrf_of(token), "next": to if _is_local(to) else "", "wrong": wrong, "ended": ended}
    response = rendering.page(request, "sign_in.html", 401 if wrong else 200, **values)
    cookies.keep(response, request, token, cookies.BEFORE)
    if ended:
        cookies.drop(response, request)
    return response


async def _has_ended(request: Request) -> bool:
    """Whether the browser still brings what no longer stands for a key."""
    known = cookies.token_in(request.headers)
    if known is None or not known.startswith(BROWSER_PREFIX):
        return False
    return await request.app.state.engine.access.browser(known) is None


def _is_local(address: str) -> bool:
    """Whether an address leads to a page of the console and not to another site."""
    return address == "/console" or address.startswith(("/console?", "/console/"))


ROUTES = [
    Route(PAGE, ask, methods=["GET"]),
    Route(PAGE, sign_in, methods=["POST"]),
    post("/console/sign-out", sign_out),
]
