"""Remember: how anything gets into memory, each item in one transaction."""

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self
from uuid import UUID

from recollect import checks, telemetry
from recollect.errors import Conflict, NotFound, RecollectError
from recollect.flows.chat_ids import refuse_stored_chat
from recollect.identifiers import uuid7
from recollect.memory.documents import Documents
from recollect.memory.index.passages import Excerpt, Passages, Source, analyse, analysing
from recollect.memory.log import Log, Message, NewMessage, Place
from recollect.memory.sessions import Session, SessionOwner, Sessions, Slots
from recollect.steps import in_steps
from recollect.storage.database import Database, Transaction
from recollect.storage.group_commit import GroupCommit

# The owner of a session that begins with a message without a user.
ANONYMOUS = "anonymous"

# Cutting and weighing a longer text is done in steps, or it would keep the event loop from its other callers.
_ANALYSED_AT_ONCE = 5_000

# A session may vanish between being opened and being written to only if someone deletes it just then.
_OPENING_ATTEMPTS = 3

# Only forgetting a text at the same moment removes the one that stood in the way.
_REMEMBERING_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Turn:
    """Messages that one caller adds to one session, next to each other or not at all."""

    session_id: str
    messages: tuple[NewMessage, ...]
    owner_if_new: str | None = None
    """Whose session this turn may open; None when the session must exist."""
    realm: str | None = None
    """Where the session must be held by `owner_if_new`, for chats of the gateway; None at every other door."""

    def size(self) -> int:
        """About how many bytes travel to the database."""
        return sum(len(message.content) + len(message.metadata or "") for message in self.messages)


@dataclass(frozen=True, slots=True)
class _Analysed:
    """A turn with the passages of each of its messages, worked out before its transaction."""

    turn: Turn
    excerpts: tuple[tuple[Excerpt, ...], ...]
    refusal: RecollectError | None = None


@dataclass(frozen=True, slots=True)
class Remembered:
    """The document that has a text, and whether it was there before."""

    id: UUID
    what: Literal["created", "existing"]


class SessionNotFound(NotFound, ValueError):
    """A turn was meant for a session that does not exist."""

    @classmethod
    def named(cls, session_id: str) -> Self:
        return cls(f"Conversation {session_id} not found")


class SessionTaken(Conflict):
    """A turn was meant for a session that somebody else holds, or that is in another realm."""


