"""How an answer over HTTP says that a model could not be asked: a header, because contracts fix the fields."""

from typing import Any

from fastapi import Response

HEADER = "X-Recollect-Degraded"
MAX_CHARACTERS = 500

DOCUMENTED: dict[str, Any] = {
    HEADER: {
        "description": "Present when a model could not be asked, and says why: a text was not embedded, so only "
        "keyword search finds it, or a memory is stored in the caller's own words",
        "schema": {"type": "string"},
    }
}


def tell(response: Response, degraded: str | None) -> None:
    """Put a sentence into the header; a provider's own words may hold what a header may not."""
    if degraded is not None:
        line = " ".join(degraded.split())[:MAX_CHARACTERS]
        response.headers[HEADER] = line.encode("ascii", "replace").decode()
