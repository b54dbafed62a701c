"""The caller over HTTP or stdio: the engine that serves a request, and the namespace it can access."""

from dataclasses import dataclass

from starlette.requests import Request

from recollect.engine import Engine


@dataclass(frozen=True, slots=True)
class Caller:
    """What every route, tool and resource is given besides its arguments."""

    engine: Engine
    namespace: str


def caller_of(engine: Engine, http_request: Request | None) -> Caller:
    """The caller whom the gate let in; over stdio there is no gate, and the settings name the namespace."""
    if http_request is None:
        return Caller(engine, engine.settings.namespace)
    return Caller(engine, http_request.state.namespace)
