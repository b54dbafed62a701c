"""The header that says whether anything was relevant enough; contracts fix the fields of the body."""

from collections.abc import Sized
from typing import Any

from fastapi import Response

from recollect.flows.search.relevance import Floor

HEADER = "X-Recollect-Answered"

DOCUMENTED: dict[str, Any] = {
    HEADER: {
        "description": "Present if `min_relevance` was given: false if no result reaches it",
        "schema": {"type": "string", "enum": ["true", "false"]},
    }
}


def tell(response: Response, found: Sized, min_relevance: Floor | None) -> None:
    """Nothing is said to a client that did not ask for a floor."""
    if min_relevance is not None:
        response.headers[HEADER] = "true" if len(found) else "false"
