"""Sessions as chat frameworks keep them: what is known of each, and its messages from the log itself, to the last."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self
from uuid import UUID

from recollect import checks, origin
from recollect.errors import Conflict, Invalid, NotFound
from recollect.flows.capabilities import Capabilities
from recollect.flows.chat_ids import refuse_stored_chat
from recollect.flows.defence.masking import MasksSecrets, masks
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.forgetting.removal import Removal
from recollect.flows.kinds.conversations import MESSAGE_ITEM
from recollect.flows.remember import Remember, Turn
from recollect.identifiers import uuid7
from recollect.memory.log import Message, NewMessage
from recollect.memory.sessions import ListedSession, Session, SessionFilter, SessionPlace
from recollect.quotas import ANONYMOUS
from recollect.storage.database import Database, Transaction

MAX_LISTED = 1000


@dataclass(frozen=True, slots=True)
class Described:
    """What a client says of a session. Its user is decided once: None takes the one it has, or nobody's."""

    user_id: str | None = None
    agent_id: str | None = None
    title: str | None = None
    metadata: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        checks.optional_identifier(self.user_id, "user_id")
        checks.optional_identifier(self.agent_id, "agent_id")
        checks.optional_text(self.title, "title")

    def narrowed(self) -> Self:
        """The same, of the user and agent of the caller's key if that has limits."""
        user_id, agent_id = origin.narrowed(self.user_id, self.agent_id)
        return replace(self, user_id=user_id, agent_id=agent_id)


