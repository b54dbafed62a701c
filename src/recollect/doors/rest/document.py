"""What the framework leaves out of /openapi.json: the key that a request brings."""

from typing import Any

from fastapi import FastAPI

# For routes that want no key of the namespace.
WITHOUT_KEY: dict[str, Any] = {"security": []}

_BEARER = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key of `recollect keys create`. On loopback, a namespace without keys is open.",
}


def complete(app: FastAPI) -> None:
    """Add the security scheme, which holds for every route that does not say otherwise."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        document = generate()
        document["components"]["securitySchemes"] = {"Bearer": _BEARER}
        document["security"] = [{"Bearer": []}, {}]
        return document

    app.openapi = openapi  # type: ignore[method-assign]
