"""`GET /health`: ok only when the database answers. `GET /ready`: the same with details, for operators."""

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from recollect import __version__
from recollect.doors.rest.caller import calling
from recollect.doors.rest.document import WITHOUT_KEY
from recollect.doors.rest.problems import responses
from recollect.engine import Engine

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The one answer of a healthy server."""

    status: Literal["ok"] = "ok"


class Readiness(Health):
    """What serves, and what it still has to do."""

    version: str = Field(examples=["0.1.0"])
    postgres: str = Field(examples=["16.4"])
    pgvector: str = Field(examples=["0.8.0"])
    namespace: str = Field(examples=["default"], description="The namespace that this request may see")
    embedding_model: str | None = Field(
        description="The namespace's model; null when it cannot be used here: then words alone decide"
    )
    waiting: int = Field(description="Passages of the namespace that are found by words but not yet by meaning")


@router.get("/health", responses=responses(), openapi_extra=WITHOUT_KEY)
async def check_health(request: Request) -> Health:
    """Whether the server can serve: it asks the database."""
    engine: Engine = request.app.state.engine
    await engine.health()
    return Health()


# Load balancers ask with HEAD, which the framework does not add by itself.
router.add_api_route("/health", check_health, methods=["HEAD"], include_in_schema=False)


@router.get("/ready", responses=responses())
async def get_readiness(request: Request) -> Readiness:
    """What serves, for operators: behind a key, or on loopback."""
    caller = calling(request)
    versions = await caller.engine.health()
    embedder = await caller.engine.spaces.embedder(caller.namespace)
    return Readiness(
        version=__version__,
        postgres=versions.postgres,
        pgvector=versions.pgvector,
        namespace=caller.namespace,
        embedding_model=None if embedder is None else embedder.model_id,
        waiting=await caller.engine.indexer.waiting(caller.namespace),
    )
