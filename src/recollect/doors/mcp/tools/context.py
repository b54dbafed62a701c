"""The five tools of the context-manager contract."""

from typing import Annotated

from pydantic import Field

from recollect.doors.caller import Caller
from recollect.doors.conversations import ChatHistory, Conversation, RecordedInteraction
from recollect.doors.mcp.errors import as_text
from recollect.doors.mcp.schema import WHOLE, AsOf, Moment
from recollect.doors.mcp.tool import ADDS, READS, Tools
from recollect.flows import conversations

TOOLS = Tools(as_text)

ConversationId = Annotated[str, Field(description="Conversation ID")]
UserId = Annotated[str, Field(description="User ID")]


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
    as_of: AsOf = None,
) -> ChatHistory:
    """Retrieve the last N messages from a conversation for context rebuilding."""
    history = await caller.engine.conversations.history(caller.namespace, conversation_id, limit, as_of)
    return ChatHistory.of(history)


@TOOLS.tool("Record interaction", ADDS)
async def record_interaction(
    caller: Caller,
    conversation_id: ConversationId,
    user_message: Annotated[str, Field(description="User's message content")],
    assistant_response: Annotated[str, Field(description="Assistant's response content")],
    metadata: Annotated[str | None, Field(description="JSON metadata about the interaction")] = None,
    speaker: Annotated[str | None, Field(description="User's name")] = None,
    at: Annotated[Moment | None, Field(description="When it was said (default: now)")] = None,
) -> RecordedInteraction:
    """Save a user message and assistant response to the conversation history."""
    interaction = await caller.engine.conversations.record(
        caller.namespace, conversation_id, user_message, assistant_response, metadata, speaker, at
    )
    return RecordedInteraction.of(interaction)


@TOOLS.tool("Create conversation", ADDS)
async def create_conversation(
    caller: Caller,
    user_id: UserId,
    title: Annotated[str | None, Field(description="Conversation title")] = None,
) -> Conversation:
    """Create a new conversation for a user."""
    return Conversation.of(await caller.engine.conversations.create(caller.namespace, user_id, title))


@TOOLS.tool("Get conversation", READS)
async def get_conversation(caller: Caller, conversation_id: ConversationId, as_of: AsOf = None) -> Conversation:
    """Get conversation metadata."""
    return Conversation.of(await caller.engine.conversations.get(caller.namespace, conversation_id, as_of))


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
    as_of: AsOf = None,
) -> list[Conversation]:
    """List recent conversations for a user."""
    found = await caller.engine.conversations.of_user(caller.namespace, user_id, limit, as_of)
    return list(map(Conversation.of, found))
