"""`/stm`: short-term memory, a window for each session."""

from collections.abc import Iterator
from contextlib import suppress
from operator import not_
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from fastapi import Path, Query, Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema

from recollect import checks
from recollect.checks import MAX_IDENTIFIER_CHARACTERS
from recollect.doors.memories import PinnedRecords
from recollect.doors.rest.bodies import SAID_AT, Body, ChatEntry, Moment
from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routing import Route, Router
from recollect.memory import log
from recollect.memory.windows import Strategy, WindowConfig, WindowMessage
from recollect.steps import in_steps

router = Router(prefix="/stm", tags=["stm"], route_class=Route, responses=responses(409))

Role = Literal["user", "assistant", "system", "summary"]
ROLES: tuple[str, ...] = ("user", "assistant", "system", "summary")
LARGEST_COUNT = 2**31 - 1

SessionId = Annotated[
    str, Path(min_length=1, max_length=MAX_IDENTIFIER_CHARACTERS, description="Unique session identifier")
]
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=MAX_IDENTIFIER_CHARACTERS)]
Count = Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
AsOf = Annotated[Moment | None, Query(description="As it was at this time, which must not be in the future")]


MAX_MESSAGES = 10_000


def _uuid(given: object) -> UUID:
    """A UUID with hyphens; Python would also take it without them, or in braces."""
    with suppress(ValueError):
        if isinstance(given, str) and given.lower() == str(read := UUID(given)):
            return read
    raise ValueError("write a UUID such as 0198b2a6-6a35-7c7e-9f6e-2f1f5d1c9a51")


MessageId = Annotated[UUID, BeforeValidator(_uuid), WithJsonSchema({"type": "string", "format": "uuid"})]


class NewMessage(ChatEntry):
    """One message to add. An assistant message that only calls tools is not added."""

    passed_over = frozenset({"name", "tool_calls", "function_call", "refusal", "annotations", "audio"})

    role: Role = Field(description="The role of the speaker")
    metadata: dict[str, Any] | None = Field(None, description="Arbitrary key-value metadata")
    speaker: Identifier | None = Field(None, description="The name of who said it", examples=["Dana"])
    at: Moment | None = Field(None, description=SAID_AT)
    id: MessageId | None = Field(None, description="A UUID of your own: sent again, the message is stored once")

    def new(self, number: int) -> log.NewMessage | None:
        """The same, checked; None for an assistant's message without any text."""
        text = self.text()
        if not text and self.role == "assistant":
            return None
        place = f"messages[{number}]"
        return log.NewMessage(
            self.role,
            checks.text(text, f"{place}.content"),
            checks.metadata(self.metadata, f"{place}.metadata"),
            checks.optional_short_name(self.speaker, f"{place}.speaker"),
            checks.storable_utc(self.at, f"{place}.at"),
            self.id,
        )


class NewMessages(Body):
    """Messages to add, next to each other and in this order."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "messages": [
                        {"role": "user", "content": "Hello, how are you?", "metadata": {"source": "chat-ui"}},
                        {"role": "assistant", "content": "I'm doing well, thanks!"},
                    ]
                }
            ]
        }
    )

    messages: list[NewMessage] = Field(max_length=MAX_MESSAGES, description="Array of messages to add")
    user_id: Identifier | None = Field(None, description="Whose session it is if it is new", examples=["user-42"])

    def new(self) -> Iterator[log.NewMessage]:
        """The messages with text."""
        for number, message in enumerate(self.messages):
            if new := message.new(number):
                yield new


class BufferedMessage(BaseModel):
    """A message in the buffer, or a summary of messages."""

    id: str = Field(examples=["0198b2a6-6a35-7c7e-9f6e-2f1f5d1c9a51"])
    role: Role = Field(examples=["user"])
    content: str = Field(examples=["Hello, how are you?"])
    metadata: dict[str, Any] | None = Field(examples=[{"source": "chat-ui"}])
    timestamp: float = Field(description="Seconds since 1970 (UTC)", examples=[1707900000.123])
    token_count: int = Field(description="An estimate", examples=[6])

    @classmethod
    def of(cls, message: WindowMessage) -> Self:
        """The same in the contract's shape; other doors know more roles, and metadata that is no object."""
        return cls(
            id=str(message.id),
            role=message.role if message.role in ROLES else "system",
            content=message.content,
            metadata=checks.as_object(message.metadata),
            timestamp=message.at.timestamp(),
            token_count=message.tokens,
        )


class AddedMessages(BaseModel):
    """The messages as they were stored."""

    session_id: str = Field(examples=["abc123"])
    added: int = Field(examples=[2])
    messages: list[BufferedMessage]


