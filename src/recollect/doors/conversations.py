"""The answers of the context-manager contract, shared by its tools and its synchronous service."""

import json
from datetime import datetime
from typing import Self

from pydantic import BaseModel

from recollect.flows.conversations import History, Interaction
from recollect.memory import log, sessions


class Conversation(BaseModel):
    """A conversation without its messages."""

    id: str
    user_id: str
    title: str | None
    created_at: str
    updated_at: str

    @classmethod
    def of(cls, session: sessions.Session) -> Self:
        """A session as the contract shows it."""
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
        """A logged message as the contract shows it."""
        return cls(
            id=str(message.id),
            conversation_id=message.session_id,
            role=message.role,
            content=message.content,
            # In one order: the database keeps another than the caller's.
            metadata=None
            if message.metadata is None
            else json.dumps(message.metadata, ensure_ascii=False, sort_keys=True),
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

    @classmethod
    def of(cls, history: History) -> Self:
        """A history as the contract shows it."""
        session = history.conversation
        return cls(
            conversation_id=session.id,
            user_id=session.user_id,
            title=session.title,
            message_count=len(history.messages),
            created_at=_iso(session.created_at),
            updated_at=_iso(session.updated_at),
            messages=list(map(Message.of, history.messages)),
        )


class RecordedInteraction(BaseModel):
    """A question and its answer, as they were written together."""

    conversation_id: str
    user_message: Message
    assistant_message: Message
    recorded_at: str

    @classmethod
    def of(cls, interaction: Interaction) -> Self:
        """An interaction as the contract shows it."""
        answer = Message.of(interaction.assistant_message)
        return cls(
            conversation_id=answer.conversation_id,
            user_message=Message.of(interaction.user_message),
            assistant_message=answer,
            recorded_at=answer.created_at,
        )


def _iso(moment: datetime) -> str:
    return moment.isoformat()
