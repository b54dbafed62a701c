"""ContextService: the synchronous calls of the context-manager contract, over the same engine on a background loop."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, TypeVar

from recollect.background import Background
from recollect.doors.conversations import ChatHistory, Conversation, RecordedInteraction
from recollect.engine import Engine
from recollect.flows import conversations


@asynccontextmanager
async def _default_engine() -> AsyncIterator[Engine]:
    engine = await Engine.open()
    try:
        yield engine
    finally:
        await engine.close()


background = Background(_default_engine)

Result = TypeVar("Result")


def call(name: str, work: Callable[[Engine], Awaitable[Result]]) -> Result:
    """One call on the background loop, with its line in the audit log."""

    async def run(engine: Engine) -> Result:
        async with engine.audit.operation(engine.settings.namespace, name):
            return await work(engine)

    return background.call(run)


class ContextService:
    """
    Stateless conversation context: every call reads or writes the database, nothing is kept between calls.

    The calls are synchronous and safe from any thread, even inside a running event loop, which they block.
    """

    @staticmethod
    def fetch_chat_history(
        conversation_id: str, limit: int = conversations.DEFAULT_HISTORY, *, as_of: datetime | None = None
    ) -> dict[str, Any]:
        """The last messages of a conversation, oldest first, with what is known of it, or was at the time `as_of`."""
        history = call(
            "fetch_chat_history", lambda e: e.conversations.history(e.settings.namespace, conversation_id, limit, as_of)
        )
        return ChatHistory.of(history).model_dump()

    @staticmethod
    def record_interaction(
        conversation_id: str,
        user_message: str,
        assistant_response: str,
        metadata: str | None = None,
        *,
        speaker: str | None = None,
        at: datetime | None = None,
    ) -> dict[str, Any]:
        """Save a user message and its answer, both or neither; `speaker` names the user, `at` says when it was."""
        interaction = call(
            "record_interaction",
            lambda e: e.conversations.record(
                e.settings.namespace, conversation_id, user_message, assistant_response, metadata, speaker, at
            ),
        )
        return RecordedInteraction.of(interaction).model_dump()

    @staticmethod
    def create_conversation(user_id: str, title: str | None = None) -> dict[str, Any]:
        """A new, empty conversation for a user."""
        session = call("create_conversation", lambda e: e.conversations.create(e.settings.namespace, user_id, title))
        return Conversation.of(session).model_dump()

    @staticmethod
    def get_conversation(conversation_id: str, *, as_of: datetime | None = None) -> dict[str, Any]:
        """A conversation without its messages, if it existed at the time `as_of`."""
        session = call("get_conversation", lambda e: e.conversations.get(e.settings.namespace, conversation_id, as_of))
        return Conversation.of(session).model_dump()

    @staticmethod
    def list_conversations(
        user_id: str, limit: int = conversations.DEFAULT_CONVERSATIONS, *, as_of: datetime | None = None
    ) -> list[dict[str, Any]]:
        """A user's conversations, the last active first; with `as_of`, as they were at that time."""
        sessions = call(
            "list_conversations", lambda e: e.conversations.of_user(e.settings.namespace, user_id, limit, as_of)
        )
        return [Conversation.of(session).model_dump() for session in sessions]

    @staticmethod
    def close() -> None:
        """Close the database. The next call opens it again; at the end of the process it is closed for you."""
        background.close()
