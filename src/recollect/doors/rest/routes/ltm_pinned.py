"""`GET /ltm/memories/pinned`: the pinned memories of a scope, for the beginning of a prompt."""

from typing import Annotated

from fastapi import Query, Request
from pydantic import Field

from recollect.doors.rest.bodies import Moment
from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routes.ltm import Identifier, MemoryResponse, MemoryResults
from recollect.doors.rest.routes.recall import AS_OF, VALID_AT
from recollect.doors.rest.routing import Route, Router
from recollect.flows.long_term.pinned import PINNED_TOKENS
from recollect.memory.memories import MemoryScope

router = Router(tags=["ltm"], route_class=Route, responses=responses())


class PinnedResults(MemoryResults):
    """The pinned memories that fit, newest first."""

    omitted: int = Field(description="How many more are pinned and did not fit into the token budget")


@router.get("/ltm/memories/pinned")
async def get_pinned_memories(
    request: Request,
    user_id: Annotated[Identifier | None, Query(description="Pinned for this user; at least one id is needed")] = None,
    agent_id: Annotated[Identifier | None, Query(description="Pinned for this agent, and not for another")] = None,
    session_id: Annotated[Identifier | None, Query(description="Pinned for this session, and not for another")] = None,
    token_budget: Annotated[
        int, Query(ge=1, lt=2**31, description="Maximum total number of tokens in all texts")
    ] = PINNED_TOKENS,
    as_of: Annotated[Moment | None, Query(description=AS_OF)] = None,
    valid_at: Annotated[Moment | None, Query(description=f"{VALID_AT}; `as_of`, or else now, if omitted")] = None,
) -> PinnedResults:
    """Get the pinned memories that belong in every prompt of a scope, newest first, within a token budget."""
    caller = calling(request)
    scope = MemoryScope(user_id, agent_id, session_id)
    pinned = await caller.engine.pinned.of(caller.namespace, scope, token_budget, as_of=as_of, valid_at=valid_at)
    return PinnedResults(results=list(map(MemoryResponse.of, pinned.memories)), omitted=pinned.omitted)
