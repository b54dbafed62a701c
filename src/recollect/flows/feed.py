"""The feed: reads the changes of a namespace in order, with what each item is now, and waits for new ones."""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from recollect import checks, tasks
from recollect.errors import Conflict
from recollect.flows.capabilities import Capabilities
from recollect.flows.kinds import registry
from recollect.memory.changes import Recorded
from recollect.storage.database import Database, Statements

DEFAULT_LIMIT = 100
MAX_LIMIT = 500

# Of one kind or event there may be none for long; so many changes are looked at before a reader is answered.
LOOKED_AT = 20_000

# How often to ask the database for writes of other processes.
POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Entry:
    """A change, and what its item is now; None if the item is gone, or the change is that it was deleted."""

    change: Recorded
    content: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Page:
    """Changes in order, and the number after which the next page begins."""

    entries: list[Entry]
    next: int


@dataclass(frozen=True, slots=True)
class Newest(Page):
    """Changes from the newest on. The next page is ahead of `next`, or there is none if that is 0."""

    last: int
    """The number of the last change of all: whoever follows the feed begins after it."""


@dataclass(slots=True)
class _Followers:
    """Those who wait for changes of a namespace. They share one query for its last number."""

    count: int = 0
    last: int = 0
    asked_at: float = -POLL_SECONDS
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Feed:
    """Reads changes. Followers hold no connection while they wait, and those of one namespace share its queries."""

    def __init__(self, database: Database, capabilities: Capabilities) -> None:
        self._database = database
        self._capabilities = capabilities
        self._followers: dict[str, _Followers] = {}
        self._ended = False

    async def page(self, namespace: str, since: int = 0, limit: int = DEFAULT_LIMIT) -> Page:
        """The next changes after a number; 0 is before the first.

        Numbers grow in the order of commits, so no change is ever inserted before one that was read.
        """
        checks.between(since, 0, checks.LARGEST_ID, "since")
        checks.between(limit, 1, MAX_LIMIT, "limit")
        async with self._database.reading(namespace) as db:
            changes = await self._capabilities.changes.since(db, since, limit)
            if not changes and since > (last := await self._capabilities.changes.last(db)):
                raise Conflict(
                    f"The last change has the number {last}, below {since}: the namespace was deleted, or restored "
                    "from a backup. Read its changes from 0."
                )
            contents = await self._contents(db, changes)
        entries = [Entry(change, contents.get(change.number)) for change in changes]
        return Page(entries, changes[-1].number if changes else since)

    async def newest(
        self,
        namespace: str,
        before: int | None = None,
        limit: int = DEFAULT_LIMIT,
        *,
        kind: str | None = None,
        event: str | None = None,
    ) -> Newest:
        """The last changes ahead of a number, or of all.

        Of one kind or event, a page may have fewer than there are: the next ones look further back.
        """
        checks.between(limit, 1, MAX_LIMIT, "limit")
        async with self._database.reading(namespace) as db:
            last = await self._capabilities.changes.last(db)
            before = last + 1 if before is None else min(before, last + 1)
            least = 0 if kind is None and event is None else before - LOOKED_AT
            changes = await self._capabilities.changes.newest(db, before, least, limit, kind, event)
            contents = await self._contents(db, changes)
        entries = [Entry(change, contents.get(change.number)) for change in changes]
        reached = changes[-1].number if len(changes) == limit else least
        return Newest(entries, reached if reached > 1 else 0, last)

    async def first_at(self, namespace: str) -> datetime | None:
        """When the first change was made that is still known."""
        async with self._database.reading(namespace) as db:
            return await self._capabilities.changes.first_at(db)

    async def last(self, namespace: str) -> int:
        """The number of the last change; 0 if there was none."""
        async with self._database.reading(namespace) as db:
            return await self._capabilities.changes.last(db)

    async def follow(
        self, namespace: str, since: int = 0, quiet_seconds: float = math.inf
    ) -> AsyncGenerator[Page, None]:
        """Every change after a number, page by page, then new ones as they come, until the feed ends.

        Yields an empty page when nothing has changed for `quiet_seconds`.
        """
        while not self._ended:
            if (page := await self.page(namespace, since)).entries:
                yield page
                since = page.next
            elif not await self.changed(namespace, since, quiet_seconds):
                yield page

    async def changed(self, namespace: str, since: int, within: float = math.inf) -> bool:
        """Wait for a change after a number, or for the end of the feed; False if neither comes in time."""
        deadline = time.monotonic() + within
        followers = self._followers.setdefault(namespace, _Followers())
        followers.count += 1
        try:
            while not self._ended and await self._last(namespace, followers) <= since:
                if (left := deadline - time.monotonic()) <= 0:
                    return False
                await tasks.set_within(min(POLL_SECONDS, left), followers.woken)
            return True
        finally:
            followers.count -= 1
            if not followers.count:
                self._followers.pop(namespace, None)

    def wake(self, namespace: str) -> None:
        """Let followers look at once: this process has written."""
        if (followers := self._followers.get(namespace)) is not None:
            followers.asked_at = -POLL_SECONDS
            followers.woken.set()

    def end(self) -> None:
        """End all followers."""
        self._ended = True
        for namespace in list(self._followers):
            self.wake(namespace)

    async def _last(self, namespace: str, followers: _Followers) -> int:
        """The number of the last change, at most POLL_SECONDS old; one follower asks for all of them."""
        async with followers.asking:
            followers.woken.clear()
            if time.monotonic() - followers.asked_at >= POLL_SECONDS:
                asked_at = time.monotonic()
                followers.last = await self.last(namespace)
                if not followers.woken.is_set():
                    followers.asked_at = asked_at
            return followers.last

    async def _contents(self, db: Statements, changes: Sequence[Recorded]) -> dict[int, Mapping[str, Any]]:
        """What the items of some changes are now, by the numbers of the changes."""
        contents: dict[int, Mapping[str, Any]] = {}
        for name, in_feed in registry.in_feed().items():
            if of_kind := [change for change in changes if change.kind == name and change.event in _WITH_CONTENT]:
                contents.update(await in_feed.contents(self._capabilities, db, of_kind))
        return contents


_WITH_CONTENT = frozenset({"add", "update", "import"})
