"""Jobs: run in the background of the process that was asked, and any process tells how far they are.

A job ends with its process. What runs here can be started again and goes on from where it was, so nothing more is kept.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from recollect import checks, origin, tasks
from recollect.errors import Conflict, NotFound, RecollectError
from recollect.flows.accounts.audit import Audit
from recollect.identifiers import uuid7
from recollect.memory.accounts.jobs import Job, StoredJobs
from recollect.storage.database import Database

# How often a job is told of, and after how long without that its process must have ended.
TELL_SECONDS = 1.0
SILENT_SECONDS = 30.0

KEPT_DAYS = 30
CLOSE_SECONDS = 2.0

UNEXPECTED = "An unexpected error occurred: the server log has the details"

_log = logging.getLogger(__name__)


class Progress:
    """How far a job is, in whatever it counts."""

    def __init__(self) -> None:
        self.done = 0
        self.total = 0

    def tell(self, done: int, total: int) -> None:
        """So many are done, of so many."""
        self.done, self.total = done, max(done, total)


Work = Callable[[Progress], Awaitable[dict[str, Any]]]
"""Does something and reports what came of it, as JSON."""


class Jobs:
    """Starts work, and tells how far it is."""

    def __init__(self, database: Database, stored: StoredJobs, audit: Audit) -> None:
        self._database = database
        self._stored = stored
        self._audit = audit
        self._running: dict[UUID, tuple[str, Progress, tasks.BackgroundTask]] = {}

    async def start(self, namespace: str, kind: str, about: dict[str, Any], work: Work) -> UUID:
        """Begin to work in the background, for whoever calls; one job of a kind at a time."""
        job_id = uuid7()
        async with self._database.transaction(namespace) as tx:
            await self._stored.remove_old(tx, KEPT_DAYS)
            if not await self._stored.add(tx, job_id, kind, about, origin.current().author, SILENT_SECONDS):
                raise Conflict(
                    f"Another job of this kind ({kind}) is running in this namespace: wait until it ends. "
                    f"If its server was killed, that is known after {SILENT_SECONDS:.0f} seconds."
                )
        progress, task = Progress(), tasks.BackgroundTask(f"recollect-job-{kind}")
        self._running[job_id] = namespace, progress, task
        task.start(self._run(namespace, job_id, kind, progress, work))
        return job_id

    async def job(self, namespace: str, job_id: str) -> Job:
        """One job with its report."""
        try:
            found_id = UUID(checks.identifier(job_id, "id"))
        except ValueError:
            raise NotFound(f"Unknown job {job_id}") from None
        async with self._database.reading(namespace) as db:
            found = await self._stored.find(db, found_id, SILENT_SECONDS)
        if found is None:
            raise NotFound(f"Unknown job {job_id}: jobs are kept for {KEPT_DAYS} days")
        return found

    async def recent(self, namespace: str, limit: int) -> list[Job]:
        """The last jobs, newest first, without their reports."""
        async with self._database.reading(namespace) as db:
            return await self._stored.recent(db, limit, SILENT_SECONDS)

    async def close(self) -> None:
        """Stop what runs, and note that it was stopped, unless the database does not answer."""
        for job_id, (namespace, progress, task) in list(self._running.items()):
            await task.stop()
            if job_id in self._running:
                await tasks.ended_within(CLOSE_SECONDS, self._finish(namespace, job_id, progress, "stopped", {}))

    async def _run(self, namespace: str, job_id: UUID, kind: str, progress: Progress, work: Work) -> None:
        state, report = "failed", {"failure": UNEXPECTED}
        try:
            telling = tasks.beside(self._keep_telling(namespace, job_id, progress))
            async with telling, self._audit.operation(namespace, f"job {kind}"):
                report = await work(progress)
            state = "done"
        except RecollectError as problem:
            report = {"failure": str(problem)}
        # A task that nobody awaits would fail unnoticed, and its job seem to run.
        except Exception:  # noqa: BLE001
            _log.exception("A job failed unexpectedly", extra={"namespace": namespace})
        await self._finish(namespace, job_id, progress, state, report)

    async def _keep_telling(self, namespace: str, job_id: UUID, progress: Progress) -> None:
        while True:
            await asyncio.sleep(TELL_SECONDS)
            try:
                async with self._database.transaction(namespace) as tx:
                    await self._stored.tell(tx, job_id, progress.done, progress.total)
            except RecollectError as problem:
                _log.info("How far a job is could not be noted: %s", problem, extra={"namespace": namespace})

    async def _finish(
        self, namespace: str, job_id: UUID, progress: Progress, state: str, report: dict[str, Any]
    ) -> None:
        try:
            async with self._database.transaction(namespace) as tx:
                await self._stored.finish(tx, job_id, state, progress.done, progress.total, report)
        except RecollectError as problem:
            _log.warning("How a job ended could not be noted: %s", problem, extra={"namespace": namespace})
        self._running.pop(job_id, None)
