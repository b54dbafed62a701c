"""`GET /health`: ok only when the database answers."""

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel

from recollect.engine import Engine

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The one answer of a healthy server."""

    status: Literal["ok"] = "ok"


class Problem(BaseModel):
    """What is wrong."""

    detail: str


@router.get("/health", responses={503: {"model": Problem, "description": "The database does not answer"}})
async def health(request: Request) -> Health:
    """Whether the server can serve: it asks the database."""
    engine: Engine = request.app.state.engine
    await engine.health()
    return Health()