class SessionMessages(BaseModel):
    """The buffer of a session, oldest first; empty for a session without messages."""

    session_id: str = Field(examples=["abc123"])
    messages: list[BufferedMessage]


class ContextWindow(BaseModel):
    """The messages that the session's strategy keeps."""

    session_id: str = Field(examples=["abc123"])
    messages: list[BufferedMessage]
    strategy: Strategy = Field(description="The strategy that was applied")
    total_tokens: int = Field(description="Estimated tokens of the messages", examples=[1234])
    pinned: PinnedRecords | None = Field(
        None, description="Pinned memories, to put before the messages; only with `include_pinned`", exclude_if=not_
    )


class DeletedSession(BaseModel):
    """Whether the session existed and was deleted."""

    session_id: str = Field(examples=["abc123"])
    deleted: bool = Field(examples=[True])


class SessionConfig(Body):
    """The session's own configuration; null or omitted values use the deployment's defaults."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"strategy": "token_threshold", "max_messages": 100, "max_tokens": 4000}]}
    )

    strategy: Strategy | None = Field(None, description="`sliding_window` or `token_threshold`")
    max_messages: Count | None = Field(None, description="Override max messages for sliding window")
    max_tokens: Count | None = Field(None, description="Override token threshold")


class ConfiguredSession(BaseModel):
    """The whole configuration of the session from now on."""

    session_id: str = Field(examples=["abc123"])
    config: SessionConfig


@router.post("/{session_id}/messages", summary="Add messages")
async def add_messages(request: Request, session_id: SessionId, body: NewMessages) -> AddedMessages:
    """Add messages to a session's buffer; the first message creates the session.

    Windows in Redis have no owners, no speakers and no ids of yours: there, `user_id`, `speaker` and `id` are refused.
    """
    caller = calling(request)
    stored = await caller.engine.windows.add(caller.namespace, session_id, await in_steps(body.new()), body.user_id)
    messages = await in_steps(map(BufferedMessage.of, stored))
    return AddedMessages(session_id=session_id, added=len(stored), messages=messages)


@router.get("/{session_id}/messages", summary="Retrieve messages")
async def get_messages(
    request: Request,
    session_id: SessionId,
    limit: Annotated[
        int | None,
        Query(ge=1, le=LARGEST_COUNT, description="Maximum number of most recent messages to return; all if not given"),
    ] = None,
    as_of: AsOf = None,
) -> SessionMessages:
    """Retrieve messages from a session, oldest first: those not compacted yet, whatever the strategy.

    Windows in Redis keep no history: there, `as_of` is refused.
    """
    caller = calling(request)
    found = await caller.engine.windows.messages(caller.namespace, session_id, limit, as_of)
    return SessionMessages(session_id=session_id, messages=await in_steps(map(BufferedMessage.of, found)))


@router.get("/{session_id}/context", summary="Get the context window")
async def get_context(
    request: Request,
    session_id: SessionId,
    as_of: AsOf = None,
    include_pinned: Annotated[
        bool, Query(description="Add the pinned memories of the session and of its user in `pinned`")
    ] = False,
) -> ContextWindow:
    """Get the context window for a session: the active strategy is applied.

    `sliding_window` returns the last messages. With `token_threshold` a buffer over its threshold is compacted until it
    fits: the older 60 % of its messages, or more, become one summary. Pinned system messages stay.

    With `as_of` nothing is compacted: the answer is the last summary by then, and what was said since, up to then.
    """
    caller = calling(request)
    context = await caller.engine.windows.context(caller.namespace, session_id, as_of)
    pinned = None
    if include_pinned:
        pinned = PinnedRecords.of(await caller.engine.pinned.of_session(caller.namespace, session_id, as_of))
    return ContextWindow(
        session_id=session_id,
        messages=[BufferedMessage.of(message) for message in context.messages],
        strategy=context.strategy,
        total_tokens=context.total_tokens,
        pinned=pinned,
    )


@router.delete("/{session_id}", summary="Delete a session")
async def delete_session(request: Request, session_id: SessionId) -> DeletedSession:
    """Delete a session and all its messages permanently; `deleted` is false if there is none."""
    caller = calling(request)
    return DeletedSession(
        session_id=session_id, deleted=await caller.engine.windows.delete(caller.namespace, session_id)
    )


@router.put("/{session_id}/config", summary="Configure a session")
async def configure_session(request: Request, session_id: SessionId, body: SessionConfig) -> ConfiguredSession:
    """Set per-session strategy configuration; this replaces the session's previous configuration."""
    caller = calling(request)
    config = WindowConfig(body.strategy, body.max_messages, body.max_tokens)
    await caller.engine.windows.configure(caller.namespace, session_id, config)
    return ConfiguredSession(session_id=session_id, config=body)
