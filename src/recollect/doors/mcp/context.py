"""The five tools of the context-manager contract."""

import json
from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, Field

from recollect.doors.caller import Caller
from recollect.doors.mcp.errors import as_text
from recollect.doors.mcp.schema import WHOLE
from recollect.doors.mcp.tool import ADDS, READS, Tools
from recollect.flows import conversations
from recollect.memory import log, sessions

TOOLS = Tools(as_text)

ConversationId = Annotated[str, Field(description="Conversation ID")]
UserId = Annotated[str, Field(description="User ID")]


class Conversation(BaseModel):
    """A conversation without its messages."""

    id: str
    user_id: str
    title: str | None
    created_at: str
    updated_at: str

    @classmethod
    def of(cls, session: sessions.Session) -> Self:
        return cls(
            id=session.id,
            user_id=session.user_id,
            title=session.title,
            created_at=_iso(session.created_at),
            updated_at=_iso(session.updated_at),
        )


class Message(BaseModel):
    """One message; its metadata is JSON text."""

    id: str
    conversation_id: str
    role: str
    content: str
    metadata: str | None
    created_at: str

    @classmethod
    def of(cls, message: log.Message) -> Self:
        return cls(
            id=str(message.id),
            conversation_id=message.session_id,
            role=message.role,
            content=message.content,
            metadata=None if message.metadata is None else json.dumps(message.metadata, ensure_ascii=False),
            created_at=_iso(message.created_at),
        )


class ChatHistory(BaseModel):
    """A conversation and its last messages, oldest first."""

    conversation_id: str
    user_id: str
    title: str | None
    message_count: int
    created_at: str
    updated_at: str
    messages: list[Message]


class RecordedInteraction(BaseModel):
    """A question and its answer, as they were written together."""

    conversation_id: str
    user_message: Message
    assistant_message: Message
    recorded_at: str


@TOOLS.tool("Fetch chat history", READS)
async def fetch_chat_history(
    caller: Caller,
    conversation_id: ConversationId,
    limit: Annotated[
        int,
        Field(
            ge=1,
            le=conversations.MAX_LISTED,
            description="Number of messages to retrieve (default: 10, max: 100)",
        ),
        WHOLE,
    ] = conversations.DEFAULT_HISTORY,
) -> ChatHistory:
    """Retrieve the last N messages from a conversation for context rebuilding."""
    history = await caller.engine.conversations.history(caller.namespace, conversation_id, limit)
    about = Conversation.of(history.conversation)
    return ChatHistory(
        conversation_id=about.id,
        user_id=about.user_id,
        title=about.title,
        message_count=len(history.messages),
        created_at=about.created_at,
        updated_at=about.updated_at,
        messages=list(map(Message.of, history.messages)),
    )


@TOOLS.tool("Record interaction", ADDS)
async def record_interaction(
    caller: Caller,
    conversation_id: ConversationId,
    user_message: Annotated[str, Field(description="User's message content")],
    assistant_response: Annotated[str, Field(description="Assistant's response content")],
    metadata: Annotated[str | None, Field(description="JSON metadata about the interaction")] = None,
) -> RecordedInteraction:
    """Save a user message and assistant response to the conversation history."""
    interaction = await caller.engine.conversations.record(
        caller.namespace, conversation_id, user_message, assistant_response, metadata
    )
    answered = Message.of(interaction.assistant_message)
    return RecordedInteraction(
        conversation_id=conversation_id,
        user_message=Message.of(interaction.user_message),
        assistant_message=answered,
        recorded_at=answered.created_at,
    )


@TOOLS.tool("Create conversation", ADDS)
async def create_conversation(
    caller: Caller,
    user_id: UserId,
    title: Annotated[str | None, Field(description="Conversation title")] = None,
) -> Conversation:
    """Create a new conversation for a user."""
    return Conversation.of(await caller.engine.conversations.create(caller.namespace, user_id, title))


@TOOLS.tool("Get conversation", READS)
async def get_conversation(caller: Caller, conversation_id: ConversationId) -> Conversation:
    """Get conversation metadata."""
    return Conversation.of(await caller.engine.conversations.get(caller.namespace, conversation_id))


@TOOLS.tool("List conversations", READS)
async def list_conversations(
    caller: Caller,
    user_id: UserId,
    limit: Annotated[
        int,
        Field(
            ge=1,
            le=conversations.MAX_LISTED,
            description="Number of conversations to retrieve (default: 20, max: 100)",
        ),
        WHOLE,
    ] = conversations.DEFAULT_CONVERSATIONS,
) -> list[Conversation]:
    """List recent conversations for a user."""
    found = await caller.engine.conversations.of_user(caller.namespace, user_id, limit)
    return list(map(Conversation.of, found))


def _iso(moment: datetime) -> str:
    return moment.isoformat()
