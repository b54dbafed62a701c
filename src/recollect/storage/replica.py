"""A standby server that answers searches, and never with less than was committed when a search began."""

import asyncio
import logging
import time

import asyncpg

from recollect.errors import Misconfigured, RecollectError, Unavailable
from recollect.origin import own_work
from recollect.storage.database import Database

# How long a search may wait for the standby to catch up, in all, before the primary answers it.
PATIENCE_SECONDS = (0.0, 0.002, 0.004, 0.008, 0.016)

# A standby that takes longer for a question of a few microseconds does not answer.
ANSWER_SECONDS = 1.0

# Before a standby that failed, or one that fell behind, is asked again.
AWAY_SECONDS = 5.0
BEHIND_SECONDS = 1.0

# What has been acknowledged lies before this, on the primary. Only with asynchronous commits may it not be flushed yet.
_POSITION = """
select (
    case current_setting('synchronous_commit') when 'off' then pg_current_wal_insert_lsn()
    else pg_current_wal_flush_lsn() end
)::text
"""
_HAS_REACHED = "select pg_is_in_recovery() and pg_last_wal_replay_lsn() >= $1::text::pg_lsn as has_reached"
_ORIGIN = """
select system_identifier, timeline_id, current_database() as database, current_schema() as schema,
       pg_is_in_recovery() as is_standby
from pg_control_system()
cross join pg_control_checkpoint()
"""

_log = logging.getLogger(__name__)


class Standby:
    """A physical copy of the primary that streams its changes; it is asked only while it has all of them."""

    def __init__(self, primary: Database, copy: Database) -> None:
        self._primary = primary
        self._copy = copy
        self._away_until = 0.0
        self._is_checked = False

    async def try_out(self) -> None:
        """Refuse a server that is not a standby of the primary; one that does not answer yet may do so later."""
        try:
            await self._check()
        except Unavailable as problem:
            self.failed(problem)

    async def current(self) -> Database | None:
        """The standby, if it has everything that is committed now; None if the primary must answer."""
        if time.monotonic() < self._away_until:
            return None
        with own_work():
            return await self._up_to_date()

    async def _up_to_date(self) -> Database | None:
        async with self._primary.alone() as connection:
            position = await connection.fetchval(_POSITION)
        try:
            if not self._is_checked:
                # Others need not wait for the answer.
                self._leave_alone(AWAY_SECONDS)
                await self._check()
            for pause in PATIENCE_SECONDS:
                await asyncio.sleep(pause)
                if (await self._ask(_HAS_REACHED, position))["has_reached"]:
                    return self._copy
        except (Unavailable, Misconfigured) as problem:
            self.failed(problem)
            return None
        # It may have become a primary itself.
        self._is_checked = False
        self._leave_alone(BEHIND_SECONDS)
        _log.warning("The read replica has fallen behind; the primary answers for it")
        return None

    def failed(self, problem: RecollectError) -> None:
        """Leave it alone for a while, and look at it anew then: another server may have taken its place."""
        self._is_checked = False
        self._leave_alone(AWAY_SECONDS)
        _log.warning("The read replica does not answer; the primary answers for it: %s", problem)

    async def _ask(self, query: str, *values: object) -> asyncpg.Record:
        """A row. A server that is frozen does not take a cancellation either, so its connection is dropped."""
        async with self._copy.alone() as connection:
            try:
                row = await connection.fetchrow(query, *values, timeout=ANSWER_SECONDS)
            except TimeoutError:
                connection.terminate()
                raise
        assert row is not None
        return row

    def _leave_alone(self, seconds: float) -> None:
        self._away_until = time.monotonic() + seconds

    async def _check(self) -> None:
        async with self._primary.alone() as connection:
            origin = await connection.fetchrow(_ORIGIN)
        copy = await self._ask(_ORIGIN)
        assert origin is not None
        same = all(origin[name] == copy[name] for name in ("system_identifier", "timeline_id", "database", "schema"))
        if not same or not copy["is_standby"]:
            raise Misconfigured(
                "RECOLLECT_DATABASE_READ_URL is not the same database on a streaming standby of the server of "
                "RECOLLECT_DATABASE_URL"
            )
        self._is_checked = True
        self._away_until = 0.0
