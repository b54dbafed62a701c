"""The log: every message as it was said, append-only, in the order of its session."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from recollect.checks import Json
from recollect.language.tokens import estimate_tokens_of_all
from recollect.origin import Origin
from recollect.storage.database import Statements, Transaction
from recollect.storage.limits.meter import Tally
from recollect.storage.record import Record
from recollect.storage.sql import Queries, Query
from recollect.trust import Trust, of_item


class _Sql(Queries, file="log.sql"):
    append: Query
    append_on_worker: Query
    recent: Query
    recent_before: Query
    recent_then: Query
    by_seq: Query
    keep: Query
    by_ids: Query
    trusts: Query
    present: Query
    set_details: Query
    first_between: Query
    last_between: Query
    in_session: Query
    place: Query
    lines_before: Query
    lines_from: Query
    raw_newest: Query
    raw_oldest: Query
    in_sessions: Query
    count_in_sessions: Query
    remove: Query
    page_messages: Query
    restore_messages: Query
    compare_messages: Query
    size_messages: Query
    of_turns: Query


RECORD = Record(
    "message",
    "messages",
    ("id",),
    _Sql.page_messages,
    _Sql.restore_messages,
    _Sql.compare_messages,
    size=_Sql.size_messages,
)


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to be written, checked by its door; metadata is JSON text. Without a time it takes the commit's."""

    role: str
    content: str
    metadata: str | None = None
    speaker: str | None = None
    at: datetime | None = None
    id: UUID | None = None
    """One that brings its id is written once, however often it comes."""
    payload: str | None = None
    """The message as its client has it, as JSON text. Only one with a payload may have no content."""
    trust: str | None = None
    """Its class of trust, unless its role says it."""

    @property
    def has_details(self) -> bool:
        """Whether it has more than is written with all messages."""
        return self.payload is not None or self.trust is not None


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
        return sum(len(text or "") for each in self.messages for text in (each.content, each.metadata, each.payload))

    def count(self, tally: Tally, user_id: str | None, by: Origin) -> None:
        """Count its messages for the owner of their session."""
        for each in self.messages:
            tally.add(user_id, each.content, each.metadata, each.payload, by=by)


class Destination(NamedTuple):
    """A session that gets messages: whose it is believed to be, and whether it may begin with them."""

    session_id: str
    user_id: str
    realm: str
    begins: bool


class Words(NamedTuple):
    """A passage of a message, as keyword search takes it."""

    text: str
    keys: list[int]
    weights: str


class Entry(NamedTuple):
    """A message to be written under an id, the session it goes to, and its passages."""

    id: UUID
    destination: Destination
    message: NewMessage
    passages: Sequence[Words]


class NewTurn(NamedTuple):
    """Messages that one caller brought, next to each other in a session, and by which door."""

    destination: Destination
    size: int
    author: str | None
    door: str


class StoredTurn(NamedTuple):
    """Where the messages of a turn are."""

    session_id: str
    first: int
    size: int


class Excerpt(NamedTuple):
    """A message with the beginning of its text."""

    id: UUID
    position: int
    role: str
    speaker: str | None
    text: str


class Line(NamedTuple):
    """A message in a transcript: the beginnings of its text and of its metadata, which is JSON."""

    id: UUID
    position: int
    role: str
    speaker: str | None
    text: str
    bytes: int
    metadata: str | None
    payload_bytes: int
    created_at: datetime

    @property
    def tokens(self) -> int:
        """Of all of it, about; what is not here is taken to be like its beginning."""
        return estimate_tokens_of_all(self.text, self.bytes)


class Message(NamedTuple):
    """A message as the log holds it; a tuple, because histories make many and a frozen dataclass costs 4 times more."""

    id: UUID
    seq: int
    session_id: str
    position: int
    role: str
    speaker: str | None
    content: str
    metadata: Json
    created_at: datetime
    payload: str | None = None
    """JSON text; histories, which show what was said, do not read it."""


@dataclass(frozen=True, slots=True)
class RawFilter:
    """Which messages of a namespace to read; None means any. Both ends of the range of time belong to it."""

    session_id: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    speaker: str | None = None