class ChatSessions(MasksSecrets):
    """Every change is made while the session's row is locked, as an append locks it: writers take turns."""

    def __init__(
        self,
        database: Database,
        capabilities: Capabilities,
        remember: Remember,
        removal: Removal,
        written: Callable[[str], None],
    ) -> None:
        self._database = database
        self._sessions = capabilities.sessions
        self._log = capabilities.log
        self._remember = remember
        self._removal = removal
        self._written = written

    async def page(
        self, namespace: str, user_id: str | None, agent_id: str | None, limit: int, behind: SessionPlace | None
    ) -> list[Session]:
        """Sessions of a user, of an agent or of all, the last active first."""
        checks.optional_identifier(user_id, "user_id")
        checks.optional_identifier(agent_id, "agent_id")
        checks.between(limit, 1, MAX_LISTED, "limit")
        user_id, agent_id = origin.narrowed(user_id, agent_id)
        async with self._database.reading(namespace) as db:
            return await self._sessions.page(db, user_id, agent_id, limit, behind)

    async def listed(
        self, namespace: str, wanted: SessionFilter, limit: int, behind: SessionPlace | None, characters: int
    ) -> list[ListedSession]:
        """Sessions to choose from, the last active first, with so many characters of their texts at most."""
        checks.optional_identifier(wanted.user_id, "user_id")
        checks.optional_identifier(wanted.agent_id, "agent_id")
        checks.optional_short_name(wanted.text, "text")
        checks.between(limit, 1, MAX_LISTED, "limit")
        user_id, agent_id = origin.narrowed(wanted.user_id, wanted.agent_id)
        wanted = replace(wanted, user_id=user_id, agent_id=agent_id)
        async with self._database.reading(namespace) as db:
            return await self._sessions.listed(db, wanted, limit, behind, characters)

    async def get(self, namespace: str, session_id: str) -> Session:
        """What is known of one session."""
        checks.identifier(session_id, "session_id")
        async with self._database.reading(namespace) as db:
            session = await self._sessions.find(db, session_id)
        if session is None:
            raise _unknown(session_id)
        return session

    async def create(self, namespace: str, session_id: str | None, told: Described) -> Session:
        """A new session, with an id of its own if none is given; refused if the id is taken."""
        new_id = str(uuid7()) if session_id is None else checks.identifier(session_id, "id")
        told, metadata = told.narrowed(), checks.metadata(told.metadata)
        user_id = told.user_id or ANONYMOUS
        return await self._remember.session(namespace, new_id, user_id, told.title, metadata, told.agent_id)

    @masks("told")
    async def put(self, namespace: str, session_id: str, told: Described) -> Session:
        """Set what a session says of itself, all of it; one that does not exist begins with it."""
        _check_own(session_id)
        told, metadata = told.narrowed(), checks.metadata(told.metadata)
        async with self._database.transaction(namespace) as tx:
            new = await self._sessions.create(
                tx, session_id, told.user_id or ANONYMOUS, told.title, metadata, told.agent_id
            )
            if new is not None:
                return new
            await self._lock(tx, session_id, told.user_id)
            return await self._sessions.describe(tx, session_id, told.title, metadata, told.agent_id)

    @masks("title", "metadata", "expected")
    async def change(
        self,
        namespace: str,
        session_id: str,
        title: str | None,
        metadata: Mapping[str, Any] | None,
        expected: Mapping[str, Any] | None = None,
        *,
        keep_null: bool = False,
    ) -> Session:
        """Set a title, and some keys of the metadata: one with null goes, or is kept. What is None stays as it is.

        Refused if a key of the metadata is not as expected; null expects that it is not there.
        """
        _check_own(session_id)
        checks.optional_text(title, "title")
        checks.metadata(metadata)
        async with self._database.transaction(namespace) as tx:
            # To a key with limits, a session of others is as unknown as one that there is not.
            if origin.current().limits is not None and await self._sessions.find(tx, session_id) is None:
                raise _unknown(session_id)
            await self._lock(tx, session_id)
            return await self._merge(tx, session_id, title, metadata, expected, keep_null=keep_null)

    async def messages(
        self,
        namespace: str,
        session_id: str,
        limit: int,
        after: UUID | None = None,
        before: UUID | None = None,
        *,
        newest: bool = False,
    ) -> list[Message]:
        """The first messages, or the newest, in order, behind one and before another; none if there is no session."""
        checks.identifier(session_id, "session_id")
        checks.between(limit, 1, MAX_LISTED, "limit")
        async with self._database.reading(namespace) as db:
            found = await self._log.between(db, session_id, limit, after, before, newest=newest)
            for name, message_id in (("after", after), ("before", before)):
                if not found and message_id is not None and not await self._log.holds(db, session_id, message_id):
                    raise NotFound(f"Unknown message {message_id}: set {name} to the id of a message of the session")
            return found

    @masks("messages", "metadata", "expected", "others")
    async def add(
        self,
        namespace: str,
        session_id: str,
        messages: Sequence[NewMessage],
        user_id: str | None,
        metadata: Mapping[str, Any] | None = None,
        expected: Mapping[str, Any] | None = None,
        *,
        others: Mapping[str, Mapping[str, Any]] | None = None,
        keep_null: bool = False,
    ) -> list[Message]:
        """Append messages, all or none; a session that does not exist begins with them, as the user's.

        With metadata, or what it is expected to be, the session is changed as by `change`, as are others that exist, by
        id, and all of it or nothing is done.
        """
        checks.identifier(session_id, "session_id")
        checks.optional_identifier(user_id, "user_id")
        for number, message in enumerate(messages):
            if message.payload is None and not message.content.strip():
                raise Invalid(f"messages[{number}] says nothing: give it a text, a payload or both")
        user_id, _ = origin.narrowed(user_id)
        turn = Turn(session_id, tuple(messages), user_id or ANONYMOUS)
        if metadata is None and expected is None and others is None:
            return await self._remember.turn(namespace, turn)
        changed = {session_id: metadata, **(others or {})}
        for each, keys in changed.items():
            _check_own(each)
            checks.metadata(keys)

        async def change(tx: Transaction) -> None:
            await self._sessions.open(tx, {session_id: user_id or ANONYMOUS})
            held = await self._sessions.lock(tx, changed)
            for each, keys in changed.items():
                if each not in held:
                    raise NotFound(f"Unknown session {each}")
                wanted = expected if each == session_id else None
                await self._merge(tx, each, None, keys, wanted, keep_null=keep_null)

        return await self._remember.turn_after(namespace, turn, change)

    async def pop(self, namespace: str, session_id: str) -> Message | None:
        """Remove the newest message for good, with all by which it was found; None if there is none."""

        async def newest(tx: Transaction) -> list[Message]:
            return await self._log.between(tx, session_id, 1, None, None, newest=True)

        return await self._remove(namespace, session_id, newest)

    async def remove(self, namespace: str, session_id: str, message_id: UUID) -> Message:
        """Remove one message for good, with all by which it was found."""

        async def named(tx: Transaction) -> list[Message]:
            found = (await self._log.by_ids(tx, [message_id])).values()
            return [message for message in found if message.session_id == session_id]

        removed = await self._remove(namespace, session_id, named)
        if removed is None:
            raise NotFound(f"Unknown message {message_id}: session {session_id} has none of this id")
        return removed

    async def _remove(
        self, namespace: str, session_id: str, chosen: Callable[[Transaction], Awaitable[list[Message]]]
    ) -> Message | None:
        origin.require("admin")
        _check_own(session_id)
        async with self._database.transaction(namespace) as tx:
            await self._sessions.lock(tx, [session_id])
            found = await chosen(tx)
            for message in found:
                await self._removal.item(tx, MESSAGE_ITEM.name, str(message.id), Tally())
        self._written(namespace)
        return found[0] if found else None

    async def clear(self, namespace: str, session_id: str) -> int:
        """Remove all messages for good and keep the session; returns how many there were.

        A thousand at a time, so an interrupted call can be repeated.
        """
        _check_own(session_id)
        tally = Tally()
        finished = False
        while not finished:
            async with self._database.transaction(namespace) as tx:
                await self._sessions.lock(tx, [session_id])
                finished = await self._removal.messages_of(tx, session_id, tally)
        self._written(namespace)
        return tally.receipt(session_id).rows.get("messages", 0)

    async def delete(self, namespace: str, session_id: str) -> bool:
        """Remove a session with all that was said in it, for good; False if there is none."""
        checks.identifier(session_id, "session_id")
        existed = await self._removal.session(self._database, namespace, session_id)
        self._written(namespace)
        return existed

    async def message(self, namespace: str, message_id: UUID) -> Message:
        """One message, of whatever session."""
        async with self._database.reading(namespace) as db:
            found = await self._log.by_ids(db, [message_id])
        if message_id not in found:
            raise NotFound(f"Unknown message {message_id}")
        return found[message_id]

    async def _merge(
        self,
        tx: Transaction,
        session_id: str,
        title: str | None,
        metadata: Mapping[str, Any] | None,
        expected: Mapping[str, Any] | None,
        *,
        keep_null: bool,
    ) -> Session:
        """Of a session that is locked."""
        session = await self._sessions.find(tx, session_id)
        assert session is not None
        present, patch = session.metadata or {}, metadata or {}
        for name, value in (expected or {}).items():
            if present.get(name) != value:
                raise Conflict(f"The metadata {name} of session {session_id} is not as expected: read it again")
        merged = {**present, **patch}
        kept = {name: merged[name] for name in merged if keep_null or name not in patch or merged[name] is not None}
        encoded = checks.metadata(kept if kept or session.metadata is not None else None)
        told = session.title if title is None else title
        return await self._sessions.describe(tx, session_id, told, encoded, session.agent_id)

    async def _lock(self, tx: Transaction, session_id: str, user_id: str | None = None) -> None:
        owner = (await self._sessions.lock(tx, [session_id])).get(session_id)
        if owner is None:
            raise _unknown(session_id)
        if user_id not in (None, owner.user_id):
            raise Conflict(f"Session {session_id} belongs to another user: choose another id")


def _unknown(session_id: str) -> NotFound:
    return NotFound(f"Unknown session {session_id}")


def _check_own(session_id: str) -> None:
    """A chat of the gateway is for its user to change."""
    refuse_stored_chat(checks.identifier(session_id, "session_id"))
