"""Who calls: the engine that serves a request, and the namespace the request may see."""

from dataclasses import dataclass
from typing import Any

from recollect.engine import Engine


@dataclass(frozen=True, slots=True)
class Caller:
    """What every tool and resource is given besides its arguments."""

    engine: Engine
    namespace: str


def caller_of(engine: Engine, http_request: Any) -> Caller:
    """The one place that decides a caller's namespace.

    A request over stdio has no HTTP request, and over HTTP only loopback is served as yet: both see the namespace of
    the settings.
    """
    return Caller(engine, engine.settings.namespace)
