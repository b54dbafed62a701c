"""Conversations: rebuild a conversation's context from the log, and record what was said next."""

from dataclasses import dataclass

from recollect import checks
from recollect.flows.remember import Line, Remember, SessionNotFound, Turn
from recollect.identifiers import uuid7
from recollect.memory.log import Log, Message
from recollect.memory.sessions import Session, Sessions
from recollect.storage.database import Database

DEFAULT_HISTORY = 10
DEFAULT_CONVERSATIONS = 20
MAX_LISTED = 100


@dataclass(frozen=True, slots=True)
class History:
    """A conversation and its last messages, oldest first."""

    conversation: Session
    messages: list[Message]


@dataclass(frozen=True, slots=True)
class Interaction:
    """A user's message and its answer, as they were written together."""

    user_message: Message
    assistant_message: Message


class Conversations:
    """The stateless request cycle: fetch the history, think, record the interaction."""

    def __init__(self, database: Database, sessions: Sessions, log: Log, remember: Remember) -> None:
        self._database = database
        self._sessions = sessions
        self._log = log
        self._remember = remember

    async def create(self, namespace: str, user_id: str, title: str | None) -> Session:
        """A new, empty conversation."""
        checks.identifier(user_id, "user_id")
        checks.optional_text(title, "title")
        return await self._remember.session(namespace, str(uuid7()), user_id, title)

    async def get(self, namespace: str, conversation_id: str) -> Session:
        """A conversation without its messages."""
        checks.identifier(conversation_id, "conversation_id")
        async with self._database.reading(namespace) as db:
            return _found(await self._sessions.find(db, conversation_id), conversation_id)

    async def of_user(self, namespace: str, user_id: str, limit: int) -> list[Session]:
        """A user's conversations, the last active first."""
        checks.between(limit, 1, MAX_LISTED, "limit")
        async with self._database.reading(namespace) as db:
            return await self._sessions.recent_of_user(db, user_id, limit)

    async def history(self, namespace: str, conversation_id: str, limit: int) -> History:
        """The last messages of a conversation, with what is known of it."""
        checks.identifier(conversation_id, "conversation_id")
        checks.between(limit, 1, MAX_LISTED, "limit")
        async with self._database.reading(namespace) as db:
            conversation = _found(await self._sessions.find(db, conversation_id), conversation_id)
            return History(conversation, await self._log.recent(db, conversation_id, limit))

    async def record(
        self, namespace: str, conversation_id: str, user_message: str, assistant_response: str, metadata: str | None
    ) -> Interaction:
        """Write a question and its answer next to each other, in one transaction."""
        checks.identifier(conversation_id, "conversation_id")
        encoded = checks.metadata_text(metadata)
        lines = (
            Line("user", checks.text(user_message, "user_message"), encoded),
            Line("assistant", checks.text(assistant_response, "assistant_response"), encoded),
        )
        said, answered = await self._remember.turn(namespace, Turn(conversation_id, lines))
        return Interaction(said, answered)


def _found(session: Session | None, conversation_id: str) -> Session:
    if session is None:
        raise SessionNotFound.named(conversation_id)
    return session
