"""Remember: how anything gets into memory, each item in one transaction."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any, Literal, Self
from uuid import UUID

from recollect import checks, origin, tasks, telemetry
from recollect.errors import Conflict, Forbidden, NotFound, RecollectError
from recollect.flows.chat_ids import refuse_stored_chat
from recollect.flows.defence.masking import MasksSecrets, masks
from recollect.flows.known_owners import KnownOwners
from recollect.flows.turns import (
    AnalysedTurn,
    destinations_of,
    message_source,
    with_classes,
    with_stored,
    without_stored,
)
from recollect.identifiers import refuse_same_ids, uuid7
from recollect.memory.changes import Change, Changes
from recollect.memory.documents import Documents, NewDocument, in_parts
from recollect.memory.index.passages import Excerpt, Passages, Source, analyse, analysing, keys_of
from recollect.memory.log import Destination, Entry, Log, Message, NewTurn, Words
from recollect.memory.log import Turn as Turn
from recollect.memory.sessions import Session, SessionOwner, Sessions
from recollect.quotas import ANONYMOUS
from recollect.steps import in_steps
from recollect.storage.database import Database, Statements, Transaction
from recollect.storage.failures import Duplicate, Outdated
from recollect.storage.group_commit import GroupCommit
from recollect.storage.limits.meter import Tally

# Cutting and weighing a longer text is done in steps, or it would keep the event loop from its other callers.
_ANALYSED_AT_ONCE = 5_000

# Messages and their passages in one call, whose values are put together on the event loop in some ten milliseconds.
_WRITTEN_AT_ONCE = 256

# A session changes between being looked up and being written to only if someone deletes or begins it just then.
_WRITING_ATTEMPTS = 3

# Only forgetting a text at the same moment removes the one that stood in the way.
_REMEMBERING_ATTEMPTS = 3


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


class Remember(MasksSecrets):
    """Writes each item with its passages; concurrent turns of a namespace share a commit."""

    def __init__(
        self,
        database: Database,
        sessions: Sessions,
        log: Log,
        documents: Documents,
        passages: Passages,
        changes: Changes,
        written: Callable[[str], None],
    ) -> None:
        self._database = database
        self._sessions = sessions
        self._log = log
        self._documents = documents
        self._passages = passages
        self._changes = changes
        self._written = written
        self._known_owners = KnownOwners()
        self._turns = GroupCommit[AnalysedTurn, list[Message]](self._write_turns)

    async def close(self) -> None:
        """Finish the writes that were accepted."""
        await self._turns.close()

    @telemetry.memory_operation("create_memory", len)
    @masks("turn")
    @tasks.to_its_end
    async def turn(self, namespace: str, turn: Turn) -> list[Message]:
        """Append messages to a session; returns when they are durable and can be found by their words."""
        analysed = await self._analysed(turn)
        tally = Tally(self._database.meter, namespace)
        turn.count(tally, turn.owner_if_new, analysed.by)
        if tally.is_known_not_to_fit:
            # Before it is in a batch, which would fail with it and be written turn by turn.
            async with self._database.reading(namespace) as db:
                await tally.refuse_by_count(db.all)
        if origin.current().limits is None:
            return self._told(namespace, await self._turns.submit(namespace, analysed, turn.size()))
        # Alone: turns that share a commit are written without the limits of any of their callers.
        (answer,) = await self._write_turns(namespace, [analysed])
        return self._told(namespace, answer)

    @telemetry.memory_operation("create_memory", len)
    @masks("turn")
    @tasks.to_its_end
    async def turn_after(
        self, namespace: str, turn: Turn, before: Callable[[Transaction], Awaitable[object]]
    ) -> list[Message]:
        """The same in a transaction of its own, of which other work is the first part: it opens the session."""
        analysed = await self._analysed(turn)
        try:
            async with self._database.transaction(namespace) as tx:
                await before(tx)
                destinations = destinations_of([analysed], await self._sessions.lock(tx, [turn.session_id]))
                (answer,) = await self._append_in_parts(tx, [analysed], destinations)
        except Duplicate as problem:
            raise Conflict("A message with one of these ids already exists: choose another id") from problem
        return self._told(namespace, answer)

    def _told(self, namespace: str, messages: list[Message] | RecollectError) -> list[Message]:
        if isinstance(messages, RecollectError):
            raise messages
        telemetry.messages_stored(len(messages))
        origin.touch(namespace, "add", "message", (message.id for message in messages))
        self._written(namespace)
        return messages

    async def _analysed(self, turn: Turn) -> AnalysedTurn:
        if turn.owner_if_new == ANONYMOUS:
            turn = replace(turn, owner_if_new=origin.narrowed(None)[0] or ANONYMOUS)
        if turn.realm is None:
            refuse_stored_chat(turn.session_id)
            refuse_same_ids(message.id for message in turn.messages)
        turn = with_classes(turn)
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
        suspicions = chain.from_iterable(map(self._passages.suspicions, turn.messages, excerpts))
        return AnalysedTurn(turn, tuple(excerpts), origin.current(), is_suspect=bool(await in_steps(suspicions)))

    @masks("title", "metadata")
    async def session(
        self,
        namespace: str,
        session_id: str,
        user_id: str,
        title: str | None = None,
        metadata: str | None = None,
        agent_id: str | None = None,
    ) -> Session:
        """Begin a session that has an owner."""
        refuse_stored_chat(session_id)
        async with self._database.transaction(namespace) as tx:
            session = await self._sessions.create(tx, session_id, user_id, title, metadata, agent_id)
        if session is None:
            raise Conflict(f"Session {session_id} already exists: choose another id")
        return session

    async def document(
        self,
        namespace: str,
        content: str,
        embedding: str | None,
        metadata: str | None,
        at: datetime | None = None,
        document_id: UUID | None = None,
    ) -> UUID:
        """Store one text whole."""
        return (await self.documents(namespace, [NewDocument(content, embedding, metadata, at, document_id)]))[0]

    @telemetry.memory_operation("create_memory", len)
    @masks("documents")
    async def documents(self, namespace: str, documents: Sequence[NewDocument]) -> list[UUID]:
        """Store texts whole, all or none; those that are stored under their ids already are left out."""
        refuse_same_ids(document.id for document in documents)
        new = {document.id or uuid7(): document for document in documents}
        excerpts = {
            document_id: tuple(await in_steps(analysing(document.content))) for document_id, document in new.items()
        }
        async with self._database.transaction(namespace) as tx:
            times = await self._add_documents(tx, new)
            sources = (
                Source("document", str(document_id), excerpts[document_id], at, metadata=new[document_id].metadata)
                for document_id, at in times.items()
            )
            await self._passages.add(tx, list(sources))
            await self._changes.record(tx, [Change("add", "document", str(document_id)) for document_id in times])
        self._written(namespace)
        return list(new)

    async def _add_documents(self, tx: Transaction, new: Mapping[UUID, NewDocument]) -> dict[UUID, datetime]:
        """A part at a time, in id order; returns the times of those that were not there."""
        times: dict[UUID, datetime] = {}
        for part in in_parts(dict(sorted(new.items()))):
            added = await self._documents.add(tx, part)
            if taken := [document_id for document_id in part if document_id not in added]:
                stored = await self._documents.contents(tx, taken)
                for document_id in taken:
                    if stored.get(document_id) != part[document_id].content:
                        raise Conflict(f"Document {document_id} already exists with other content: choose another id")
            times |= {document_id: added[document_id] for document_id in part if document_id in added}
        return times

    @telemetry.memory_operation("create_memory")
    @masks("text", "metadata")
    async def text(
        self, namespace: str, text: str, metadata: Mapping[str, Any] | None = None, at: datetime | None = None
    ) -> Remembered:
        """Store a text as a document, or find the one that has this very text: that one takes metadata that is new."""
        checks.text(text, "text")
        if (limits := origin.current().limits) is not None:
            raise Forbidden(
                f"This text would belong to no user or agent, and this key is limited to {limits}: "
                "store a memory instead, with the tool add_memory or POST /ltm/memories"
            )
        said_at, encoded = checks.storable_utc(at, "at"), checks.metadata(metadata)
        excerpts = tuple(await in_steps(analysing(text)))
        for _ in range(_REMEMBERING_ATTEMPTS):
            async with self._database.transaction(namespace) as tx:
                if known := await self._documents.same(tx, text):
                    document_id, present, stored_at = known
                    source = Source("document", str(document_id), excerpts, stored_at)
                    await self._merge(tx, document_id, source, present, metadata or {})
                    return Remembered(document_id, "existing")
                if added := await self._documents.add_once(tx, text, encoded, said_at):
                    document_id, stored_at = added
                    source = Source("document", str(document_id), excerpts, stored_at, metadata=encoded)
                    await self._passages.add(tx, [source])
                    await self._changes.record(tx, [Change("add", "document", str(document_id))])
            if added:
                self._written(namespace)
                return Remembered(document_id, "created")
        raise Conflict("Another request is deleting the same text: try again")

    async def _merge(
        self,
        tx: Transaction,
        document_id: UUID,
        source: Source,
        present: Mapping[str, Any],
        metadata: Mapping[str, Any],
    ) -> None:
        merged = {**present, **metadata}
        encoded = checks.metadata(merged)
        if encoded is not None and merged != present:
            await self._documents.set_metadata(tx, document_id, encoded)
            await self._passages.relabel(tx, replace(source, metadata=encoded))
            await self._changes.record(tx, [Change("update", "document", str(document_id))])

    async def _write_turns(
        self, namespace: str, analysed: Sequence[AnalysedTurn]
    ) -> Sequence[list[Message] | RecollectError]:
        """Messages that bring an id are looked up only if it is taken; what is stored already is then left out.

        Two of a batch may have the same id. Then nothing is found, and group commit writes the batch turn by turn.
        """
        stored: Mapping[UUID, Message] = {}
        for _ in range(_WRITING_ATTEMPTS):
            try:
                answers = await self._write_unstored(namespace, [without_stored(item, stored) for item in analysed])
                return [with_stored(item.turn, stored, answer) for item, answer in zip(analysed, answers, strict=True)]
            except Outdated:
                self._known_owners.unlearn(namespace, {item.turn.session_id for item in analysed})
            except Duplicate:
                # A realm looks for its own while it holds their sessions.
                turns = (item.turn for item in analysed if item.turn.realm is None)
                ids = [message.id for turn in turns for message in turn.messages if message.id is not None]
                async with self._database.reading(namespace) as db:
                    found = await self._log.by_ids(db, ids)
                if found.keys() <= stored.keys():
                    raise
                stored = found
        raise Conflict("Another request is deleting a session of this write: try again")

    async def _write_unstored(
        self, namespace: str, analysed: Sequence[AnalysedTurn]
    ) -> Sequence[list[Message] | RecollectError]:
        session_ids = {item.turn.session_id for item in analysed if item.turn.messages}
        if any(item.turn.realm is not None for item in analysed):
            return await self._append_unwritten(namespace, analysed, session_ids)
        destinations = destinations_of(analysed, await self._owners(namespace, session_ids))
        size = sum(max(len(excerpts), 1) for item in analysed for excerpts in item.excerpts)
        if size <= _WRITTEN_AT_ONCE and not any(item.is_suspect or item.has_details for item in analysed):
            counts = any(self._database.meter.counts(item.by) for item in analysed)
            async with (self._database.transaction if counts else self._database.calling)(namespace) as db:
                return await self._append(db, analysed, destinations)
        async with self._database.transaction(namespace) as tx:
            return await self._append_in_parts(tx, analysed, destinations)

    async def _owners(self, namespace: str, session_ids: Collection[str]) -> dict[str, SessionOwner]:
        """Owners of some sessions; those that do not exist are left out."""
        owners = self._known_owners.find(namespace, session_ids)
        if unknown := [session_id for session_id in session_ids if session_id not in owners]:
            async with self._database.reading(namespace) as db:
                found = await self._sessions.owners_of(db, unknown)
            self._known_owners.learn(namespace, found)
            owners |= found
        return owners

    async def _append_unwritten(
        self, namespace: str, analysed: Sequence[AnalysedTurn], session_ids: Collection[str]
    ) -> list[list[Message] | RecollectError]:
        """Leave out messages of realms that are stored already, and refuse turns to chats that others hold."""
        begun: dict[str, Turn] = {}
        for turn in (item.turn for item in analysed if item.turn.owner_if_new and item.turn.messages):
            begun.setdefault(turn.session_id, turn)
        async with self._database.transaction(namespace) as tx:
            # First, so that none escapes the lock and the look at what is written already.
            await self._sessions.open(
                tx,
                {session_id: turn.owner_if_new or "" for session_id, turn in begun.items()},
                {session_id: turn.realm or "" for session_id, turn in begun.items()},
            )
            owners = await self._sessions.lock(tx, session_ids)
            ids = [message.id for item in analysed for message in item.turn.messages if message.id is not None]
            known = set(await self._log.by_ids(tx, ids))
            new = [_new_messages(item, owners.get(item.turn.session_id), known) for item in analysed]
            return await self._append_in_parts(tx, new, destinations_of(new, owners))

    async def _append_in_parts(
        self, tx: Transaction, analysed: Sequence[AnalysedTurn], destinations: Mapping[str, Destination]
    ) -> list[list[Message] | RecollectError]:
        """Messages first, then their details, their passages a part at a time, and what is told of them."""
        bare = [replace(item, excerpts=((),) * len(item.excerpts)) for item in analysed]
        answers = await self._append(tx, bare, destinations, records_turns=False)
        details = {
            message.id: new
            for item, answer in zip(analysed, answers, strict=True)
            if isinstance(answer, list)
            for message, new in zip(answer, item.turn.messages, strict=True)
            if new.has_details
        }
        if details:
            await self._log.set_details(tx, details)
        sources = (
            message_source(message, new, excerpts, destinations[message.session_id], item)
            for item, answer in zip(analysed, answers, strict=True)
            if isinstance(answer, list)
            for message, new, excerpts in zip(answer, item.turn.messages, item.excerpts, strict=True)
        )
        await self._passages.add(tx, await in_steps(sources))
        turns = (
            Change.turn("add", item.turn.session_id, answer[0].position, len(answer), item.by)
            for item, answer in zip(analysed, answers, strict=True)
            if isinstance(answer, list) and answer
        )
        await self._changes.record(tx, list(turns))
        return answers

    async def _append(
        self,
        db: Statements,
        analysed: Sequence[AnalysedTurn],
        destinations: Mapping[str, Destination],
        *,
        records_turns: bool = True,
    ) -> list[list[Message] | RecollectError]:
        entries = await in_steps(
            Entry(
                message.id or uuid7(),
                destination,
                message,
                [
                    Words(excerpt.text, keys_of(db.namespace, destination.user_id, excerpt), excerpt.weights)
                    for excerpt in excerpts
                ],
            )
            for item in analysed
            if (destination := destinations.get(item.turn.session_id)) is not None
            for message, excerpts in zip(item.turn.messages, item.excerpts, strict=True)
        )
        turns = [
            NewTurn(destinations[item.turn.session_id], len(item.turn.messages), item.by.author, item.by.door)
            for item in analysed
            if records_turns and item.turn.messages and item.turn.session_id in destinations
        ]
        messages: list[Message] = []
        for start in range(0, len(entries), _WRITTEN_AT_ONCE):
            messages += await self._log.append(db, entries[start : start + _WRITTEN_AT_ONCE], turns)
        stored = iter(messages)
        owners = {each.session_id: SessionOwner(each.user_id, each.realm) for each in destinations.values()}
        self._known_owners.learn(db.namespace, owners)
        answers: list[list[Message] | RecollectError] = []
        for item in analysed:
            if item.refusal is not None:
                answers.append(item.refusal)
            elif item.turn.messages and item.turn.session_id not in destinations:
                answers.append(SessionNotFound.named(item.turn.session_id))
            else:
                answers.append([next(stored) for _ in item.turn.messages])
                if isinstance(db, Transaction) and item.turn.messages:
                    item.turn.count(db.tally, destinations[item.turn.session_id].user_id, item.by)
        return answers


def _new_messages(item: AnalysedTurn, owner: SessionOwner | None, known: set[UUID]) -> AnalysedTurn:
    """A turn without the messages that are known, and from now on its own are."""
    turn = item.turn
    if item.refusal is not None or not turn.messages:
        return item
    if owner is None:
        return item.without_messages(SessionNotFound.named(turn.session_id))
    if turn.realm is None:
        return item
    if owner != SessionOwner(turn.owner_if_new or "", turn.realm):
        refusal = SessionTaken(f"Session {turn.session_id} belongs to another user: choose another id")
        return item.without_messages(refusal)
    messages, excerpts = [], []
    for message, of_message in zip(turn.messages, item.excerpts, strict=True):
        if message.id not in known:
            messages.append(message)
            excerpts.append(of_message)
        if message.id is not None:
            known.add(message.id)
    return replace(item, turn=replace(turn, messages=tuple(messages)), excerpts=tuple(excerpts))
