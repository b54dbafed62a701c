"""The REST door without a socket, for a program that holds the engine itself and so needs no key."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from starlette.types import Receive, Scope, Send

from recollect import settings as environment
from recollect.doors.rest.app import routes_app
from recollect.engine import Engine
from recollect.identifiers import uuid7
from recollect.origin import acting
from recollect.settings import Settings


@asynccontextmanager
async def transport(settings: Settings | None, namespace: str | None) -> AsyncIterator[httpx.ASGITransport]:
    """Opens the engine that the settings name; requests see one namespace, that of the settings if none is given."""
    chosen = settings or environment.load()
    engine = await Engine.open(chosen)
    app = routes_app(engine)

    async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {}).update(namespace=namespace or chosen.namespace, request_id=str(uuid7()))
        with acting("library"):
            await app(scope, receive, send)

    try:
        yield httpx.ASGITransport(admitted)
    finally:
        await engine.close()
