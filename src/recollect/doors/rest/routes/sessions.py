"""`/sessions`: sessions and their messages as chat frameworks keep them, straight from the log."""

import json
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Self

from fastapi import Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from recollect import checks
from recollect.checks import MAX_IDENTIFIER_CHARACTERS
from recollect.doors import cursors
from recollect.doors.rest.bodies import SAID_AT, Body, Moment
from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routes.stm import MessageId
from recollect.doors.rest.routing import Route, Router
from recollect.flows.sessions import MAX_LISTED, Described
from recollect.memory import log, sessions
from recollect.memory.sessions import SessionPlace
from recollect.steps import in_steps

router = Router(tags=["sessions"], route_class=Route, responses=responses())

DEFAULT_LIMIT = 100
MAX_MESSAGES = 10_000
MAX_OTHERS = 100

SessionId = Annotated[str, Path(min_length=1, max_length=MAX_IDENTIFIER_CHARACTERS, description="Id of the session")]
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=MAX_IDENTIFIER_CHARACTERS)]
Limit = Annotated[int, Query(ge=1, le=MAX_LISTED, description="Maximum number")]

_USER = "Whose session it is, decided when it begins: `anonymous` if omitted then"
_PAYLOAD = (
    "Any JSON value, which comes back as it is: the message as your program has it. It is not searched. Without "
    "`text`, the message is stored and returned in its place, and no search or context window shows it."
)


_EXPECTED = (
    "Keys of the session's metadata and what they must be now, null for one that must not be there; otherwise nothing "
    "is done, and the answer is a 409"
)


_KEEP_NULL = "Set keys to null instead of removing them"


class SessionFields(Body):
    """What is known of a session."""

    user_id: Identifier | None = Field(None, description=_USER, examples=["user-42"])
    agent_id: Identifier | None = Field(None, description="The agent that it is kept for, to list by")
    title: str | None = Field(None, examples=["The trip to Lyon"])
    metadata: dict[str, Any] | None = Field(None, description="Arbitrary, such as the state of an agent")

    def told(self) -> Described:
        """The same, checked."""
        return Described(self.user_id, self.agent_id, self.title, self.metadata)


