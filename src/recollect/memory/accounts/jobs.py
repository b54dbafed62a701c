"""Jobs: work that takes longer than a request, how far it is, and what came of it."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.storage.database import Statements, Transaction
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="jobs.sql"):
    end_silent: Query
    remove_old: Query
    add: Query
    tell: Query
    ask_to_stop: Query
    finish: Query
    find: Query
    recent: Query
    clear: Query


GOING_ON = ("running", "stopping")
"""The states of a job that has not ended."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job: `running`, `stopping` if somebody asked for that, or how it ended.

    That is `done`, `failed`, `stopped` (by somebody, or with its server), or `lost` with its process.
    """

    id: UUID
    kind: str
    about: dict[str, Any]
    author: str | None
    state: str
    done: int
    total: int
    started_at: datetime
    told_at: datetime
    ended_at: datetime | None
    report: dict[str, Any]


class StoredJobs:
    """Keeps one row for each job."""

    async def add(
        self, tx: Transaction, job_id: UUID, kind: str, about: dict[str, Any], author: str | None, seconds: float
    ) -> bool:
        """Begin one; False if one of its kind is running, and has reported in the last seconds."""
        await tx.all(_Sql.end_silent, seconds=seconds)
        return await tx.first(_Sql.add, job_id=job_id, kind=kind, about=about, author=author) is not None

    async def remove_old(self, tx: Transaction, days: int) -> None:
        """Delete those that ended so many days ago."""
        await tx.all(_Sql.remove_old, days=days)

    async def tell(self, tx: Transaction, job_id: UUID, done: int, total: int) -> bool:
        """Note how far one is; False if it is not to go on."""
        return await tx.first(_Sql.tell, job_id=job_id, done=done, total=total) is not None

    async def ask_to_stop(self, tx: Transaction, job_id: UUID, author: str | None) -> bool:
        """Have one stopped by the process that runs it; False if it has ended."""
        by = json.dumps({"stopped_by": author})
        return await tx.first(_Sql.ask_to_stop, job_id=job_id, by=by) is not None

    async def finish(
        self, tx: Transaction, job_id: UUID, state: str, done: int, total: int, report: dict[str, Any]
    ) -> None:
        """Note how one ended."""
        await tx.all(_Sql.finish, job_id=job_id, state=state, done=done, total=total, report=report)

    async def find(self, db: Statements, job_id: UUID, seconds: float) -> Job | None:
        """One job; lost if it has not reported for so many seconds."""
        row = await db.first(_Sql.find, job_id=job_id, seconds=seconds)
        return None if row is None else Job(*row)

    async def recent(self, db: Statements, limit: int, seconds: float) -> list[Job]:
        """The last jobs, newest first, without their reports."""
        return [Job(*row) for row in await db.all(_Sql.recent, limit=limit, seconds=seconds)]

    async def clear(self, tx: Transaction) -> None:
        """Forget what ended jobs were about, and their reports."""
        await tx.all(_Sql.clear)
