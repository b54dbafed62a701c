"""Jobs: run in the background of the process that was asked, and any process shows their progress, or stops them.

A job ends with its process. What runs here can be started again and goes on from where it was, so nothing more is kept.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from recollect import checks, origin, tasks
from recollect.errors import AccessDenied, Conflict, Invalid, NotFound, RecollectError, Unavailable
from recollect.flows.accounts.audit import Audit
from recollect.flows.defence.masking import MasksSecrets
from recollect.identifiers import uuid7
from recollect.memory.accounts.jobs import Job, StoredJobs
from recollect.origin import Origin
from recollect.storage.database import Database

# How often a running job reports, and how long without a report means that its process has ended.
TELL_SECONDS = 1.0
SILENT_SECONDS = 30.0

# Between attempts to note how a job ended, while the database is away.
RETRY_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0)

KEPT_DAYS = 30
CLOSE_SECONDS = 2.0

UNEXPECTED = "An unexpected error occurred: the server log has the details"

_log = logging.getLogger(__name__)


class Progress:
    """How far a job is, in whatever it counts."""

    def __init__(self) -> None:
        self.done = 0
        self.total = 0

    def tell(self, done: int, total: int = 0) -> None:
        """So many are done, of so many; of 0 if nobody knows of how many."""
        self.done, self.total = done, total and max(done, total)


Work = Callable[[Progress], Awaitable[dict[str, Any]]]
"""Does something and reports what came of it, as JSON."""


@dataclass(slots=True)
class _Running:
    """A job of this process, and how it ended: with the server, if nothing else is known."""

    namespace: str
    kind: str
    starter: Origin
    task: tasks.BackgroundTask
    progress: Progress = field(default_factory=Progress)
    state: str = "stopped"
    report: dict[str, Any] = field(default_factory=lambda: {"with_server": True})


class Jobs(MasksSecrets):
    """Starts work, tells how far it is, and stops it."""

    def __init__(self, database: Database, stored: StoredJobs, audit: Audit) -> None:
        self._database = database
        self._stored = stored
        self._audit = audit
        self._running: dict[UUID, _Running] = {}

    async def start(self, namespace: str, kind: str, about: dict[str, Any], work: Work) -> UUID:
        """Begin to work in the background, as whoever calls may; one job of a kind at a time."""
        job_id = uuid7()
        async with self._database.transaction(namespace) as tx:
            await self._stored.remove_old(tx, KEPT_DAYS)
            if not await self._stored.add(tx, job_id, kind, about, origin.current().author, SILENT_SECONDS):
                raise Conflict(
                    f"Another job of this kind ({kind}) is running in this namespace: wait until it ends. "
                    f"If its server was killed, that is known after {SILENT_SECONDS:.0f} seconds."
                )
        task = tasks.BackgroundTask(f"recollect-job-{kind}")
        self._running[job_id] = job = _Running(namespace, kind, origin.current(), task)
        task.start(self._run(job_id, job, work))
        return job_id

    async def job(self, namespace: str, job_id: str) -> Job:
        """One job with its report."""
        found_id = _id(job_id)
        async with self._database.reading(namespace) as db:
            found = await self._stored.find(db, found_id, SILENT_SECONDS)
        if found is None:
            raise NotFound(f"Unknown job {job_id}: jobs are kept for {KEPT_DAYS} days")
        return found

    async def recent(self, namespace: str, limit: int) -> list[Job]:
        """The last jobs, newest first, without their reports."""
        async with self._database.reading(namespace) as db:
            return await self._stored.recent(db, limit, SILENT_SECONDS)

    async def stop(self, namespace: str, job_id: str) -> None:
        """Have the process that runs a job stop it, which it does when it next tells how far it is."""
        async with self._database.transaction(namespace) as tx:
            if not await self._stored.ask_to_stop(tx, _id(job_id), origin.current().author):
                raise Conflict("This job has ended: there is nothing to stop")

    async def close(self) -> None:
        """Stop what runs, and note that it was stopped, unless the database does not answer."""
        for job_id, job in list(self._running.items()):
            await job.task.stop()
            if job_id in self._running:
                await tasks.ended_within(CLOSE_SECONDS, self._finish(job_id, job))

    async def _run(self, job_id: UUID, job: _Running, work: Work) -> None:
        job.state, job.report = await self._outcome(job_id, job, work)
        await self._finish(job_id, job)

    async def _outcome(self, job_id: UUID, job: _Running, work: Work) -> tuple[str, dict[str, Any]]:
        """How a job ends, and what came of it."""
        try:
            async with tasks.beside(self._as_starter(job, work), self._told(job_id, job)) as (working, telling):
                await asyncio.wait((working, telling), return_when=asyncio.FIRST_COMPLETED)
                return ("done", working.result()) if working.done() else ("stopped", telling.result())
        except RecollectError as problem:
            # It may quote a file.
            failure = {"failure": await self.cleaned(job.namespace, str(problem))}
            return "failed", failure | {"can_go_on": not isinstance(problem, Invalid | AccessDenied)}
        # A task that nobody awaits would fail unnoticed, and its job seem to run.
        except Exception:  # noqa: BLE001
            _log.exception("A job failed unexpectedly", extra={"namespace": job.namespace})
            return "failed", {"failure": UNEXPECTED, "can_go_on": True}

    async def _as_starter(self, job: _Running, work: Work) -> dict[str, Any]:
        with origin.resumed(job.starter):
            async with self._audit.operation(job.namespace, f"job {job.kind}"):
                return await work(job.progress)

    async def _told(self, job_id: UUID, job: _Running) -> dict[str, Any]:
        """Note how far a job is until it must stop: somebody asked for that, or thought it lost and may begin anew."""
        while True:
            await asyncio.sleep(TELL_SECONDS)
            try:
                async with self._database.transaction(job.namespace) as tx:
                    if not await self._stored.tell(tx, job_id, job.progress.done, job.progress.total):
                        return {}
            except RecollectError as problem:
                _log.info("How far a job is could not be noted: %s", problem, extra={"namespace": job.namespace})

    async def _finish(self, job_id: UUID, job: _Running) -> None:
        """Note how a job ended, which nobody else can tell: once the database answers, if it is away."""
        failures = 0
        while job_id in self._running:
            try:
                async with self._database.transaction(job.namespace) as tx:
                    await self._stored.finish(tx, job_id, job.state, job.progress.done, job.progress.total, job.report)
            except RecollectError as problem:
                _log.warning("How a job ended could not be noted: %s", problem, extra={"namespace": job.namespace})
                if isinstance(problem, Unavailable):
                    await asyncio.sleep(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
                    failures += 1
                    continue
            del self._running[job_id]


def _id(job_id: str) -> UUID:
    try:
        return UUID(checks.identifier(job_id, "id"))
    except ValueError:
        raise NotFound(f"Unknown job {job_id}") from None
