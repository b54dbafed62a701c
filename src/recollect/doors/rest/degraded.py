"""The header that says that a model was unavailable; contracts fix the fields of the body."""

from typing import Any

from fastapi import Response

HEADER = "X-Recollect-Degraded"
MAX_CHARACTERS = 500

DOCUMENTED: dict[str, Any] = {
    HEADER: {
        "description": "Present if a model was unavailable, with the reason: a text was not embedded, so only keyword "
        "search finds it, or a memory was stored verbatim",
        "schema": {"type": "string"},
    }
}


def tell(response: Response, degraded: str | None) -> None:
    """Put a sentence into the header; a provider's own words may hold what a header may not."""
    if degraded is not None:
        line = " ".join(degraded.split())[:MAX_CHARACTERS]
        response.headers[HEADER] = line.encode("ascii", "replace").decode()
