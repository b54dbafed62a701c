"""MessageWriter: adds the messages of a foreign file that are not there, behind those that their sessions have."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from recollect import checks, trust
from recollect.errors import Conflict
from recollect.flows.capabilities import Capabilities
from recollect.flows.kinds.conversations import imported_turns
from recollect.flows.transfer.foreign.pieces import Said
from recollect.memory.index.passages import Excerpt, Source, analysing
from recollect.memory.log import Destination, Entry, Message, NewMessage
from recollect.memory.sessions import NewSession, SessionOwner
from recollect.steps import in_steps
from recollect.storage.database import Database, Statements


@dataclass(slots=True)
class Stored:
    """What came of a batch, counted by kind."""

    added: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)


class MessageWriter:
    """Writes the messages of one import. Sessions that continue from one batch to the next are counted once."""

    def __init__(self, database: Database, memory: Capabilities, namespace: str, *, dry_run: bool) -> None:
        self._database = database
        self._memory = memory
        self._namespace = namespace
        self._dry_run = dry_run
        self._last_session: str | None = None

    async def store(self, batch: Sequence[Said]) -> Stored:
        """Store messages in one transaction; of two with the same id, the first."""
        given = {said.id: said for said in reversed(batch)}
        sessions = {said.session.id: said.session for said in batch}
        async with self._database.reading(self._namespace) as db:
            new = await self._missing(db, [given[said_id] for said_id in reversed(given)])
            owners = await self._memory.sessions.owners_of(db, list(sessions))
        if new and not self._dry_run:
            new = await self._write(new)
        stored = Stored()
        stored.added["message"] = len(new)
        stored.known["message"] = len(batch) - len(new)
        begun = {said.session.id for said in new if said.session.id not in owners}
        for session_id in sessions:
            if session_id != self._last_session:
                (stored.added if session_id in begun else stored.known)["session"] += 1
                self._last_session = session_id
        return stored

    async def _missing(self, db: Statements, messages: Sequence[Said]) -> list[Said]:
        present = await self._memory.log.present(db, [said.id for said in messages])
        return [said for said in messages if said.id not in present]

    async def _write(self, messages: Sequence[Said]) -> list[Said]:
        sources = {said.id: await in_steps(analysing(said.content, said.speaker)) for said in messages}
        sessions = {said.session.id: said.session for said in messages}
        memory = self._memory
        async with self._database.transaction(self._namespace) as tx:
            begun = (
                NewSession(each.id, each.user_id, each.title, checks.metadata(each.metadata), each.at)
                for each in sessions.values()
            )
            await memory.sessions.begin(tx, list(begun))
            for session_id, owner in (await memory.sessions.lock(tx, list(sessions))).items():
                if owner != SessionOwner(sessions[session_id].user_id, ""):
                    raise Conflict(f"session {session_id} belongs to another user: import into another namespace")
            # Another import of the same file may have come first.
            new = await self._missing(tx, messages)
            active = await memory.sessions.last_active(tx, list(sessions))
            entries = [_entry(said) for said in new]
            written = await memory.log.append(tx, entries, ())
            if entries:
                await memory.log.set_details(tx, {entry.id: entry.message for entry in entries})
            tx.tally.add(None, *(said.content for said in new), rows=len(new))
            await memory.sessions.set_last_active(tx, _last_said(active, written, new))
            await memory.passages.add(
                tx,
                [_source(said, message, sources[said.id]) for said, message in zip(new, written, strict=True)],
            )
            turns = imported_turns([message._asdict() for message in written])
            await memory.changes.record(tx, turns)
        return new


def _entry(said: Said) -> Entry:
    destination = Destination(said.session.id, said.session.user_id, "", begins=False)
    message = NewMessage(
        said.role, said.content, checks.metadata(said.metadata), said.speaker, said.at, said.id, trust=trust.IMPORT
    )
    return Entry(said.id, destination, message, ())


def _source(said: Said, message: Message, excerpts: Sequence[Excerpt]) -> Source:
    return Source(
        "message",
        str(said.id),
        tuple(excerpts),
        message.created_at,
        owner=said.session.user_id,
        session_id=message.session_id,
        position=message.position,
        role=message.role,
        speaker=message.speaker,
        metadata=None if said.metadata is None else json.dumps(said.metadata, ensure_ascii=False),
        trust=trust.IMPORT,
    )


def _last_said(
    before: Mapping[str, datetime], written: Sequence[Message], messages: Sequence[Said]
) -> dict[str, datetime]:
    """When something was last said in each session: an import of old messages is no sign of life."""
    dated = {said.id for said in messages if said.at is not None}
    last: dict[str, datetime] = {}
    for message in written:
        earlier = last.get(message.session_id, before[message.session_id])
        last[message.session_id] = max(earlier, message.created_at) if message.id in dated else earlier
    return last