class _SessionsMissing(Exception):
    """Undoes a batch whose sessions are to be opened first."""

    def __init__(self, owners: dict[str, str], realms: dict[str, str]) -> None:
        self.owners = owners
        self.realms = realms


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

    @telemetry.memory_operation("create_memory", len)
    async def turn(self, namespace: str, turn: Turn) -> list[Message]:
        """Append messages to a session; returns when they are durable and can be found by their words."""
        if turn.realm is None:
            refuse_stored_chat(turn.session_id)
        if turn.size() <= _ANALYSED_AT_ONCE:
            excerpts = [analyse(message.content, message.speaker) for message in turn.messages]
        else:
            numbered = (
                None if excerpt is None else (number, excerpt)
                for number, message in enumerate(turn.messages)
                for excerpt in analysing(message.content, message.speaker)
            )
            of_message: list[list[Excerpt]] = [[] for _ in turn.messages]
            for number, excerpt in await in_steps(numbered):
                of_message[number].append(excerpt)
            excerpts = list(map(tuple, of_message))
        messages = await self._turns.submit(namespace, _Analysed(turn, tuple(excerpts)), turn.size())
        telemetry.messages_stored(len(messages))
        self._written()
        return messages

    async def session(
        self, namespace: str, session_id: str, user_id: str, title: str | None = None, metadata: str | None = None
    ) -> Session:
        """Begin a session that has an owner."""
        refuse_stored_chat(session_id)
        async with self._database.transaction(namespace) as tx:
            session = await self._sessions.create(tx, session_id, user_id, title, metadata)
        if session is None:
            raise Conflict(f"Session {session_id} already exists: choose another id")
        return session

    @telemetry.memory_operation("create_memory")
    async def document(self, namespace: str, content: str, embedding: str | None, metadata: str | None) -> UUID:
        """Store a text whole."""
        excerpts = tuple(await in_steps(analysing(content)))
        async with self._database.transaction(namespace) as tx:
            document_id, at = await self._documents.add(tx, content, embedding, metadata)
            await self._passages.add(tx, [Source("document", str(document_id), excerpts, at, metadata=metadata)])
        self._written()
        return document_id

    @telemetry.memory_operation("create_memory")
    async def text(self, namespace: str, text: str, metadata: Mapping[str, Any] | None = None) -> Remembered:
        """Store a text as a document, or find the one that has this very text: that one takes metadata that is new."""
        checks.text(text, "text")
        encoded = checks.metadata(metadata)
        excerpts = tuple(await in_steps(analysing(text)))
        for _ in range(_REMEMBERING_ATTEMPTS):
            async with self._database.transaction(namespace) as tx:
                if known := await self._documents.same(tx, text):
                    document_id, present = known
                    await self._merge(tx, document_id, present, metadata or {})
                    return Remembered(document_id, "existing")
                if added := await self._documents.add_once(tx, text, encoded):
                    document_id, at = added
                    source = Source("document", str(document_id), excerpts, at, metadata=encoded)
                    await self._passages.add(tx, [source])
            if added:
                self._written()
                return Remembered(document_id, "created")
        raise Conflict("Another request is deleting the same text: try again")

    async def _merge(
        self, tx: Transaction, document_id: UUID, present: Mapping[str, Any], metadata: Mapping[str, Any]
    ) -> None:
        merged = {**present, **metadata}
        encoded = checks.metadata(merged)
        if encoded is not None and merged != present:
            await self._documents.set_metadata(tx, document_id, encoded)
            await self._passages.relabel(tx, "document", str(document_id), None, encoded)

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
                    await self._sessions.open(tx, missing.owners, missing.realms)
        raise Conflict("Another request is deleting a session of this write: try again")

    async def _append(self, tx: Transaction, analysed: Sequence[_Analysed]) -> list[list[Message] | RecollectError]:
        analysed = await self._unwritten(tx, analysed)
        turns = [item.turn for item in analysed]
        slots = await self._sessions.advance(tx, Counter(turn.session_id for turn in turns for _ in turn.messages))
        _open_first(turns, slots)
        opened = [item for item in analysed if item.turn.session_id in slots]
        new = [message for item in opened for message in item.turn.messages]
        places = await in_steps(_places([item.turn for item in opened], slots))
        stored = await self._log.append(tx, new, places)
        excerpts = (excerpts for item in opened for excerpts in item.excerpts)
        owners = (slots[place.session_id].owner for place in places)
        await self._passages.add(tx, await in_steps(map(_source, stored, new, excerpts, owners)))
        messages = iter(stored)
        answers: list[list[Message] | RecollectError] = []
        for item in analysed:
            if item.refusal is not None:
                answers.append(item.refusal)
            elif item.turn.messages and item.turn.session_id not in slots:
                answers.append(SessionNotFound.named(item.turn.session_id))
            else:
                answers.append([next(messages) for _ in item.turn.messages])
        return answers

    async def _unwritten(self, tx: Transaction, analysed: Sequence[_Analysed]) -> Sequence[_Analysed]:
        """Turns without the messages that are written already; only those of a realm have any, and may be refused."""
        if all(item.turn.realm is None for item in analysed):
            return analysed
        # Every session of the batch, in one order, so that two batches never wait for each other.
        owners = await self._sessions.lock(tx, {item.turn.session_id for item in analysed})
        # One that begins only now would escape both the lock and the look at what is written already.
        _open_first([item.turn for item in analysed], owners)
        ids = [message.id for item in analysed for message in item.turn.messages if message.id is not None]
        known = await self._log.known(tx, ids)
        return [_new_messages(item, owners.get(item.turn.session_id), known) for item in analysed]


def _open_first(turns: Sequence[Turn], present: Container[str]) -> None:
    missing = [turn for turn in turns if turn.owner_if_new and turn.messages and turn.session_id not in present]
    if missing:
        owners = {turn.session_id: turn.owner_if_new or "" for turn in missing}
        raise _SessionsMissing(owners, {turn.session_id: turn.realm or "" for turn in missing})


def _new_messages(item: _Analysed, owner: SessionOwner | None, known: set[UUID]) -> _Analysed:
    """A turn without the messages that are known, and from now on its own are."""
    turn = item.turn
    if owner is None:
        return _Analysed(replace(turn, messages=()), (), SessionNotFound.named(turn.session_id))
    if turn.realm is None:
        return item
    if owner != SessionOwner(turn.owner_if_new or "", turn.realm):
        refusal = SessionTaken(f"Session {turn.session_id} belongs to another user: choose another id")
        return _Analysed(replace(turn, messages=()), (), refusal)
    messages, excerpts = [], []
    for message, of_message in zip(turn.messages, item.excerpts, strict=True):
        if message.id not in known:
            messages.append(message)
            excerpts.append(of_message)
        if message.id is not None:
            known.add(message.id)
    return _Analysed(replace(turn, messages=tuple(messages)), tuple(excerpts))


def _places(turns: Sequence[Turn], slots: Mapping[str, Slots]) -> Iterator[Place]:
    """Where each message of each turn goes: behind those of the turns before."""
    next_position = {session_id: free.first_position for session_id, free in slots.items()}
    for turn in turns:
        at = slots[turn.session_id].at
        for message in turn.messages:
            position = next_position[turn.session_id]
            next_position[turn.session_id] += 1
            yield Place(message.id or uuid7(), turn.session_id, position, message.at or at)


def _source(message: Message, new: NewMessage, excerpts: tuple[Excerpt, ...], owner: SessionOwner) -> Source:
    return Source(
        "message",
        str(message.id),
        excerpts,
        message.created_at,
        owner=owner.user_id,
        session_id=message.session_id,
        position=message.position,
        role=message.role,
        speaker=message.speaker,
        metadata=new.metadata,
        realm=owner.realm,
    )
