"""`GET /health`: ok only if every configured service answers. `GET /ready`: the same with details, for operators."""

from typing import Literal

from fastapi import Request
from pydantic import BaseModel, Field

from recollect import __version__
from recollect.doors.rest.caller import calling
from recollect.doors.rest.document import WITHOUT_KEY
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routing import Router
from recollect.engine import Engine

router = Router(tags=["health"])


class Health(BaseModel):
    """The server's status: ok, or degraded if a service other than the database does not answer."""

    status: Literal["ok", "degraded"] = "ok"
    detail: str | None = Field(None, description="What does not answer; absent if everything does")

    @classmethod
    def of(cls, degraded: str | None) -> "Health":
        """With a message naming the service that does not answer."""
        return cls(status="degraded" if degraded else "ok", detail=degraded)


class Readiness(Health):
    """Versions and the indexing backlog."""

    version: str = Field(examples=["0.1.0"])
    postgres: str = Field(examples=["16.4"])
    pgvector: str = Field(examples=["0.8.0"])
    namespace: str = Field(examples=["default"], description="The namespace of this request")
    embedding_model: str | None = Field(
        description="The namespace's embedding model; null if it is not usable here, and only keyword search works"
    )
    waiting: int = Field(description="Passages of the namespace waiting to be embedded")


@router.get("/health", responses=responses(), openapi_extra=WITHOUT_KEY, response_model_exclude_none=True)
async def check_health(request: Request) -> Health:
    """Check that the database answers, and Redis if it is configured."""
    engine: Engine = request.app.state.engine
    await engine.health()
    return Health.of(await engine.degraded())


@router.get("/ready", responses=responses())
async def get_readiness(request: Request) -> Readiness:
    """Details for operators: versions and the indexing backlog."""
    caller = calling(request)
    versions = await caller.engine.health()
    embedder = await caller.engine.namespace_models.embedder(caller.namespace)
    return Readiness(
        **Health.of(await caller.engine.degraded()).model_dump(),
        version=__version__,
        postgres=versions.postgres,
        pgvector=versions.pgvector,
        namespace=caller.namespace,
        embedding_model=None if embedder is None else embedder.model_id,
        waiting=await caller.engine.indexer.waiting(caller.namespace),
    )