class Log:
    """Appends messages and reads them back in order."""

    async def append(self, db: Statements, entries: Sequence[Entry], turns: Sequence[NewTurn]) -> list[Message]:
        """Write messages with their passages, in one round trip: each session gets its own in the order given.

        The turns that they came in are recorded as changes, in the same order; without turns, the caller does that at
        the end of its transaction. Raises Outdated, with nothing written, if a session is not as its destination says.
        """
        append = _Sql.append_on_worker if db.on_worker else _Sql.append
        rows = {row["id"]: row for row in await db.all(append, **_values(entries, turns))}
        return [
            Message(
                row["id"],
                row["seq"],
                entry.destination.session_id,
                row["position"],
                entry.message.role,
                entry.message.speaker,
                entry.message.content,
                None if entry.message.metadata is None else json.loads(entry.message.metadata),
                row["created_at"],
                entry.message.payload,
            )
            for entry in entries
            for row in [rows[entry.id]]
        ]

    async def recent(
        self,
        db: Statements,
        session_id: str,
        limit: int,
        before: UUID | None = None,
        as_of: datetime | None = None,
    ) -> list[Message]:
        """The last messages of a session, or the last before one of them, oldest first; with a moment, said by then."""
        if as_of is not None:
            rows = await db.all(_Sql.recent_then, session_id=session_id, limit=limit, before=before, as_of=as_of)
        elif before is None:
            rows = await db.all(_Sql.recent, session_id=session_id, limit=limit)
        else:
            rows = await db.all(_Sql.recent_before, session_id=session_id, limit=limit, before=before)
        return [Message(*row) for row in reversed(rows)]

    async def set_details(self, tx: Transaction, details: Mapping[UUID, NewMessage]) -> None:
        """Add payloads and classes of trust to messages that this transaction has appended."""
        await tx.all(
            _Sql.set_details,
            ids=list(details),
            payloads=[each.payload for each in details.values()],
            trusts=[each.trust for each in details.values()],
        )

    async def between(
        self, db: Statements, session_id: str, limit: int, after: UUID | None, before: UUID | None, *, newest: bool
    ) -> list[Message]:
        """The first messages of a session, or the last, oldest first: of all, or behind one and before another."""
        statement = _Sql.last_between if newest else _Sql.first_between
        rows = await db.all(statement, session_id=session_id, limit=limit, after=after, before=before)
        return [Message(*row) for row in (reversed(rows) if newest else rows)]

    async def by_seq(self, db: Statements, numbers: Sequence[int]) -> dict[int, Message]:
        """Those of some messages that exist, by the integer that names them."""
        return {row["seq"]: Message(*row) for row in await db.all(_Sql.by_seq, numbers=list(numbers))}

    async def keep(self, tx: Transaction, numbers: Sequence[int]) -> set[int]:
        """Those of some messages that are there, by number; no one removes them before this transaction ends."""
        return {row["seq"] for row in await tx.all(_Sql.keep, numbers=list(numbers))}

    async def by_ids(self, db: Statements, ids: Sequence[UUID]) -> dict[UUID, Message]:
        """Those of some messages that exist, by id, with their payloads."""
        return {row["id"]: Message(*row) for row in await db.all(_Sql.by_ids, ids=list(ids))}

    async def trusts(self, db: Statements, ids: Sequence[UUID]) -> dict[UUID, Trust]:
        """The classes of trust of those of some messages that exist."""
        rows = await db.all(_Sql.trusts, ids=list(ids))
        return {row["id"]: of_item("message", row["role"], row["trust"]) for row in rows}

    async def present(self, db: Statements, ids: Sequence[UUID]) -> set[UUID]:
        """The ids of those of some messages that exist."""
        return {row["id"] for row in await db.all(_Sql.present, ids=list(ids))}

    async def holds(self, db: Statements, session_id: str, message_id: UUID) -> bool:
        """Whether a message is one of a session's."""
        return await db.first(_Sql.in_session, session_id=session_id, message_id=message_id) is not None

    async def place(self, db: Statements, session_id: str, message_id: UUID) -> int | None:
        """The position of a message; None if it is none of the session's."""
        row = await db.first(_Sql.place, session_id=session_id, message_id=message_id)
        return None if row is None else int(row["position"])

    async def lines_before(
        self, db: Statements, session_id: str, position: int, limit: int, characters: int, as_of: datetime | None
    ) -> list[Line]:
        """The messages before a position, the last first, with so many characters of each at most."""
        asked = {"session_id": session_id, "position": position, "limit": limit, "as_of": as_of}
        return [Line(*row) for row in await db.all(_Sql.lines_before, characters=characters, **asked)]

    async def lines_from(
        self, db: Statements, session_id: str, position: int, limit: int, characters: int, as_of: datetime | None
    ) -> list[Line]:
        """The messages from a position on, in order."""
        asked = {"session_id": session_id, "position": position, "limit": limit, "as_of": as_of}
        return [Line(*row) for row in await db.all(_Sql.lines_from, characters=characters, **asked)]

    async def raw(self, db: Statements, wanted: RawFilter, limit: int, *, newest_first: bool) -> list[Message]:
        """Messages of all sessions in the order of time."""
        statement = _Sql.raw_newest if newest_first else _Sql.raw_oldest
        rows = await db.all(
            statement,
            limit=limit,
            session_id=wanted.session_id,
            since=wanted.start,
            until=wanted.end,
            speaker=wanted.speaker,
        )
        return [Message(*row) for row in rows]

    async def in_sessions(self, db: Statements, session_ids: Sequence[str], limit: int) -> list[UUID]:
        """Some messages of some sessions, so many at most."""
        return [row["id"] for row in await db.all(_Sql.in_sessions, session_ids=list(session_ids), limit=limit)]

    async def count_in_sessions(self, db: Statements, session_ids: Sequence[str]) -> int:
        """How many messages some sessions have."""
        return int((await db.one(_Sql.count_in_sessions, session_ids=list(session_ids)))["messages"])

    async def of_turns(
        self, db: Statements, turns: Sequence[StoredTurn], *, most_messages: int, most_characters: int
    ) -> list[list[Excerpt]]:
        """What is left of some turns: the first messages of each, with the beginnings of their texts."""
        rows = await db.all(
            _Sql.of_turns,
            session_ids=[turn.session_id for turn in turns],
            firsts=[turn.first for turn in turns],
            sizes=[turn.size for turn in turns],
            most_messages=most_messages,
            most_characters=most_characters,
        )
        found: list[list[Excerpt]] = [[] for _ in turns]
        for number, *fields in rows:
            found[number - 1].append(Excerpt(*fields))
        return found

    async def remove(self, tx: Transaction, message_ids: Sequence[UUID]) -> list[int]:
        """Delete messages for good; returns the numbers of those that there were."""
        return [row["seq"] for row in await tx.all(_Sql.remove, message_ids=list(message_ids))]