class NewSession(SessionFields):
    """A session to begin."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"user_id": "user-42", "metadata": {"stage": "intro"}}]})

    id: Identifier | None = Field(None, description="An id of your choice; a UUID if omitted", examples=["trip-7"])


class SessionChange(Body):
    """What to change; fields that are omitted stay as they are."""

    title: str | None = None
    expected: dict[str, Any] | None = Field(None, description=_EXPECTED, examples=[{"stage": "intro"}])
    metadata: dict[str, Any] | None = Field(
        None, description="Keys to set; one with null is removed, and the others stay", examples=[{"stage": "booking"}]
    )
    keep_null: bool = Field(False, description=_KEEP_NULL)


class ChatSession(BaseModel):
    """A session without its messages."""

    id: str = Field(examples=["trip-7"])
    user_id: str = Field(examples=["user-42"])
    agent_id: str | None
    title: str | None
    metadata: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime = Field(description="When something was last said in it, or its fields were changed")

    @classmethod
    def of(cls, session: sessions.Session) -> Self:
        """A stored session."""
        return cls(
            id=session.id,
            user_id=session.user_id,
            agent_id=session.agent_id,
            title=session.title,
            metadata=session.metadata,
            created_at=session.created_at,
            updated_at=session.updated_at,
        )


class SessionsPage(BaseModel):
    """Sessions, the last active first."""

    sessions: list[ChatSession]
    next: str | None = Field(description="The `cursor` of the next page; null on the last")


class NewSessionMessage(Body):
    """A message to add: what was said, or what your program wants back, or both."""

    role: Identifier = Field(description="Any word: `user`, `assistant`, `tool`, ...", examples=["user"])
    text: str | None = Field(None, description="What was said; recall and context windows show it")
    speaker: Identifier | None = Field(None, description="The name of who said it", examples=["Dana"])
    at: Moment | None = Field(None, description=SAID_AT)
    id: MessageId | None = Field(None, description="A UUID of your own: sent again, the message is stored once")
    metadata: dict[str, Any] | None = Field(
        None, description="Arbitrary key-value metadata, which recall can filter by"
    )
    payload: Any = Field(None, description=_PAYLOAD, examples=[{"type": "function_call", "name": "get_weather"}])

    def new(self, number: int) -> log.NewMessage:
        """The same, checked."""
        place = f"messages[{number}]"
        return log.NewMessage(
            checks.short_name(self.role, f"{place}.role"),
            checks.optional_text(self.text, f"{place}.text") or "",
            checks.metadata(self.metadata, f"{place}.metadata"),
            checks.optional_short_name(self.speaker, f"{place}.speaker"),
            checks.storable_utc(self.at, f"{place}.at"),
            self.id,
            checks.payload(self.payload, f"{place}.payload"),
        )


class NewSessionMessages(Body):
    """Messages to add, next to each other and in this order, all or none."""

    messages: list[NewSessionMessage] = Field(max_length=MAX_MESSAGES)
    user_id: Identifier | None = Field(None, description=_USER, examples=["user-42"])
    metadata: dict[str, Any] | None = Field(
        None, description="Keys of the session's metadata to set with it, in one step; one with null is removed"
    )
    expected: dict[str, Any] | None = Field(None, description=_EXPECTED)
    other_metadata: dict[Identifier, dict[str, Any]] | None = Field(
        None,
        max_length=MAX_OTHERS,
        description="The same of other sessions, which must exist, by their ids, in the same step",
        examples=[{"profile-42": {"seat": "aisle"}}],
    )
    keep_null: bool = Field(False, description=_KEEP_NULL)

    def new(self) -> Iterator[log.NewMessage]:
        """The messages, checked one by one."""
        return (message.new(number) for number, message in enumerate(self.messages))


class SessionMessage(BaseModel):
    """A message as it was stored."""

    id: str = Field(examples=["0198b2a6-6a35-7c7e-9f6e-2f1f5d1c9a51"])
    role: str = Field(examples=["user"])
    text: str = Field(description="Empty if it has none", examples=["Hello, how are you?"])
    speaker: str | None
    at: datetime
    metadata: dict[str, Any] | None
    payload: Any = Field(description="As it was sent; null if there is none")

    @classmethod
    def of(cls, message: log.Message) -> Self:
        """A message of the log; other doors have metadata that is no object."""
        return cls(
            id=str(message.id),
            role=message.role,
            text=message.content,
            speaker=message.speaker,
            at=message.created_at,
            metadata=checks.as_object(message.metadata),
            payload=None if message.payload is None else json.loads(message.payload),
        )


class LoggedMessage(SessionMessage):
    """A message, and the session that it is in."""

    session_id: str = Field(examples=["trip-7"])


class MessagesOfSession(BaseModel):
    """Messages of a session, oldest first."""

    messages: list[SessionMessage]


class RemovedMessage(BaseModel):
    """The message that was removed; null if there was none."""

    message: SessionMessage | None


class Removed(BaseModel):
    """How many messages were removed."""

    removed: int


class RemovedSession(BaseModel):
    """Whether the session existed and was deleted."""

    deleted: bool


@router.get("/sessions")
async def list_sessions(
    request: Request,
    user_id: Annotated[Identifier | None, Query(description="Only sessions of this user")] = None,
    agent_id: Annotated[Identifier | None, Query(description="Only sessions of this agent")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Query(description="`next` of the previous page")] = None,
) -> SessionsPage:
    """List sessions, the last active first."""
    caller = calling(request)
    behind = (
        None
        if cursor is None
        else SessionPlace(*cursors.read(cursor, partial(checks.identifier, name="cursor"), "`next`"))
    )
    page = await caller.engine.sessions.page(caller.namespace, user_id, agent_id, limit, behind)
    last = page[-1] if len(page) == limit else None
    return SessionsPage(
        sessions=list(map(ChatSession.of, page)),
        next=None if last is None else cursors.write(last.updated_at, last.id),
    )


@router.post("/sessions", status_code=201, responses=responses(409))
async def create_session(request: Request, body: NewSession) -> ChatSession:
    """Begin a session; an id that is taken is a 409."""
    caller = calling(request)
    return ChatSession.of(await caller.engine.sessions.create(caller.namespace, body.id, body.told()))


@router.get("/sessions/{session_id}", responses=responses(404))
async def get_session(request: Request, session_id: SessionId) -> ChatSession:
    """Get what is known of a session, without its messages."""
    caller = calling(request)
    return ChatSession.of(await caller.engine.sessions.get(caller.namespace, session_id))


@router.put("/sessions/{session_id}", responses=responses(404, 409))
async def put_session(request: Request, session_id: SessionId, body: SessionFields) -> ChatSession:
    """Begin a session, or replace all fields of one that exists; its user stays, and another user's is a 409."""
    caller = calling(request)
    return ChatSession.of(await caller.engine.sessions.put(caller.namespace, session_id, body.told()))


