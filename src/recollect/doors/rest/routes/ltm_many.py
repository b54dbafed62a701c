"""`/ltm/memories`, several at once: the facts in a chat, and the deletion of all memories of a scope."""

from typing import Annotated, Any, Literal, Self

from fastapi import Query, Request
from pydantic import BaseModel, Field

from recollect.doors.rest.bodies import SAID_AT, Moment
from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routes.ltm import (
    MAX_MESSAGES,
    Category,
    Identifier,
    MemoryMessage,
    MemoryResponse,
    Scoped,
)
from recollect.doors.rest.routing import Route, Router
from recollect.flows.long_term.facts import MAX_INSTRUCTIONS_CHARACTERS, Told
from recollect.flows.long_term.memory_requests import ChatLine, Options
from recollect.flows.long_term.memory_results import Added, What
from recollect.memory.memories import MemoryScope

router = Router(prefix="/ltm/memories", tags=["ltm"], route_class=Route, responses=responses())


class AddFacts(Scoped):
    """A chat, of which each fact becomes a memory."""

    messages: list[MemoryMessage] = Field(
        min_length=1,
        max_length=MAX_MESSAGES,
        examples=[[{"role": "user", "content": "I moved to Lyon. My sister Clara lives there, too."}]],
    )
    verbatim: bool = Field(False, description="Store each message as it is, even if a language model is configured")
    category: Category = Field("fact", description="Of messages that are stored as they are")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Of each memory")
    instructions: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_INSTRUCTIONS_CHARACTERS,
        description="For the language model: what is worth remembering",
    )
    at: Moment | None = Field(None, description=SAID_AT)
    valid_from: Moment | None = Field(None, description="True in the world from this time on")
    valid_until: Moment | None = Field(None, description="True in the world until this time")
    expires_at: Moment | None = Field(None, description="Removed, with the texts of their history, at this time")

    def told(self) -> Told:
        """What was said, and how to remember it."""
        lines = [ChatLine(message.role, message.text(), message.name) for message in self.messages]
        return Told(
            [line for line in lines if line.content.strip()],
            self.scope(),
            self.category,
            self.metadata,
            self.at,
            Options(self.valid_from, self.valid_until, expires_at=self.expires_at),
            self.verbatim,
            self.instructions,
        )


class FactResponse(MemoryResponse):
    """A memory, and how it came about."""

    outcome: What = Field(description="created; existing (already stored in this scope); merged (with new metadata)")

    @classmethod
    def of_added(cls, added: Added) -> Self:
        """What became of a fact."""
        return cls(**MemoryResponse.of(added.memory).model_dump(), outcome=added.what)


class AddedFacts(BaseModel):
    """The memories that now say it, in the order of the chat."""

    results: list[FactResponse]
    method: Literal["language model", "verbatim"] = Field(description="Who told the facts apart")
    degraded: str | None = Field(description="Why no language model read the chat, or none embedded a memory")


class Cleared(BaseModel):
    """How many memories were deleted."""

    deleted: int


@router.post("/facts", responses=responses(409))
async def add_facts(request: Request, body: AddFacts) -> AddedFacts:
    """Add the facts in a chat, each as a memory; without a language model, each message as it is."""
    caller = calling(request)
    facts = await caller.engine.facts.add(caller.namespace, body.told())
    return AddedFacts(
        results=list(map(FactResponse.of_added, facts.added)), method=facts.method, degraded=facts.degraded
    )


@router.delete("")
async def clear_memories(
    request: Request,
    user_id: Annotated[Identifier | None, Query(description="Of this user")] = None,
    agent_id: Annotated[Identifier | None, Query(description="Of this agent")] = None,
    session_id: Annotated[Identifier | None, Query(description="Of this session")] = None,
    everybody: Annotated[bool, Query(description="Instead of the ids: all long-term memories")] = False,
) -> Cleared:
    """Delete all memories that have these ids, superseded ones included. Histories are kept, without the texts."""
    caller = calling(request)
    scope = MemoryScope(user_id, agent_id, session_id)
    return Cleared(deleted=await caller.engine.clearing.clear(caller.namespace, scope, everybody=everybody))