def _values(entries: Sequence[Entry], turns: Sequence[NewTurn]) -> dict[str, object]:
    """Columns of sessions, messages, passages and turns; a row names its session or its message by number, from 1."""
    sizes: dict[Destination, int] = {}
    places = []
    for entry in entries:
        place = sizes.get(entry.destination, 0)
        places.append(place)
        sizes[entry.destination] = place + 1
    numbers = {destination: number for number, destination in enumerate(sizes, 1)}
    messages = [entry.message for entry in entries]
    return {
        "session_ids": [session.session_id for session in sizes],
        "session_owners": [session.user_id for session in sizes],
        "session_realms": [session.realm for session in sizes],
        "session_sizes": list(sizes.values()),
        "session_begins": [session.begins for session in sizes],
        "ids": [entry.id for entry in entries],
        "message_sessions": [numbers[entry.destination] for entry in entries],
        "message_places": places,
        "roles": [message.role for message in messages],
        "speakers": [message.speaker for message in messages],
        "contents": [message.content for message in messages],
        "metadatas": [message.metadata for message in messages],
        "times": [message.at for message in messages],
        **_passage_values(entries),
        **_turn_values(turns, numbers),
    }


def _turn_values(turns: Sequence[NewTurn], numbers: Mapping[Destination, int]) -> dict[str, object]:
    ends: dict[Destination, int] = {}
    places = []
    for turn in turns:
        place = ends.get(turn.destination, 0)
        places.append(place)
        ends[turn.destination] = place + turn.size
    return {
        "turn_sessions": [numbers[turn.destination] for turn in turns],
        "turn_places": places,
        "turn_sizes": [turn.size for turn in turns],
        "turn_authors": [turn.author for turn in turns],
        "turn_doors": [turn.door for turn in turns],
    }


def _passage_values(entries: Sequence[Entry]) -> dict[str, object]:
    numbers, parts, texts, keys, ends, weights = [], [], [], [], [], []
    for number, entry in enumerate(entries, 1):
        for part, words in enumerate(entry.passages):
            numbers.append(number)
            parts.append(part)
            # What is the whole message need not travel twice.
            texts.append(None if words.text == entry.message.content else words.text)
            # A list of lists has no form in SQL.
            keys += words.keys
            ends.append(len(keys))
            weights.append(words.weights)
    return {
        "passage_messages": numbers,
        "passage_parts": parts,
        "passage_texts": texts,
        "passage_keys": keys,
        "passage_key_ends": ends,
        "passage_weights": weights,
    }
