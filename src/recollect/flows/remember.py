"""Remember: how anything gets into memory, each item in one transaction."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.errors import Conflict, NotFound, RecollectError
from recollect.identifiers import uuid7
from recollect.memory.documents import Documents
from recollect.memory.log import Entry, Log, Message
from recollect.memory.sessions import Advance, Session, Sessions
from recollect.storage.database import Database, Transaction
from recollect.storage.group_commit import GroupCommit

# A session may vanish between being opened and being written to only if someone deletes it just then.
_OPENING_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Line:
    """One message of a turn, checked by its door; metadata is JSON text. Without a time it takes the commit's."""

    role: str
    content: str
    metadata: str | None = None
    speaker: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """Messages that one caller adds to one session, next to each other or not at all."""

    session_id: str
    lines: tuple[Line, ...]
    opens_for: str | None = None
    """Whose session this turn may open; None when the session must exist."""

    def size(self) -> int:
        """About how many bytes travel to the database."""
        return sum(len(line.content) + len(line.metadata or "") for line in self.lines)


class SessionNotFound(NotFound, ValueError):
    """A turn was meant for a session that does not exist."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Conversation {session_id} not found")


class Remember:
    """Writes through the log; concurrent turns of a namespace share a commit."""

    def __init__(self, database: Database, sessions: Sessions, log: Log, documents: Documents) -> None:
        self._database = database
        self._sessions = sessions
        self._log = log
        self._documents = documents
        self._turns = GroupCommit[Turn, list[Message]](self._write_turns)

    async def close(self) -> None:
        """Finish the writes that were accepted."""
        await self._turns.close()

    async def turn(self, namespace: str, turn: Turn) -> list[Message]:
        """Append messages to a session; returns when they are durable."""
        return await self._turns.submit(namespace, turn, turn.size())

    async def session(
        self, namespace: str, session_id: str, user_id: str, title: str | None = None, metadata: str | None = None
    ) -> Session:
        """Begin a session that has an owner."""
        async with self._database.transaction(namespace) as tx:
            session = await self._sessions.create(tx, session_id, user_id, title, metadata)
        if session is None:
            raise Conflict(f"Session {session_id} exists already: choose another id")
        return session

    async def document(self, namespace: str, content: str, embedding: str | None, metadata: str | None) -> UUID:
        """Store a text whole."""
        async with self._database.transaction(namespace) as tx:
            return await self._documents.add(tx, content, embedding, metadata)

    async def _write_turns(self, namespace: str, turns: Sequence[Turn]) -> Sequence[list[Message] | RecollectError]:
        for _ in range(_OPENING_ATTEMPTS):
            async with self._database.transaction(namespace) as tx:
                rooms = await self._sessions.advance(tx, _message_counts(turns))
                missing = {t.session_id: t.opens_for for t in turns if t.opens_for and t.session_id not in rooms}
                if not missing:
                    return await self._append(tx, turns, rooms)
            # In a transaction of its own: to insert sessions while others are locked could end in a deadlock.
            async with self._database.transaction(namespace) as tx:
                await self._sessions.open(tx, missing)
        return [Conflict(f"Session {turn.session_id} is being deleted: try again") for turn in turns]

    async def _append(
        self, tx: Transaction, turns: Sequence[Turn], rooms: dict[str, Advance]
    ) -> list[list[Message] | RecollectError]:
        next_position = {session_id: room.first_position for session_id, room in rooms.items()}
        entries: list[Entry] = []
        for turn in turns:
            if room := rooms.get(turn.session_id):
                entries += _entries(turn, next_position[turn.session_id], room.at)
                next_position[turn.session_id] += len(turn.lines)
        messages = iter(await self._log.append(tx, entries))
        return [
            [next(messages) for _ in turn.lines] if turn.session_id in rooms else SessionNotFound(turn.session_id)
            for turn in turns
        ]


def _message_counts(turns: Sequence[Turn]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for turn in turns:
        counts[turn.session_id] += len(turn.lines)
    return counts


def _entries(turn: Turn, first_position: int, at: datetime) -> list[Entry]:
    return [
        Entry(uuid7(), turn.session_id, position, line.role, line.speaker, line.content, line.metadata, line.at or at)
        for position, line in enumerate(turn.lines, first_position)
    ]
