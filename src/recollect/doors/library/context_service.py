"""ContextService: the synchronous calls of the context-manager contract, over the same engine on a background loop."""

import json
from datetime import datetime
from typing import Any

from recollect.doors.library.background import background
from recollect.flows import conversations
from recollect.memory.log import Message
from recollect.memory.sessions import Session


class ContextService:
    """
    Stateless conversation context: every call reads or writes the database, nothing is kept between calls.

    The calls are synchronous and safe from any thread, also from inside a running event loop, which they block.
    """

    @staticmethod
    def fetch_chat_history(conversation_id: str, limit: int = conversations.DEFAULT_HISTORY) -> dict[str, Any]:
        """The last messages of a conversation, oldest first, with what is known of it."""
        history = background.call(lambda e: e.conversations.history(e.settings.namespace, conversation_id, limit))
        session = history.conversation
        return {
            "conversation_id": session.id,
            "user_id": session.user_id,
            "title": session.title,
            "message_count": len(history.messages),
            "created_at": _iso(session.created_at),
            "updated_at": _iso(session.updated_at),
            "messages": [_message(message) for message in history.messages],
        }

    @staticmethod
    def record_interaction(
        conversation_id: str, user_message: str, assistant_response: str, metadata: str | None = None
    ) -> dict[str, Any]:
        """Save a user message and its answer, both or neither."""
        interaction = background.call(
            lambda e: e.conversations.record(
                e.settings.namespace, conversation_id, user_message, assistant_response, metadata
            )
        )
        return {
            "conversation_id": conversation_id,
            "user_message": _message(interaction.user_message),
            "assistant_message": _message(interaction.assistant_message),
            "recorded_at": _iso(interaction.assistant_message.created_at),
        }

    @staticmethod
    def create_conversation(user_id: str, title: str | None = None) -> dict[str, Any]:
        """A new, empty conversation for a user."""
        return _conversation(background.call(lambda e: e.conversations.create(e.settings.namespace, user_id, title)))

    @staticmethod
    def get_conversation(conversation_id: str) -> dict[str, Any]:
        """A conversation without its messages."""
        return _conversation(background.call(lambda e: e.conversations.get(e.settings.namespace, conversation_id)))

    @staticmethod
    def list_conversations(user_id: str, limit: int = conversations.DEFAULT_CONVERSATIONS) -> list[dict[str, Any]]:
        """A user's conversations, the last active first."""
        sessions = background.call(lambda e: e.conversations.of_user(e.settings.namespace, user_id, limit))
        return [_conversation(session) for session in sessions]

    @staticmethod
    def close() -> None:
        """Let go of the database. The next call opens it again; at the end of the process this happens by itself."""
        background.close()


def _conversation(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "user_id": session.user_id,
        "title": session.title,
        "created_at": _iso(session.created_at),
        "updated_at": _iso(session.updated_at),
    }


def _message(message: Message) -> dict[str, Any]:
    return {
        "id": str(message.id),
        "conversation_id": message.session_id,
        "role": message.role,
        "content": message.content,
        "metadata": None if message.metadata is None else json.dumps(message.metadata, ensure_ascii=False),
        "created_at": _iso(message.created_at),
    }


def _iso(moment: datetime) -> str:
    return moment.isoformat()
