"""The HTTP application over one engine; each door's routes plug into it."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute
from starlette.types import Lifespan

from recollect import __version__
from recollect.doors.loopback import is_loopback
from recollect.doors.rest import answered, document, problems
from recollect.doors.rest.audited import Audited
from recollect.doors.rest.edge.gate import Gate
from recollect.doors.rest.edge.pages import Pages
from recollect.doors.rest.edge.tokens import Tokens
from recollect.doors.rest.route_modules import ROUTE_MODULES
from recollect.doors.rest.routes import docs, gateway, ltm
from recollect.doors.rest.routing import Paths
from recollect.engine import Engine

# What a page of another origin may read of an answer besides its body.
EXPOSED_HEADERS = (
    ltm.OUTCOME,
    ltm.SUPERSEDED,
    "Retry-After",
    "WWW-Authenticate",
    "X-Next-Cursor",
    answered.HEADER,
    "X-Recollect-Degraded",
    "X-Recollect-Masked",
    "X-Request-ID",
)

DESCRIPTION = (
    "Memory for AI agents. On loopback, a namespace without keys is open; otherwise send "
    "`Authorization: Bearer KEY`, with a key from `recollect keys create`."
)


def create_app(
    engine: Engine,
    routes: Sequence[BaseRoute] = (),
    running: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    host: str = "127.0.0.1",
    pages: Pages | None = None,
    tokens: Tokens | None = None,
) -> FastAPI:
    """The application over one engine, which it closes when it stops.

    Another door on the same port gives its routes, and what must run while they are served. One with pages for
    browsers also says how it knows them, and one with tokens what they stand for. Only on a loopback host is a
    namespace without keys open.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            async with running():
                yield
        finally:
            await engine.close()

    app = routes_app(engine, routes, lifespan)
    app.add_middleware(
        Gate,
        engine=engine,
        on_loopback=is_loopback(host),
        with_user_key=gateway.WITH_USER_KEY,
        pages=pages,
        tokens=tokens,
    )
    if engine.settings.cors_origins:
        # Around the gate: a browser asks first without a key, and reads a refusal only with these headers.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=engine.settings.cors_origins,
            allow_methods=["DELETE", "GET", "PATCH", "POST", "PUT"],
            allow_headers=["*"],
            expose_headers=EXPOSED_HEADERS,
        )
    return app


def routes_app(engine: Engine, routes: Sequence[BaseRoute] = (), lifespan: Lifespan[FastAPI] | None = None) -> FastAPI:
    """The routes without the gate before them, for a program that is its own caller."""
    app = FastAPI(
        title="Recollect",
        version=__version__,
        summary="Memory for AI agents",
        description=DESCRIPTION,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.engine = engine
    problems.add_handlers(app)
    for door in ROUTE_MODULES:
        # As they are: the framework's `include_router` would build each of them once more.
        app.router.routes.extend(door.router.routes)
    docs.add_to(app)
    document.add_to(app)
    app.router.routes.extend(routes)
    app.add_middleware(Paths)
    app.add_middleware(Audited, engine=engine)
    return app
