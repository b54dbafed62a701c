"""The error categories for MCP clients: one table, and one message for an invalid argument."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp.types import CallToolResult, TextContent
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from recollect.checks import MAX_SHOWN_CHARACTERS
from recollect.errors import (
    AccessDenied,
    Conflict,
    Invalid,
    LimitReached,
    Misconfigured,
    NotFound,
    RecollectError,
    Unavailable,
)
from recollect.flows.cognitive.judge import ApiKeyMissing, JudgeFailed
from recollect.flows.indexing.namespace_models import NotSearched, NotSearchedWithoutKey

BAD_PARAMETER = "Parameter validation failed"
DATABASE_FAILED = "Database operation failed"
NO_API_KEY = "API key not configured"
CRASHED = "Tool execution failed"
NOT_FOUND = "Resource not found"

# An embedding may have 1536 wrong numbers; a few are enough to see what is wrong.
MAX_FAULTS = 5


# The first that fits counts.
ERROR_OF: dict[type[RecollectError], str] = {
    Invalid: BAD_PARAMETER,
    NotFound: NOT_FOUND,
    ApiKeyMissing: NO_API_KEY,
    JudgeFailed: CRASHED,
    NotSearchedWithoutKey: NO_API_KEY,
    NotSearched: CRASHED,
    AccessDenied: CRASHED,
    Conflict: DATABASE_FAILED,
    LimitReached: DATABASE_FAILED,
    Unavailable: DATABASE_FAILED,
    Misconfigured: DATABASE_FAILED,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call did not succeed: one of the contract's error types, and a sentence."""

    error: str
    details: str


CRASH = Refusal(CRASHED, "An unexpected error occurred; the server log has the details")

Answer = Callable[[str, Refusal], CallToolResult]


def refusal(problem: RecollectError) -> Refusal:
    """A category of ours in the contract's words."""
    error = next((name for category, name in ERROR_OF.items() if isinstance(problem, category)), CRASHED)
    return Refusal(error, str(problem))


def bad_arguments(problem: ValidationError, schema: Mapping[str, Any]) -> Refusal:
    """Arguments that do not fit the schema; the sentence names each of them."""
    faults = problem.errors(include_url=False, include_context=False)
    sentences = [_sentence(fault, schema) for fault in faults[:MAX_FAULTS]]
    more = [f"and {len(faults) - MAX_FAULTS} more"] if len(faults) > MAX_FAULTS else []
    return Refusal(BAD_PARAMETER, "; ".join(sentences + more))


def unknown_arguments(names: Sequence[str]) -> Refusal | None:
    """Many names that no parameter has, told before the model looks at each; None if they are few."""
    if len(names) <= MAX_FAULTS:
        return None
    sentences = [f"unknown parameter {name[:MAX_SHOWN_CHARACTERS]}" for name in names[:MAX_FAULTS]]
    return Refusal(BAD_PARAMETER, "; ".join([*sentences, f"and {len(names) - MAX_FAULTS} more"]))


def as_text(tool: str, refused: Refusal) -> CallToolResult:
    """The error of the context-manager contract."""
    return _error(f"Error: {refused.details}")


def as_sentence(tool: str, refused: Refusal) -> CallToolResult:
    """The error of the reference memory server: what went wrong, and nothing besides."""
    return _error(refused.details)


def as_object(tool: str, refused: Refusal) -> CallToolResult:
    """The error of the cognitive-memory contract."""
    return _error(json.dumps(error_object(tool, refused), ensure_ascii=False))


def error_object(tool: str, refused: Refusal) -> dict[str, str]:
    """The three fields of the cognitive-memory contract's error."""
    return {"error": refused.error, "details": refused.details, "tool": tool}


def _error(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


_OUT_OF_RANGE = ("greater_than_equal", "less_than_equal")
_WRONG_TYPE = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
}


def _sentence(fault: ErrorDetails, schema: Mapping[str, Any]) -> str:
    name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in fault["loc"]).lstrip(".")
    kind = fault["type"]
    if kind == "extra_forbidden":
        return f"unknown parameter {name}"
    if kind == "missing":
        return f"{name} is required"
    if kind in _WRONG_TYPE:
        return f"{name} must be {_WRONG_TYPE[kind]}"
    if kind in _OUT_OF_RANGE:
        for step in fault["loc"]:
            schema = schema["items"] if isinstance(step, int) else schema["properties"][step]
        if {"minimum", "maximum"} <= schema.keys():
            return f"{name} must be between {schema['minimum']} and {schema['maximum']}, not {fault['input']}"
    return (
        re.sub(r"^\w+ should", f"{name} must", fault["msg"])
        if " should " in fault["msg"]
        else f"{name}: {fault['msg']}"
    )
