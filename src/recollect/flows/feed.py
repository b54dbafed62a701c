"""The feed: what happened to the memories of a namespace, in order, with what is left of each; and waiting for more."""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recollect import checks, tasks
from recollect.errors import Conflict
from recollect.flows.capabilities import Capabilities
from recollect.flows.kinds import registry
from recollect.memory.changes import Recorded
from recollect.storage.database import Database, Statements

DEFAULT_LIMIT = 100
MAX_LIMIT = 500

# Other processes write, too, and only the database knows of that.
POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Entry:
    """A change, and what its item is now; None if nothing is left of it, or the change is that it went."""

    change: Recorded
    content: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Page:
    """Changes in order, and the number behind which the next page begins."""

    entries: list[Entry]
    next: int


@dataclass(slots=True)
class _Pulse:
    """Those who wait for a namespace, and what they know of it together."""

    followers: int = 0
    last: int = 0
    asked_at: float = -POLL_SECONDS
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Feed:
    """Reads changes. Who follows them holds no connection while waiting, and all who wait for a namespace ask once."""

    def __init__(self, database: Database, capabilities: Capabilities) -> None:
        self._database = database
        self._capabilities = capabilities
        self._pulses: dict[str, _Pulse] = {}
        self._ended = False

    async def page(self, namespace: str, since: int = 0, limit: int = DEFAULT_LIMIT) -> Page:
        """The next changes behind a number; 0 is before the first.

        Numbers grow in the order of commits, so nothing ever comes before what was read.
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

    async def last(self, namespace: str) -> int:
        """The number of the last change; 0 if there was none."""
        async with self._database.reading(namespace) as db:
            return await self._capabilities.changes.last(db)

    async def follow(
        self, namespace: str, since: int = 0, quiet_seconds: float = math.inf
    ) -> AsyncGenerator[Page, None]:
        """Every change behind a number, page by page, and then those that come, until the feed ends.

        An empty page says that nothing came for so many seconds.
        """
        while not self._ended:
            if (page := await self.page(namespace, since)).entries:
                yield page
                since = page.next
            elif not await self.changed(namespace, since, quiet_seconds):
                yield page

    async def changed(self, namespace: str, since: int, within: float = math.inf) -> bool:
        """Return when there is a change behind a number, or the feed ends; False if neither comes in time."""
        deadline = time.monotonic() + within
        pulse = self._pulses.setdefault(namespace, _Pulse())
        pulse.followers += 1
        try:
            while not self._ended and await self._last(namespace, pulse) <= since:
                if (left := deadline - time.monotonic()) <= 0:
                    return False
                await tasks.set_within(min(POLL_SECONDS, left), pulse.woken)
            return True
        finally:
            pulse.followers -= 1
            if not pulse.followers:
                self._pulses.pop(namespace, None)

    def wake(self, namespace: str) -> None:
        """Something was written by this process."""
        if (pulse := self._pulses.get(namespace)) is not None:
            pulse.asked_at = -POLL_SECONDS
            pulse.woken.set()

    def end(self) -> None:
        """Let no one wait any longer."""
        self._ended = True
        for namespace in list(self._pulses):
            self.wake(namespace)

    async def _last(self, namespace: str, pulse: _Pulse) -> int:
        """The number of the last change, as it was a moment ago; the first who wants to know it asks for all."""
        async with pulse.asking:
            pulse.woken.clear()
            if time.monotonic() - pulse.asked_at >= POLL_SECONDS:
                asked_at = time.monotonic()
                pulse.last = await self.last(namespace)
                if not pulse.woken.is_set():
                    pulse.asked_at = asked_at
            return pulse.last

    async def _contents(self, db: Statements, changes: Sequence[Recorded]) -> dict[int, Mapping[str, Any]]:
        """What the items of some changes are now, by the numbers of the changes."""
        contents: dict[int, Mapping[str, Any]] = {}
        for name, in_feed in registry.in_feed().items():
            if of_kind := [change for change in changes if change.kind == name and change.event in _WITH_CONTENT]:
                contents.update(await in_feed.contents(self._capabilities, db, of_kind))
        return contents


_WITH_CONTENT = frozenset({"add", "update", "import"})
