"""Transcripts: a session as people read it, page by page, with long texts cut, and its summaries."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect import checks
from recollect.errors import NotFound
from recollect.flows.kinds.conversations import MESSAGE_ITEM
from recollect.memory.index.held import Held
from recollect.memory.log import Line, Log
from recollect.memory.windows import PastSummary, Windows
from recollect.storage.database import Database

MAX_LINES = 100

# Behind every message of a session.
END = 2**62


@dataclass(frozen=True, slots=True)
class Page:
    """Some messages of a session in order, and whether there are others before and behind them."""

    lines: list[Line]
    has_earlier: bool
    has_later: bool
    held: frozenset[str]
    """The ids of those that are held for review, so that recall does not find them."""


class Transcripts:
    """Reads, at a cost that depends neither on the length of a session nor on that of a message."""

    def __init__(self, database: Database, log: Log, windows: Windows, held: Held) -> None:
        self._database = database
        self._log = log
        self._windows = windows
        self._held = held

    async def before(
        self, namespace: str, session_id: str, position: int, limit: int, characters: int, as_of: datetime | None = None
    ) -> Page:
        """The messages before a position; before END, the last ones. With a moment, of those said by then."""
        return await self._page(namespace, session_id, position, (limit, 0), characters, as_of)

    async def following(
        self, namespace: str, session_id: str, position: int, limit: int, characters: int, as_of: datetime | None = None
    ) -> Page:
        """The messages from a position on."""
        return await self._page(namespace, session_id, position, (0, limit), characters, as_of)

    async def around(self, namespace: str, session_id: str, message_id: UUID, limit: int, characters: int) -> Page:
        """A message with others before and behind it."""
        checks.identifier(session_id, "session_id")
        async with self._database.reading(namespace) as db:
            position = await self._log.place(db, session_id, message_id)
        if position is None:
            raise NotFound(f"Session {session_id} has no message {message_id}: it may have been deleted")
        return await self._page(namespace, session_id, position, (limit // 2, limit - limit // 2), characters, None)

    async def summaries(self, namespace: str, session_id: str, limit: int, characters: int) -> list[PastSummary]:
        """What took the place of messages in the window of a session, the last first."""
        checks.identifier(session_id, "session_id")
        async with self._database.reading(namespace) as db:
            return await self._windows.past_summaries(db, session_id, limit, characters)

    async def _page(
        self,
        namespace: str,
        session_id: str,
        position: int,
        wanted: tuple[int, int],
        characters: int,
        as_of: datetime | None,
    ) -> Page:
        """So many before a position and so many from it on; one more on each side tells whether that is all."""
        checks.identifier(session_id, "session_id")
        checks.between(sum(wanted), 1, MAX_LINES, "limit")
        moment = checks.as_of(as_of)
        earlier, later = wanted
        async with self._database.reading(namespace) as db:
            before = await self._log.lines_before(db, session_id, position, earlier + 1, characters, moment)
            behind = await self._log.lines_from(db, session_id, position, later + 1, characters, moment)
            lines = [*reversed(before[:earlier]), *behind[:later]]
            noted = await self._held.find(db, MESSAGE_ITEM.name, [str(line.id) for line in lines])
        held = frozenset(item_id for item_id, item in noted.items() if item.state == "held")
        return Page(lines, has_earlier=len(before) > earlier, has_later=len(behind) > later, held=held)
