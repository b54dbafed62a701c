"""Routes of the Anthropic API: where they are, and what their errors look like to its clients."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from recollect.errors import RecollectError
from recollect.flows.stores import rules
from recollect.flows.stores.files import PathTaken, Stale

PREFIX = "/v1/memory_stores"

# Its clients would repeat a request that conflicts with what is stored, which cannot help.
SETTLED = {"x-should-retry": "false"}

_TYPE_OF = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "invalid_request_error",
    421: "invalid_request_error",
    429: "rate_limit_error",
}


class ApiFault(BaseModel):
    """What kind of error it is, and a sentence."""

    type: str = Field(examples=["not_found_error"])
    message: str
    conflicting_memory_id: str | None = Field(None, description="With `memory_path_conflict_error`: what is there")
    conflicting_path: str | None = None


class ApiProblem(BaseModel):
    """What is wrong, as clients of the Anthropic API read it; `detail` is the same sentence, as in all our errors."""

    type: Literal["error"]
    error: ApiFault
    detail: str


_DESCRIBED = {
    400: "The request is not valid, or the store is archived",
    401: "The key is missing or invalid",
    403: "The key does not allow this; without a key, pages of other origins are not allowed",
    404: "There is no such memory store, memory or version",
    408: "The body did not arrive in time",
    409: "The path is taken, the precondition fails, or the version is in use",
    413: "The body is too large",
    421: "Without a key, only requests addressed to loopback are served",
    422: "Not used here: see 400",
    429: "A rate limit was exceeded",
    500: "An unexpected error, or a configuration problem",
    503: "A required service does not answer",
}


def covers(path: str) -> bool:
    """Whether a path is one of these routes."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def responses() -> dict[int | str, dict[str, Any]]:
    """The error answers of these routes for their documentation."""
    return {status: {"model": ApiProblem, "description": text} for status, text in _DESCRIBED.items()}


def body(status: int, sentence: str, failure: RecollectError | None = None) -> dict[str, Any]:
    """An error as clients of the API read it."""
    fault = {"type": _TYPE_OF.get(status, "api_error"), "message": sentence}
    if isinstance(failure, Stale):
        fault["type"] = "memory_precondition_failed_error"
    elif isinstance(failure, PathTaken):
        taken = {"conflicting_memory_id": rules.shown(rules.FILE, failure.file_id), "conflicting_path": failure.path}
        fault |= {"type": "memory_path_conflict_error", **taken}
    return {"type": "error", "error": fault, "detail": sentence}
