"""Conversations: rebuild a conversation's context from the log, and record what was said next."""

import re
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect import checks, origin
from recollect.errors import NotFound
from recollect.flows.remember import Remember, SessionNotFound, Turn
from recollect.identifiers import uuid7
from recollect.memory.log import Log, Message, NewMessage
from recollect.memory.sessions import Session, Sessions
from recollect.storage.database import Database, Statements

DEFAULT_HISTORY = 10
DEFAULT_CONVERSATIONS = 20
MAX_LISTED = 100

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


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
        origin.narrowed(user_id)
        return await self._remember.session(namespace, str(uuid7()), user_id, title)

    async def get(self, namespace: str, conversation_id: str, as_of: datetime | None = None) -> Session:
        """A conversation without its messages, if it was there by a moment."""
        checks.storable(conversation_id, "conversation_id")
        moment = checks.as_of(as_of)
        async with self._database.reading(namespace) as db:
            return await self._find(db, conversation_id, moment)

    async def of_user(self, namespace: str, user_id: str, limit: int, as_of: datetime | None = None) -> list[Session]:
        """A user's conversations, the last active first; with a moment, as they were then."""
        checks.storable(user_id, "user_id")
        checks.between(limit, 1, MAX_LISTED, "limit")
        moment = checks.as_of(as_of)
        async with self._database.reading(namespace) as db:
            return await self._sessions.recent_of_user(db, user_id, limit, moment)

    async def history(self, namespace: str, conversation_id: str, limit: int, as_of: datetime | None = None) -> History:
        """The last messages of a conversation, with what is known of it; with a moment, what had been said by then."""
        checks.storable(conversation_id, "conversation_id")
        checks.between(limit, 1, MAX_LISTED, "limit")
        moment = checks.as_of(as_of)
        async with self._database.reading(namespace) as db:
            conversation = await self._find(db, conversation_id, moment)
            return History(conversation, await self._log.recent(db, conversation.id, limit, as_of=moment))

    async def messages(
        self,
        namespace: str,
        session_id: str,
        limit: int,
        before: UUID | None = None,
        as_of: datetime | None = None,
    ) -> list[Message]:
        """The last messages of a session, said by a moment or before one of them; none where there is no session."""
        checks.positive(limit, "limit")
        moment = checks.as_of(as_of)
        async with self._database.reading(namespace) as db:
            found = await self._log.recent(db, session_id, limit, before, moment)
            if not found and before is not None and not await self._log.holds(db, session_id, before):
                raise NotFound(f"Unknown message {before}: set before to the id of the oldest message you have")
            return found

    async def page(
        self,
        namespace: str,
        user_id: str | None,
        limit: int,
        after: str | None = None,
        as_of: datetime | None = None,
    ) -> list[Session]:
        """Sessions of a user or of everybody, the last active first; `after` is the last one of the page before."""
        if user_id is not None:
            checks.identifier(user_id, "user_id")
        user_id, _ = origin.narrowed(user_id)
        checks.positive(limit, "limit")
        moment = checks.as_of(as_of)
        async with self._database.reading(namespace) as db:
            if after is not None:
                await self._find(db, after, moment)
            return await self._sessions.recent(db, user_id, limit, after, moment)

    async def record(
        self,
        namespace: str,
        conversation_id: str,
        user_message: str,
        assistant_response: str,
        metadata: str | None,
        speaker: str | None = None,
        at: datetime | None = None,
    ) -> Interaction:
        """Write a question, with the name of its speaker if given, and its answer, next to each other or not at all."""
        checks.storable(conversation_id, "conversation_id")
        checks.optional_short_name(speaker, "speaker")
        encoded, said_at = checks.metadata_text(metadata), checks.storable_utc(at, "at")
        messages = (
            NewMessage("user", checks.text(user_message, "user_message"), encoded, speaker, said_at),
            NewMessage("assistant", checks.text(assistant_response, "assistant_response"), encoded, at=said_at),
        )
        try:
            said, answered = await self._remember.turn(namespace, Turn(conversation_id, messages))
        except SessionNotFound:
            if _as_uuid(conversation_id) in (None, conversation_id):
                raise
            conversation = await self.get(namespace, conversation_id)
            said, answered = await self._remember.turn(namespace, Turn(conversation.id, messages))
        return Interaction(said, answered)

    async def _find(self, db: Statements, conversation_id: str, as_of: datetime | None) -> Session:
        """Ids are text, but one that is a UUID may be written in either case."""
        session = await self._sessions.find(db, conversation_id, as_of)
        if session is None and (usual := _as_uuid(conversation_id)) not in (None, conversation_id):
            session = await self._sessions.find(db, str(usual), as_of)
        if session is None:
            raise SessionNotFound.named(conversation_id)
        return session


def _as_uuid(text: str) -> str | None:
    """The usual spelling of a UUID; None for any other text."""
    return text.lower() if _UUID.fullmatch(text) else None
