"""Errors over HTTP: every category has one status, and every answer has the contract's `detail`."""

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from recollect.doors.rest import anthropic_api
from recollect.errors import (
    AccessDenied,
    Conflict,
    Forbidden,
    Invalid,
    LimitReached,
    Misconfigured,
    NotFound,
    RecollectError,
    Unavailable,
)

STATUS_OF: dict[type[RecollectError], int] = {
    Invalid: 422,
    NotFound: 404,
    Forbidden: 403,
    AccessDenied: 401,
    Conflict: 409,
    LimitReached: 429,
    Unavailable: 503,
    Misconfigured: 500,
}


class Problem(BaseModel):
    """What is wrong, in a sentence."""

    detail: str = Field(examples=["Redis not initialized"])


class Fault(BaseModel):
    """One thing that is wrong with a request; `loc` says where, if it is not the body as a whole."""

    type: str = Field(examples=["value_error"])
    msg: str = Field(
        examples=["Value error, At least one of user_id, agent_id, or session_id must be provided"],
    )
    loc: list[str | int] | None = None


class Faults(BaseModel):
    """What is wrong with a request: a list of faults in its form, or a sentence."""

    detail: list[Fault] | str


_DESCRIBED: dict[int, tuple[type[BaseModel], str]] = {
    400: (Problem, "The request is not valid HTTP or JSON"),
    401: (Problem, "The key is missing or invalid"),
    403: (Problem, "The key does not allow this; without a key, pages of other origins are not allowed"),
    404: (Problem, "Not found"),
    408: (Problem, "The body did not arrive in time"),
    409: (Problem, "The request conflicts with stored data"),
    413: (Problem, "The body is too large"),
    421: (Problem, "Without a key, only requests addressed to loopback are served"),
    422: (Faults, "The request is not valid"),
    429: (Problem, "A rate limit or budget was exceeded"),
    500: (Problem, "An unexpected error, or a configuration problem"),
    503: (Problem, "A required service does not answer"),
}

ALWAYS = (400, 401, 403, 408, 413, 421, 422, 429, 500, 503)


def responses(*more: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route for its documentation: those that any request may get, and some more."""
    return {
        status: {"model": _DESCRIBED[status][0], "description": _DESCRIBED[status][1]}
        for status in sorted({*ALWAYS, *more})
    }


def problem(status: int, sentence: str, headers: dict[str, str] | None = None, path: str = "") -> JSONResponse:
    """An answer that says what is wrong, in the form that the route's clients read."""
    body = anthropic_api.body(status, sentence) if anthropic_api.covers(path) else {"detail": sentence}
    return JSONResponse(body, status_code=status, headers=headers)


def add_handlers(app: FastAPI) -> None:
    """Answer every error category, and input of a wrong form, in the contract's shape."""
    for kind in (RecollectError, RequestValidationError):
        app.add_exception_handler(kind, _answer)


def answer(failure: RecollectError, path: str = "") -> JSONResponse:
    """The answer to an error of ours."""
    status = next((code for category, code in STATUS_OF.items() if isinstance(failure, category)), 500)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    if isinstance(failure, LimitReached) and failure.retry_after is not None:
        headers = {"Retry-After": str(failure.retry_after)}
    if not anthropic_api.covers(path):
        return problem(status, str(failure), headers)
    status = 400 if status == 422 else status
    headers = anthropic_api.SETTLED if status == 409 else headers
    return JSONResponse(anthropic_api.body(status, str(failure), failure), status_code=status, headers=headers)


async def _answer(request: Request, failure: Exception) -> JSONResponse:
    """Faults without the input, which may hold a key, and without a place that only says "body"."""
    path = request.scope["path"]
    if isinstance(failure, RecollectError):
        return answer(failure, path)
    assert isinstance(failure, RequestValidationError)
    faults: list[dict[str, Any]] = []
    for error in failure.errors():
        place: Sequence[str | int] = error["loc"]
        printable = [part if isinstance(part, int) else part.encode(errors="replace").decode() for part in place]
        where = {} if printable == ["body"] else {"loc": printable}
        faults.append({"type": error["type"], "msg": error["msg"], **where})
    if anthropic_api.covers(path):
        told = [f"{'.'.join(map(str, fault.get('loc', ['body'])))}: {fault['msg']}" for fault in faults]
        return problem(400, "; ".join(told), path=path)
    return JSONResponse({"detail": faults}, status_code=422)
