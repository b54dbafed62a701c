"""The HTTP application over one engine; each door's routes plug into it."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.routing import BaseRoute

from recollect import __version__
from recollect.doors.rest import health
from recollect.engine import Engine
from recollect.errors import (
    AccessDenied,
    Conflict,
    Invalid,
    LimitReached,
    Misconfigured,
    NotFound,
    RecollectError,
    Unavailable,
)

STATUS_OF: dict[type[RecollectError], int] = {
    Invalid: 422,
    NotFound: 404,
    AccessDenied: 403,
    Conflict: 409,
    LimitReached: 429,
    Unavailable: 503,
    Misconfigured: 500,
}


def create_app(
    engine: Engine,
    routes: Sequence[BaseRoute] = (),
    running: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> FastAPI:
    """The application over one engine, which it closes when it stops.

    Another door on the same port gives its routes, and what must run while they are served.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with running():
            yield
        await engine.close()

    app = FastAPI(title="Recollect", version=__version__, summary="Memory for AI agents", lifespan=lifespan)
    app.state.engine = engine
    app.add_exception_handler(RecollectError, _answer_error)
    app.include_router(health.router)
    app.router.routes.extend(routes)
    return app


async def _answer_error(request: Request, problem: Exception) -> JSONResponse:
    status = next((code for category, code in STATUS_OF.items() if isinstance(problem, category)), 500)
    return JSONResponse({"detail": str(problem)}, status_code=status)
