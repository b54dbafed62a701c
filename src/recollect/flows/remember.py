"""Remember: how anything gets into memory, each item in one transaction."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import repeat
from typing import Self
from uuid import UUID

from recollect.errors import Conflict, NotFound, RecollectError
from recollect.identifiers import uuid7
from recollect.memory.documents import Documents
from recollect.memory.log import Entry, Log, Message
from recollect.memory.passages import Excerpt, Passages, Source, analyse
from recollect.memory.sessions import Advance, Session, Sessions
from recollect.storage.database import Database, Transaction
from recollect.storage.group_commit import GroupCommit

# Whose a session is that begins with a message of nobody in particular.
ANONYMOUS = "anonymous"

# Cutting and weighing a longer text would keep the event loop from its other callers.
_ANALYSED_IN_PLACE = 20_000

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


@dataclass(frozen=True, slots=True)
class _Analysed:
    """A turn with the passages of each of its lines, worked out before its transaction."""

    turn: Turn
    excerpts: tuple[tuple[Excerpt, ...], ...]


class SessionNotFound(NotFound, ValueError):
    """A turn was meant for a session that does not exist."""

    @classmethod
    def named(cls, session_id: str) -> Self:
        return cls(f"Conversation {session_id} not found")


class _SessionsMissing(Exception):
    """Undoes a batch whose sessions are to be opened first."""

    def __init__(self, owners: dict[str, str]) -> None:
        self.owners = owners


class Remember:
    """Writes each item with its passages; concurrent turns of a namespace share a commit."""

    def __init__(
        self,
        database: Database,
        sessions: Sessions,
        log: Log,
        documents: Documents,
        passages: Passages,
        written: Callable[[], None],
    ) -> None:
        self._database = database
        self._sessions = sessions
        self._log = log
        self._documents = documents
        self._passages = passages
        self._written = written
        self._turns = GroupCommit[_Analysed, list[Message]](self._write_turns)

    async def close(self) -> None:
        """Finish the writes that were accepted."""
        await self._turns.close()

    async def turn(self, namespace: str, turn: Turn) -> list[Message]:
        """Append messages to a session; returns when they are durable and can be found by their words."""
        excerpts = tuple([await _excerpts(line.content, line.speaker) for line in turn.lines])
        messages = await self._turns.submit(namespace, _Analysed(turn, excerpts), turn.size())
        self._written()
        return messages

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
        excerpts = await _excerpts(content)
        async with self._database.transaction(namespace) as tx:
            document_id, at = await self._documents.add(tx, content, embedding, metadata)
            await self._passages.add(tx, [Source("document", str(document_id), excerpts, at, metadata=metadata)])
        self._written()
        return document_id

    async def _write_turns(
        self, namespace: str, analysed: Sequence[_Analysed]
    ) -> Sequence[list[Message] | RecollectError]:
        for _ in range(_OPENING_ATTEMPTS):
            try:
                async with self._database.transaction(namespace) as tx:
                    return await self._append(tx, analysed)
            except _SessionsMissing as missing:
                # In a transaction of its own: to insert sessions while others are locked could end in a deadlock.
                async with self._database.transaction(namespace) as tx:
                    await self._sessions.open(tx, missing.owners)
        raise Conflict("A session is being deleted while it is written to: try again")

    async def _append(self, tx: Transaction, analysed: Sequence[_Analysed]) -> list[list[Message] | RecollectError]:
        rooms = await self._rooms(tx, [item.turn for item in analysed])
        next_position = {session_id: room.first_position for session_id, room in rooms.items()}
        entries: list[Entry] = []
        sources: list[Source] = []
        for turn, excerpts in ((item.turn, item.excerpts) for item in analysed):
            if room := rooms.get(turn.session_id):
                added = _entries(turn, next_position[turn.session_id], room.at)
                next_position[turn.session_id] += len(added)
                entries += added
                sources += map(_source, added, excerpts, repeat(room.user_id))
        messages = iter(await self._log.append(tx, entries))
        await self._passages.add(tx, sources)
        return [
            [next(messages) for _ in turn.lines] if turn.session_id in rooms else SessionNotFound.named(turn.session_id)
            for turn in (item.turn for item in analysed)
        ]

    async def _rooms(self, tx: Transaction, turns: Sequence[Turn]) -> dict[str, Advance]:
        rooms = await self._sessions.advance(tx, _message_counts(turns))
        missing = {turn.session_id: turn.opens_for for turn in turns if turn.opens_for and turn.session_id not in rooms}
        if missing:
            raise _SessionsMissing(missing)
        return rooms


async def _excerpts(text: str, speaker: str | None = None) -> tuple[Excerpt, ...]:
    if len(text) <= _ANALYSED_IN_PLACE:
        return analyse(text, speaker)
    return await asyncio.to_thread(analyse, text, speaker)


def _source(entry: Entry, excerpts: tuple[Excerpt, ...], owner: str) -> Source:
    return Source(
        "message",
        str(entry.id),
        excerpts,
        entry.created_at,
        owner=owner,
        session_id=entry.session_id,
        position=entry.position,
        role=entry.role,
        speaker=entry.speaker,
        metadata=entry.metadata,
    )


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
