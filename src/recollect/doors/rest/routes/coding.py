"""`/coding`: what the hooks of coding agents ask before a prompt, and send after it."""

from typing import Annotated, Literal

from fastapi import Request
from pydantic import BaseModel, Field, StringConstraints

from recollect.checks import MAX_IDENTIFIER_CHARACTERS
from recollect.doors.rest.bodies import Body, Moment
from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routing import Route, Router
from recollect.flows.coding import MAX_SHOWN, Place, Reason, Spoken

router = Router(prefix="/coding", tags=["coding"], route_class=Route, responses=responses())

Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_IDENTIFIER_CHARACTERS)]
Text = Annotated[str, StringConstraints(min_length=1)]


class Where(Body):
    """Which agent asks, in which session and project, for whom."""

    agent: Name = Field(description="The agent, without a colon", examples=["claude-code"])
    session_id: Name = Field(description="The agent's own id of its session", examples=["4f0c"])
    project: Text = Field(description="The folder that the agent works in", examples=["/home/anna/shop"])
    user_id: Name = Field(description="Whose session it is if it is new", examples=["anna"])

    def place(self, *, only_user: bool = False) -> Place:
        """The same, checked."""
        return Place(self.agent, self.session_id, self.project, self.user_id, only_user)


class ContextRequest(Where):
    """A prompt, or the start of a session if there is none."""

    prompt: str | None = Field(None, description="What the user wrote; omitted at the start of a session")
    only_user: bool = Field(False, description="Recall only this user's memories, not everything in the namespace")
    shown: list[Name] = Field(
        [], max_length=MAX_SHOWN, description="Ids of memories that this session was given already"
    )


class ContextAnswer(BaseModel):
    """Quoted memories for the model, under a token limit."""

    context: str | None = Field(description="Text to put before the model; null if there is nothing worth it")
    ids: list[str] = Field(description="The memories in it, to send as `shown` the next time")
    reason: Reason | None = Field(description="Why there is no context")
    degraded: str | None = Field(description="Why only keyword search was used; null if semantic search ran")


class TurnRequest(Where):
    """A prompt and its answer."""

    key: Name = Field(description="Tells the turns of a session apart; a turn sent again is stored once")
    prompt: str | None = Field(None, description="What the user wrote")
    answer: str | None = Field(None, description="The agent's last answer")
    prompted_at: Moment | None = Field(None, description="When it was written; now if omitted")
    answered_at: Moment | None = Field(None, description="When it was answered; now if omitted")


class TurnAnswer(BaseModel):
    """Where the turn is."""

    session_id: str = Field(description="The id of the session at every door", examples=["claude-code:4f0c"])
    messages: int = Field(description="Messages that the turn has; 0 if it says nothing")
    status: Literal["stored"] = "stored"


@router.post("/context")
async def coding_context(request: Request, body: ContextRequest) -> ContextAnswer:
    """Get what a coding agent should know for a prompt, or at the start of a session.

    A prompt that is trivial, such as "ok" or "run the tests", gets nothing; others get what is relevant enough.
    """
    caller, place = calling(request), body.place(only_user=body.only_user)
    coding = caller.engine.coding
    if body.prompt is None:
        found = await coding.at_start(caller.namespace, place)
    else:
        found = await coding.for_prompt(caller.namespace, place, body.prompt, body.shown)
    return ContextAnswer(context=found.text, ids=list(found.ids), reason=found.reason, degraded=found.degraded)


@router.post("/turns", responses=responses(409))
async def add_coding_turn(request: Request, body: TurnRequest) -> TurnAnswer:
    """Store a prompt and its answer, once however often they are sent; the first turn creates the session."""
    caller, place = calling(request), body.place()
    spoken = Spoken(body.key, body.prompt, body.answer, body.prompted_at, body.answered_at)
    stored = await caller.engine.coding.keep(caller.namespace, place, spoken)
    return TurnAnswer(session_id=place.stored_session, messages=stored)