@router.patch("/sessions/{session_id}", responses=responses(404, 409))
async def change_session(request: Request, session_id: SessionId, body: SessionChange) -> ChatSession:
    """Change the title, or some keys of the metadata, while nobody else changes the session."""
    caller = calling(request)
    changed = await caller.engine.sessions.change(
        caller.namespace, session_id, body.title, body.metadata, body.expected, keep_null=body.keep_null
    )
    return ChatSession.of(changed)


@router.delete("/sessions/{session_id}")
async def remove_session(request: Request, session_id: SessionId) -> RemovedSession:
    """Delete a session and all its messages permanently; `deleted` is false if there is none."""
    caller = calling(request)
    return RemovedSession(deleted=await caller.engine.sessions.delete(caller.namespace, session_id))


@router.get("/sessions/{session_id}/messages", responses=responses(404))
async def list_session_messages(
    request: Request,
    session_id: SessionId,
    limit: Limit = DEFAULT_LIMIT,
    after: Annotated[MessageId | None, Query(description="Only messages behind this one")] = None,
    before: Annotated[MessageId | None, Query(description="Only messages before this one")] = None,
    newest: Annotated[bool, Query(description="The last of them instead of the first")] = False,
) -> MessagesOfSession:
    """Get messages of a session from the log, oldest first: nothing is summarised or left out.

    A session that does not exist has none.
    """
    caller = calling(request)
    found = await caller.engine.sessions.messages(caller.namespace, session_id, limit, after, before, newest=newest)
    return MessagesOfSession(messages=await in_steps(map(SessionMessage.of, found)))


@router.post("/sessions/{session_id}/messages", responses=responses(404, 409))
async def add_session_messages(request: Request, session_id: SessionId, body: NewSessionMessages) -> MessagesOfSession:
    """Add messages, all or none; a session that does not exist begins with them."""
    caller = calling(request)
    new = await in_steps(body.new())
    stored = await caller.engine.sessions.add(
        caller.namespace,
        session_id,
        new,
        body.user_id,
        body.metadata,
        body.expected,
        others=body.other_metadata,
        keep_null=body.keep_null,
    )
    return MessagesOfSession(messages=await in_steps(map(SessionMessage.of, stored)))


@router.delete("/sessions/{session_id}/messages")
async def clear_session(request: Request, session_id: SessionId) -> Removed:
    """Delete all messages of a session permanently, and keep the session."""
    caller = calling(request)
    return Removed(removed=await caller.engine.sessions.clear(caller.namespace, session_id))


@router.delete("/sessions/{session_id}/messages/last")
async def pop_session_message(request: Request, session_id: SessionId) -> RemovedMessage:
    """Delete the newest message of a session permanently and return it; of two such requests each gets another."""
    caller = calling(request)
    message = await caller.engine.sessions.pop(caller.namespace, session_id)
    return RemovedMessage(message=None if message is None else SessionMessage.of(message))


@router.delete("/sessions/{session_id}/messages/{message_id}", responses=responses(404))
async def remove_session_message(
    request: Request, session_id: SessionId, message_id: Annotated[MessageId, Path(description="Id of the message")]
) -> RemovedMessage:
    """Delete one message of a session permanently and return it."""
    caller = calling(request)
    message = await caller.engine.sessions.remove(caller.namespace, session_id, message_id)
    return RemovedMessage(message=SessionMessage.of(message))


@router.get("/messages/{message_id}", responses=responses(404))
async def get_logged_message(
    request: Request, message_id: Annotated[MessageId, Path(description="Id of the message, of whatever session")]
) -> LoggedMessage:
    """Get one message of the log."""
    caller = calling(request)
    message = await caller.engine.sessions.message(caller.namespace, message_id)
    return LoggedMessage(session_id=message.session_id, **SessionMessage.of(message).model_dump())
