"""/openapi.json: what the framework leaves out of it, and the document itself, encoded once."""

import json
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response

# For routes that want no key of the namespace.
WITHOUT_KEY: dict[str, Any] = {"security": []}

_BEARER = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key from `recollect keys create`. On loopback, a namespace without keys is open.",
}


PATH = "/openapi.json"


def add_to(app: FastAPI) -> None:
    """Serve the document; the framework would encode it for every request, some twenty milliseconds on the loop."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        document = generate()
        # The scheme holds for every route that does not say otherwise.
        document["components"]["securitySchemes"] = {"Bearer": _BEARER}
        document["security"] = [{"Bearer": []}, {}]
        return document

    app.openapi = openapi  # type: ignore[method-assign]

    @cache
    def encoded() -> bytes:
        return json.dumps(app.openapi(), ensure_ascii=False, separators=(",", ":")).encode()

    @app.get(PATH, include_in_schema=False)
    async def show() -> Response:
        return Response(encoded(), media_type="application/json")
