"""`GET /lineage/{name}` and `GET /ltm/memories/{memory_id}/lineage`: where an item comes from."""

from typing import Annotated

from fastapi import Path, Request

from recollect.doors.lineage import ItemLineage
from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routing import Route, Router
from recollect.flows.kinds.long_term import MEMORY
from recollect.flows.long_term.memory_ids import bare

router = Router(tags=["lineage"], route_class=Route, responses=responses(404))

NAME = "A name such as `memory:ID`, `message:ID`, `document:ID` or `insight:12`, or an id as recall shows it"


@router.get("/lineage/{name}")
async def get_lineage(request: Request, name: Annotated[str, Path(description=NAME)]) -> ItemLineage:
    """How an item came about: what happened to it, who did that, and the messages it rests on."""
    caller = calling(request)
    return ItemLineage.of(await caller.engine.lineage.of(caller.namespace, name))


@router.get("/ltm/memories/{memory_id}/lineage")
async def get_memory_lineage(request: Request, memory_id: str) -> ItemLineage:
    """How a long-term memory came about, also one that was superseded or deleted."""
    caller = calling(request)
    return ItemLineage.of(await caller.engine.lineage.of(caller.namespace, f"{MEMORY}:{bare(memory_id)}"))
