"""Fair shares of a server: a caller at full speed waits for its turn, so that the others need not wait for it."""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

# Requests at work at once when several callers share the server; each caller has its part of them, and at least one.
SHARED = 10

# So long a caller counts as one of those who share, after its last request.
PRESENT_SECONDS = 1.0


@dataclass(slots=True)
class _Line:
    """The requests of one caller: those at work, and those that wait."""

    at_work: int = 0
    last: float = 0.0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    @property
    def is_empty(self) -> bool:
        return not self.at_work and not self.waiting


class FairShare:
    """One caller alone has all of the server. With others, each has its share, and what is above that waits."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}
        self._swept = 0.0

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """Be at work for the length of the block, once it is this caller's turn."""
        line = self._lines.setdefault(caller, _Line())
        line.last = time.monotonic()
        if line.waiting or line.at_work >= self._share():
            called = asyncio.get_running_loop().create_future()
            line.waiting.append(called)
            try:
                await called
            except asyncio.CancelledError:
                if called.done() and not called.cancelled():
                    self._leave(line)
                else:
                    line.waiting.remove(called)
                raise
        else:
            line.at_work += 1
        try:
            yield
        finally:
            self._leave(line)

    def _leave(self, line: _Line) -> None:
        """One request less at work; those of this caller that now have their turn begin."""
        line.at_work -= 1
        share = self._share()
        while line.waiting and line.at_work < share:
            if not (called := line.waiting.popleft()).done():
                line.at_work += 1
                called.set_result(None)

    def _share(self) -> float:
        """How many requests of each caller may be at work."""
        now = time.monotonic()
        if now - self._swept > PRESENT_SECONDS / 4:
            self._swept = now
            gone = [name for name, line in self._lines.items() if now - line.last > PRESENT_SECONDS and line.is_empty]
            for caller in gone:
                del self._lines[caller]
        return math.inf if len(self._lines) < 2 else max(1, SHARED // len(self._lines))
