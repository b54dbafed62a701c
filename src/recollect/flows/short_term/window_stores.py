"""Where short-term windows live: over the log in PostgreSQL, or in buffers of their own in Redis."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from recollect import origin
from recollect.errors import Invalid
from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.removal import Removal
from recollect.flows.remember import Remember, Turn
from recollect.identifiers import uuid7
from recollect.memory.log import NewMessage
from recollect.memory.windows import (
    Outline,
    OutlinedMessage,
    Strategy,
    Window,
    WindowConfig,
    WindowMessage,
    is_pinned,
)
from recollect.quotas import ANONYMOUS
from recollect.steps import in_steps
from recollect.storage.database import Database

if TYPE_CHECKING:  # the client of Redis is optional
    from recollect.storage.buffers import Buffers


class WindowStore(Protocol):
    """What short-term memory asks of its store; one suite of tests runs against both."""

    async def add(
        self, namespace: str, session_id: str, messages: Sequence[NewMessage], user_id: str | None = None
    ) -> list[WindowMessage]:
        """Append messages next to each other; a session that does not exist begins with them, as the user's."""

    async def messages(
        self, namespace: str, session_id: str, limit: int | None, as_of: datetime | None = None
    ) -> list[WindowMessage]:
        """The last messages of a window, or all of them, oldest first; none of a session that does not exist.

        With a moment, those that were in it then.
        """

    async def replace(
        self, namespace: str, session_id: str, part: Sequence[WindowMessage], summary: WindowMessage
    ) -> bool:
        """Put a summary in the place of a window's beginning, but for what is pinned; False if that has changed."""

    async def window(
        self,
        namespace: str,
        session_id: str,
        strategy: Strategy,
        max_messages: int,
        as_of: datetime | None = None,
    ) -> Window:
        """What a session sets, and its messages, or those of a moment: the last ones if it slides, all otherwise.

        Strategy and number are for a session that does not set them.
        """

    async def outline(
        self, namespace: str, session_id: str, strategy: Strategy, max_messages: int, shown: int, characters: int
    ) -> Outline:
        """The same for people: beginnings of texts, and so many of the last messages at most."""

    async def configure(self, namespace: str, session_id: str, config: WindowConfig) -> None:
        """Set all of it; a session that does not exist begins with it."""

    async def delete(self, namespace: str, session_id: str) -> bool:
        """Delete a session and all that belongs to it for good; False if there is none."""

    async def external_sessions(self, namespace: str, session_ids: Sequence[str] | None) -> list[str]:
        """Those of some sessions, or of all, that it keeps outside the database."""

    async def ping(self) -> None:
        """Ask whatever it needs besides the database; raises when that does not answer."""


class LogWindows:
    """Windows over the log: what is added here is there through every door, and compaction destroys nothing."""

    def __init__(self, database: Database, remember: Remember, capabilities: Capabilities, removal: Removal) -> None:
        self._database = database
        self._remember = remember
        self._capabilities = capabilities
        self._removal = removal

    async def add(
        self, namespace: str, session_id: str, messages: Sequence[NewMessage], user_id: str | None = None
    ) -> list[WindowMessage]:
        """Through the one way in, so that recall finds them."""
        turn = Turn(session_id, tuple(messages), owner_if_new=user_id or ANONYMOUS)
        stored = await self._remember.turn(namespace, turn)
        return await in_steps(
            WindowMessage.of(
                message.id,
                message.role,
                message.content,
                message.metadata,
                message.created_at,
                pinned=is_pinned(message.role, message.metadata, is_first=message.position == 0),
            )
            for message in stored
        )

    async def messages(
        self, namespace: str, session_id: str, limit: int | None, as_of: datetime | None = None
    ) -> list[WindowMessage]:
        """From the start of the window on."""
        async with self._database.reading(namespace) as db:
            return (await self._capabilities.windows.read(db, session_id, limit, as_of=as_of)).messages

    async def replace(
        self, namespace: str, session_id: str, part: Sequence[WindowMessage], summary: WindowMessage
    ) -> bool:
        """Write the summary and move the window's start, while the session's row is locked."""
        async with self._database.transaction(namespace) as tx:
            return await self._capabilities.windows.replace(tx, session_id, part, summary)

    async def window(
        self,
        namespace: str,
        session_id: str,
        strategy: Strategy,
        max_messages: int,
        as_of: datetime | None = None,
    ) -> Window:
        """In one round trip."""
        async with self._database.reading(namespace) as db:
            return await self._capabilities.windows.read(db, session_id, max_messages, strategy, as_of)

    async def outline(
        self, namespace: str, session_id: str, strategy: Strategy, max_messages: int, shown: int, characters: int
    ) -> Outline:
        """In one round trip."""
        async with self._database.reading(namespace) as db:
            return await self._capabilities.windows.outline(db, session_id, strategy, max_messages, shown, characters)

    async def configure(self, namespace: str, session_id: str, config: WindowConfig) -> None:
        """A session may be set up before its first message."""
        async with self._database.transaction(namespace) as tx:
            user_id, _ = origin.narrowed(None)
            await self._capabilities.windows.configure(tx, session_id, user_id or ANONYMOUS, config)

    async def delete(self, namespace: str, session_id: str) -> bool:
        """From the log."""
        return await self._removal.session(self._database, namespace, session_id)

    async def external_sessions(self, namespace: str, session_ids: Sequence[str] | None) -> list[str]:
        """None: the log is in the database."""
        return []

    async def ping(self) -> None:
        """The database is all it needs."""


