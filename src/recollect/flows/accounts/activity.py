"""Activity: writes and recalls over time, at a cost that does not grow with the data.

Recalls are counted in memory and added to the database in the background. Writes are the numbers of changes.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from itertools import pairwise
from typing import Any, TypeVar, cast

from recollect import checks, origin, tasks
from recollect.errors import AccessDenied, Invalid, NotFound, RecollectError
from recollect.memory.accounts.activity import RecallCounts, Recalls
from recollect.memory.changes import Changes
from recollect.storage.database import Database

Method = TypeVar("Method", bound=Callable[..., Awaitable[Any]])

HOURS = 48
MAX_HOURS = 168
MAX_DAYS = 90

FLUSH_SECONDS = 5.0
# How often hours that are too old are removed.
CLEAN_SECONDS = 3600.0
# A database that hangs must not keep the process.
CLOSE_SECONDS = 1.0

# What is kept while the database is away: so many namespaces, and so many hours of each.
MAX_NAMESPACES = 10_000
MAX_UNSAVED_HOURS = 24

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Period:
    """An hour or a day (UTC) of a namespace; the one that is not over yet has what there was so far.

    `recalls` ran in full; `degraded` had to do without semantic search, wholly or in part; `failed` are neither.
    """

    start: datetime
    writes: int
    recalls: int
    degraded: int
    failed: int


class Activity:
    """Counts the recalls of this process; the database adds up those of all."""

    def __init__(self, database: Database, counts: RecallCounts, changes: Changes) -> None:
        self._database = database
        self._counts = counts
        self._changes = changes
        self._unsaved: dict[str, dict[datetime, Recalls]] = {}
        self._cleaned: dict[str, float] = {}
        self._counted = asyncio.Event()
        self._task = tasks.BackgroundTask("recollect-activity")

    def start(self) -> None:
        """Begin to save counts in the background."""
        self._task.start(self._run())

    async def close(self) -> None:
        """Save what is counted, unless the database does not answer."""
        await self._task.stop()
        try:
            saved = await tasks.ended_within(CLOSE_SECONDS, self.flush())
        except RecollectError as problem:
            _log.info("The last recalls are not counted: %s", problem)
        else:
            if not saved:
                _log.info("The last recalls are not counted: the database did not answer in time")

    def count(self, namespace: str, recalls: Recalls) -> None:
        """Count recalls of this hour; those beyond the limits of an outage are left out."""
        self._keep(namespace, datetime.now(UTC).replace(minute=0, second=0, microsecond=0), recalls)
        self._counted.set()

    async def flush(self) -> None:
        """Save what is counted. What cannot be saved is kept for the next time, and a failure raised at the end."""
        problem: RecollectError | None = None
        for namespace in list(self._unsaved):
            now = time.monotonic()
            is_cleaning = now - self._cleaned.get(namespace, -math.inf) >= CLEAN_SECONDS
            hours = self._unsaved.pop(namespace, {})
            is_saved = False
            try:
                # Whoever closes the engine may have a key that only reads.
                with origin.own_work():
                    async with self._database.transaction(namespace) as tx:
                        # Else a recall would leave rows in a deleted namespace, or in a database to be restored.
                        if await self._counts.is_filled(tx):
                            await self._counts.add(tx, hours)
                        if is_cleaning:
                            await self._counts.remove_before(tx, datetime.now(UTC) - timedelta(days=MAX_DAYS))
                is_saved = True
                if is_cleaning:
                    self._note_cleaned(namespace, now)
            except RecollectError as failure:
                problem = failure
            finally:
                if not is_saved:
                    for hour, recalls in hours.items():
                        self._keep(namespace, hour, recalls)
        if problem is not None:
            raise problem

    async def report(self, namespace: str, *, hours: int | None = None, days: int | None = None) -> list[Period]:
        """The last hours, or the last days, the oldest first; this one is the last. Those without any are zero.

        Recalls of the last seconds may be missing. Writes that are forgotten count, but when they were is an estimate.
        """
        if hours is not None and days is not None:
            raise Invalid("Ask for hours or for days, not for both")
        now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        if days is None:
            count, length = checks.between(HOURS if hours is None else hours, 1, MAX_HOURS, "hours"), timedelta(hours=1)
        else:
            count, length = checks.between(days, 1, MAX_DAYS, "days"), timedelta(days=1)
            now = now.replace(hour=0)
        starts = [now - length * ago for ago in reversed(range(count))]
        moments = [*starts, now + length]
        async with self._database.reading(namespace) as db:
            before = await self._changes.before(db, moments)
            recalls = await self._counts.between(db, starts)
        periods = []
        for place, (start, end) in enumerate(pairwise(moments)):
            of_period = recalls.get(place, Recalls())
            writes = before.get(end, 0) - before.get(start, 0)
            periods.append(Period(start, writes, of_period.recalls, of_period.degraded, of_period.failed))
        return periods

    def _note_cleaned(self, namespace: str, now: float) -> None:
        if len(self._cleaned) >= MAX_NAMESPACES:
            self._cleaned.clear()
        self._cleaned[namespace] = now

    def _keep(self, namespace: str, hour: datetime, recalls: Recalls) -> None:
        hours = self._unsaved.get(namespace)
        if hours is None:
            if len(self._unsaved) >= MAX_NAMESPACES:
                return
            hours = self._unsaved[namespace] = {}
        if hour in hours:
            hours[hour].add(recalls)
        elif len(hours) < MAX_UNSAVED_HOURS:
            hours[hour] = recalls

    async def _run(self) -> None:
        is_failing = False
        while True:
            await self._counted.wait()
            await asyncio.sleep(FLUSH_SECONDS)
            self._counted.clear()
            try:
                await self.flush()
                is_failing = False
            except RecollectError as problem:
                self._counted.set()
                # Logged once: everything that needs the database reports its absence.
                if not is_failing:
                    _log.warning("Recalls could not be counted in the database; retrying: %s", problem)
                is_failing = True


def counted(degraded: Callable[[Any], object]) -> Callable[[Method], Method]:
    """Count each call of a search: a method whose first argument is a namespace, of an object that has `activity`.

    `degraded` tells of its result whether semantic search was missing. What is refused is no recall.
    """

    def counting(method: Method) -> Method:
        @wraps(method)
        async def search(self: Any, namespace: str, *values: Any, **options: Any) -> Any:
            try:
                found = await method(self, namespace, *values, **options)
            except (Invalid, NotFound, AccessDenied):
                raise
            except RecollectError:
                self.activity.count(namespace, Recalls(failed=1))
                raise
            self.activity.count(namespace, Recalls(degraded=1) if degraded(found) else Recalls(recalls=1))
            return found

        return cast(Method, search)

    return counting
