"""Windows: what of a session is in short-term memory, a view of the log behind a summary of all that came before."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Self
from uuid import UUID

from recollect.checks import Json
from recollect.language.tokens import estimate_tokens, estimate_tokens_of_all
from recollect.steps import in_steps
from recollect.storage.database import Statements, Transaction
from recollect.storage.record import Record
from recollect.storage.sql import Queries, Query

Strategy = Literal["sliding_window", "token_threshold"]

SUMMARY, SYSTEM = "summary", "system"

# Of a summary among the rows of a window.
_SUMMARY_PLACE = 2


class _Sql(Queries, file="windows.sql"):
    configure: Query
    start: Query
    read: Query
    read_then: Query
    outline: Query
    past_summaries: Query
    lock: Query
    part: Query
    summarise: Query
    move: Query
    lock_of_message: Query
    covering: Query
    remove_summaries: Query
    count_summaries: Query
    page_summaries: Query
    restore_summaries: Query
    compare_summaries: Query


RECORD = Record(
    "summary", "summaries", ("session_id", "until"), _Sql.page_summaries, _Sql.restore_summaries, _Sql.compare_summaries
)


@dataclass(frozen=True, slots=True)
class WindowConfig:
    """What a session sets for its own window; None follows the deployment."""

    strategy: Strategy | None = None
    max_messages: int | None = None
    max_tokens: int | None = None


class WindowMessage(NamedTuple):
    """A message in a window; `compacted` is the summary that took the place of others, not one that a client wrote.

    Its tokens are estimated when it is read: the estimate is cheap, needs the text that is read anyway, and a better
    one will hold for old messages, too.
    """

    id: UUID
    role: str
    content: str
    metadata: Json
    at: datetime
    tokens: int
    compacted: bool = False
    pinned: bool = False

    @classmethod
    def of(
        cls,
        message_id: UUID,
        role: str,
        content: str,
        metadata: Json,
        at: datetime,
        compacted: bool = False,
        *,
        pinned: bool = False,
    ) -> Self:
        """The same with its tokens counted."""
        return cls(message_id, role, content, metadata, at, estimate_tokens(content), compacted, pinned)


class Window(NamedTuple):
    """What a session sets, and what is before an agent."""

    config: WindowConfig
    messages: list[WindowMessage]


class OutlinedMessage(NamedTuple):
    """A message of a window with the beginning of its text; a summary has no position, and neither has any in Redis."""

    id: UUID
    position: int | None
    role: str
    text: str
    tokens: int
    at: datetime
    compacted: bool
    pinned: bool


class Outline(NamedTuple):
    """What a session sets, and its window with beginnings of texts; the oldest messages of a large one are left out."""

    config: WindowConfig
    messages: list[OutlinedMessage]
    is_whole: bool


class PastSummary(NamedTuple):
    """What stood, or stands, for all messages before a position."""

    id: UUID
    until: int
    text: str
    metadata: Json
    at: datetime


def is_pinned(role: str, metadata: object, *, is_first: bool) -> bool:
    """Whether a summary never takes the place of a message: what the system said first, or asked to keep."""
    return role == SYSTEM and (is_first or (isinstance(metadata, dict) and metadata.get("pinned") is True))


class Windows:
    """Reads and moves windows over the log; messages that a window has passed stay in the log."""

    async def configure(self, tx: Transaction, session_id: str, owner_if_new: str, config: WindowConfig) -> None:
        """Set all of it; a session that does not exist begins with it."""
        row = await tx.one(
            _Sql.configure,
            session_id=session_id,
            user_id=owner_if_new,
            strategy=config.strategy,
            max_messages=config.max_messages,
            max_tokens=config.max_tokens,
        )
        tx.tally.add(row["user_id"])

    async def read(
        self,
        db: Statements,
        session_id: str,
        limit: int | None,
        strategy: Strategy | None = None,
        as_of: datetime | None = None,
    ) -> Window:
        """The last messages of a window, oldest first; before all of them what is pinned, and the summary.

        Strategy and limit are defaults for what the session does not set, and only a sliding window is limited. Without
        a strategy, the limit always applies. With a moment it is what had been said by then, as far as a session's
        settings of today would show it.
        """
        asked = {"session_id": session_id, "limit": limit, "strategy": strategy}
        rows = await (db.all(_Sql.read, **asked) if as_of is None else db.all(_Sql.read_then, as_of=as_of, **asked))
        if not rows:
            return Window(WindowConfig(), [])
        session = rows[0]
        messages = await in_steps(map(_message, rows[1:] if session["most"] is None else rows[1:][-session["most"] :]))
        return Window(
            WindowConfig(session["window_strategy"], session["window_max_messages"], session["window_max_tokens"]),
            messages,
        )

    async def outline(
        self, db: Statements, session_id: str, strategy: Strategy, max_messages: int, shown: int, characters: int
    ) -> Outline:
        """A window for people, so many of its last messages at most; strategy and number are defaults."""
        rows = await db.all(
            _Sql.outline,
            session_id=session_id,
            strategy=strategy,
            limit=max_messages,
            shown=shown,
            characters=characters,
        )
        if not rows:
            return Outline(WindowConfig(), [], is_whole=True)
        session, *found = rows
        pinned, summaries, last = ([row for row in found if row["place"] == place] for place in (1, _SUMMARY_PLACE, 3))
        messages = [
            OutlinedMessage(
                row["id"],
                row["position"],
                row["role"],
                row["text"],
                estimate_tokens_of_all(row["text"], row["bytes"]),
                row["created_at"],
                compacted=row["place"] == _SUMMARY_PLACE,
                pinned=row["place"] == 1,
            )
            for row in [*pinned, *summaries, *last[-shown:]]
        ]
        config = WindowConfig(session["window_strategy"], session["window_max_messages"], session["window_max_tokens"])
        return Outline(config, messages[-(session["most"] or len(messages)) :], is_whole=len(last) <= shown)

    async def past_summaries(self, db: Statements, session_id: str, limit: int, characters: int) -> list[PastSummary]:
        """The summaries of a session, the last first, with so many characters of each at most."""
        rows = await db.all(_Sql.past_summaries, session_id=session_id, limit=limit, characters=characters)
        return [PastSummary(*row) for row in rows]

    async def replace(
        self, tx: Transaction, session_id: str, part: Sequence[WindowMessage], summary: WindowMessage
    ) -> bool:
        """Let a summary stand for the beginning of a window, if that still is what was summarised."""
        if await tx.first(_Sql.lock, session_id=session_id) is None:
            return False
        start = await tx.one(_Sql.start, session_id=session_id)
        compacted = [start["id"]] if start["id"] is not None else []
        going = [message.id for message in part if not message.pinned]
        rows = await tx.all(
            _Sql.part, session_id=session_id, start=start["window_start"], limit=len(going) - len(compacted)
        )
        if [*compacted, *(row["id"] for row in rows)] != going:
            return False
        until = rows[-1]["position"] + 1
        await tx.all(
            _Sql.summarise,
            session_id=session_id,
            until=until,
            id=summary.id,
            content=summary.content,
            metadata=json.dumps(summary.metadata),
            at=summary.at,
        )
        await tx.all(_Sql.move, session_id=session_id, until=until)
        return True

    async def reopen(self, tx: Transaction, message_id: UUID) -> int:
        """Begin a window anew whose summary stands for a message that is about to be forgotten.

        Returns how many summaries went.
        """
        # Held first: a window that is moving over the message just now would not seem to have passed it.
        await tx.all(_Sql.lock_of_message, message_id=message_id)
        sessions = [row["id"] for row in await tx.all(_Sql.covering, message_id=message_id)]
        return sum([await self.begin_anew(tx, session_id) for session_id in sessions])

    async def begin_anew(self, tx: Transaction, session_id: str) -> int:
        """Let a window begin with its session, without a summary; returns how many summaries went."""
        await tx.all(_Sql.move, session_id=session_id, until=0)
        return await self.remove_summaries(tx, [session_id])

    async def remove_summaries(self, tx: Transaction, session_ids: Sequence[str]) -> int:
        """Delete the summaries of some sessions; returns how many there were."""
        return len(await tx.all(_Sql.remove_summaries, session_ids=list(session_ids)))

    async def count_summaries(self, db: Statements, session_ids: Sequence[str]) -> int:
        """How many summaries some sessions have."""
        return int((await db.one(_Sql.count_summaries, session_ids=list(session_ids)))["summaries"])


def _message(row: Any) -> WindowMessage:
    return WindowMessage.of(
        row["id"],
        row["role"],
        row["content"],
        row["metadata"],
        row["created_at"],
        compacted=row["place"] == _SUMMARY_PLACE,
        pinned=is_pinned(row["role"], row["metadata"], is_first=row["position"] == 0),
    )