class BufferedWindows:
    """Windows in Redis, which hold their messages themselves: a summary takes the place of what it stands for."""

    def __init__(self, buffers: "Buffers", database: Database) -> None:
        self._buffers = buffers
        self._database = database

    async def add(
        self, namespace: str, session_id: str, messages: Sequence[NewMessage], user_id: str | None = None
    ) -> list[WindowMessage]:
        """Their order is the one in which Redis took them; without a time they take that of this process."""
        if user_id is not None or any(new.speaker is not None or new.id is not None for new in messages):
            raise Invalid(
                "Short-term windows in Redis keep no user_id, speaker or id: omit them, or unset RECOLLECT_REDIS_URL"
            )
        now = datetime.now(UTC)
        stored = await in_steps(
            WindowMessage.of(
                uuid7(), new.role, new.content, json.loads(new.metadata) if new.metadata else None, new.at or now
            )
            for new in messages
        )
        items = await in_steps(map(_item, stored))
        texts = (text for new in messages for text in (new.content, new.metadata))
        async with self._charged(namespace, *texts, rows=len(messages)):
            # Before, because a caller that is cancelled may have stored them.
            origin.touch(namespace, "add", "message", (message.id for message in stored))
            await self._buffers.append(namespace, session_id, items)
        return stored

    @asynccontextmanager
    async def _charged(self, namespace: str, *texts: str | None, rows: int = 1) -> AsyncIterator[None]:
        """Charge what the block puts into Redis; if it fails, nothing is charged."""
        if not self._database.meter.counts(origin.current()):
            yield
            return
        async with self._database.transaction(namespace) as tx:
            tx.tally.add(None, *texts, rows=rows)
            await tx.tally.charge(tx.all)  # at the end it would be too late: Redis would have it
            yield

    async def messages(
        self, namespace: str, session_id: str, limit: int | None, as_of: datetime | None = None
    ) -> list[WindowMessage]:
        """All that the buffer holds."""
        _refuse_past(as_of)
        items = await self._buffers.last(namespace, session_id, limit)
        origin.touch(namespace, origin.READ, "message", (message_id for message_id, _ in items))
        return await in_steps(
            WindowMessage.of(
                UUID(message_id),
                role,
                content,
                metadata,
                datetime.fromtimestamp(seconds, UTC),
                compacted,
                pinned=is_pinned(role, metadata, is_first=limit is None and place == 0),
            )
            for place, (message_id, text) in enumerate(items)
            for role, content, metadata, seconds, compacted in [json.loads(text)]
        )

    async def replace(
        self, namespace: str, session_id: str, part: Sequence[WindowMessage], summary: WindowMessage
    ) -> bool:
        """In one step of Redis."""
        ids = [str(message.id) for message in part]
        kept = [_item(message) for message in part if message.pinned]
        return await self._buffers.replace(namespace, session_id, ids, _item(summary), kept)

    async def window(
        self,
        namespace: str,
        session_id: str,
        strategy: Strategy,
        max_messages: int,
        as_of: datetime | None = None,
    ) -> Window:
        """What it sets is in the buffer's note."""
        _refuse_past(as_of)
        config = await self._config(namespace, session_id)
        slides = (config.strategy or strategy) == "sliding_window"
        limit = (config.max_messages or max_messages) if slides else None
        return Window(config, await self.messages(namespace, session_id, limit))

    async def outline(
        self, namespace: str, session_id: str, strategy: Strategy, max_messages: int, shown: int, characters: int
    ) -> Outline:
        """Of what the buffer holds; one more than is shown tells whether that is all."""
        config = await self._config(namespace, session_id)
        slides = (config.strategy or strategy) == "sliding_window"
        most = min(config.max_messages or max_messages, shown + 1) if slides else shown + 1
        found = await self.messages(namespace, session_id, most)
        messages = [
            OutlinedMessage(
                message.id,
                None,
                message.role,
                message.content[:characters],
                message.tokens,
                message.at,
                message.compacted,
                message.pinned,
            )
            for message in found[-shown:]
        ]
        return Outline(config, messages, is_whole=len(found) <= shown)

    async def configure(self, namespace: str, session_id: str, config: WindowConfig) -> None:
        """In the buffer's note."""
        async with self._charged(namespace):
            await self._buffers.write_note(namespace, session_id, json.dumps(asdict(config)))

    async def delete(self, namespace: str, session_id: str) -> bool:
        """At once, whatever its size."""
        origin.touch(namespace, "delete", "session", [session_id])
        return await self._buffers.remove(namespace, session_id)

    async def external_sessions(self, namespace: str, session_ids: Sequence[str] | None) -> list[str]:
        """All that there are."""
        if session_ids is None:
            return sorted(await self._buffers.names(namespace))
        return [name for name in session_ids if await self._buffers.exists(namespace, name)]

    async def ping(self) -> None:
        """Ask Redis."""
        await self._buffers.ping()

    async def _config(self, namespace: str, session_id: str) -> WindowConfig:
        note = await self._buffers.note(namespace, session_id)
        return WindowConfig() if note is None else WindowConfig(**json.loads(note))


def _refuse_past(as_of: datetime | None) -> None:
    if as_of is not None:
        raise Invalid(
            "Short-term windows in Redis keep no history, PostgreSQL does: omit as_of, or unset RECOLLECT_REDIS_URL"
        )


def _item(message: WindowMessage) -> tuple[str, str]:
    fields = (message.role, message.content, message.metadata, message.at.timestamp(), message.compacted)
    return str(message.id), json.dumps(fields, ensure_ascii=False)
