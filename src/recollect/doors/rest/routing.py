"""From a request to its route: ids with a slash in the path, no unknown query parameters, a body that is JSON."""

from collections.abc import Callable, Coroutine
from typing import Any, get_args, get_origin
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect import tasks
from recollect.doors.json_steps import SMALL_BYTES
from recollect.doors.rest.bodies import no_such, read_json
from recollect.errors import Invalid

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

# Faults shown of a large body; the others show up in the next request.
MAX_FAULTS = 100

# Left as they are until a route has matched: an encoded slash belongs to an id, a plain one separates ids. With the
# percent sign left as well, `%2F` can only be a slash that came encoded.
_SLASH, _PERCENT = b"%2F", b"%25"


class Paths:
    """An ASGI application around another one, whose routes see which slashes of the path came encoded."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and b"%" in scope.get("raw_path", b""):
            scope["path"] = _decoded(scope["raw_path"])
        if scope["type"] == "http" and b"%" in scope["query_string"]:
            _readable(unquote_to_bytes(scope["query_string"]), "query string")
        await self._app(scope, receive, send)


def _decoded(raw_path: bytes) -> str:
    """A path without its escapes, but for slashes and percent signs."""
    head, *escaped = raw_path.split(b"%")
    decoded = [head]
    for piece in escaped:
        byte = unquote_to_bytes(b"%" + piece[:2])
        if byte == b"/":
            decoded.append(_SLASH + piece[2:])
        elif len(byte) == 1 and byte != b"%":
            decoded.append(byte + piece[2:])
        else:  # a percent sign that came encoded, or begins no escape
            decoded.append(_PERCENT + piece.removeprefix(b"25"))
    return _readable(b"".join(decoded), "path")


def _readable(raw: bytes, name: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as problem:
        raise Invalid(f"The {name} is not UTF-8: encode it as UTF-8 before percent-encoding") from problem


class _ReadRequest(Request):
    """A request whose body has been read and decoded."""

    def __init__(self, request: Request, decoded: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._given = request
        self._decoded = decoded

    async def body(self) -> bytes:
        return await self._given.body()

    async def json(self) -> Any:
        return self._decoded


class Router(APIRouter):
    """Routes whose operation ids read like the names of methods."""

    def __init__(self, **options: Any) -> None:
        super().__init__(generate_unique_id_function=lambda route: route.name, **options)


class Route(APIRoute):
    """A route that takes nothing which it would not look at."""

    def get_route_handler(self) -> Handler:
        """The framework's handler, behind our own checks."""
        handle = super().get_route_handler()
        known = {parameter.alias: None for parameter in self.dependant.query_params}
        repeatable = {
            parameter.alias
            for parameter in self.dependant.query_params
            for annotation in [parameter.field_info.annotation]
            if any(get_origin(form) is list for form in (annotation, *get_args(annotation)))
        }
        model = None if self.body_field is None else self.body_field.field_info.annotation

        async def check_and_handle(request: Request) -> Response:
            for name, value in request.path_params.items():
                request.path_params[name] = value.replace("%2F", "/").replace("%25", "%")
            seen: set[str] = set()
            for name, _ in request.query_params.multi_items() if request.scope["query_string"] else ():
                if name not in known:
                    raise _query_fault("extra_forbidden", name, no_such("query parameter", name, known))
                if name in seen and name not in repeatable:
                    raise _query_fault("repeated", name, f"{name} is given more than once: send one value")
                seen.add(name)
            if model is not None:
                decoded = await read_json(request)
                if len(await request.body()) > SMALL_BYTES:
                    decoded = await tasks.in_thread(_checked, model, decoded)
                request = _ReadRequest(request, decoded)
            return await handle(request)

        return check_and_handle


def _checked(model: Any, decoded: Any) -> BaseModel:
    """A large body as the model that its route takes; the framework would check it on the event loop."""
    try:
        checked: BaseModel = model.model_validate(decoded)
    except ValidationError as problem:
        faults = problem.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError(
            [fault | {"loc": ("body", *fault["loc"])} for fault in faults[:MAX_FAULTS]]
        ) from None
    return checked


def _query_fault(kind: str, name: str, sentence: str) -> RequestValidationError:
    return RequestValidationError([{"type": kind, "loc": ("query", name), "msg": sentence}])
