"""Audit: records each operation at a door before its answer is sent. If it cannot be recorded, the operation fails."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Literal

from recollect import logs, origin, tasks
from recollect.errors import RecollectError, Unavailable
from recollect.memory.accounts.audit import AuditLog, Entry, Outcome, Place
from recollect.origin import READ, USE, Origin, Touched
from recollect.storage.database import Database
from recollect.storage.group_commit import CLOSE_SECONDS, GroupCommit

Level = Literal["off", "changes", "all"]

# The approximate size of a line without its ids, and of each id.
LINE_BYTES = 300
ID_BYTES = 40

log = logging.getLogger("recollect.audit")


class Audit:
    """Writes the lines. Concurrent lines of a namespace share a commit."""

    def __init__(self, database: Database, log: AuditLog, level: Level) -> None:
        self._database = database
        self._log = log
        self._level = level
        self._lines = GroupCommit[Entry, Place](self._write)
        self._finisher = tasks.Finisher()

    @property
    def is_on(self) -> bool:
        """Whether operations are recorded."""
        return self._level != "off"

    async def close(self) -> None:
        """Write the lines that are still waiting."""
        await self._finisher.close(CLOSE_SECONDS)
        await self._lines.close()

    @asynccontextmanager
    async def operation(self, namespace: str | None, action: str) -> AsyncIterator[Touched | None]:
        """Record the block as one operation when it ends. Yields None if the log is off."""
        if not self.is_on:
            yield None
            return
        with origin.touching() as touched:
            try:
                yield touched
            except BaseException as problem:
                await self.record_failed(namespace, action, problem, touched)
                raise
            await self.record(namespace, action, "done", touched)

    async def record_failed(
        self,
        namespace: str | None,
        action: str,
        problem: BaseException,
        touched: Touched,
        by: Origin | None = None,
    ) -> None:
        """Store the line of an operation that raised. If that fails too, the problem gets a note."""
        try:
            await self.record(namespace, action, outcome_of(problem), touched, by)
        except Unavailable as failure:
            problem.add_note(str(failure))

    async def record(
        self, namespace: str | None, action: str, outcome: Outcome, touched: Touched, by: Origin | None = None
    ) -> None:
        """Store a line in the namespace of the operation, and one in every other namespace that it touched.

        A caller that is cancelled meanwhile, such as a client that hangs up, does not keep it from being stored.
        """
        if not self.is_on:
            return
        by = by or origin.current()
        with origin.own_work():
            await self._finisher.run(self._store(namespace, action, outcome, touched, by))

    async def _store(self, namespace: str | None, action: str, outcome: Outcome, touched: Touched, by: Origin) -> None:
        await touched.complete()
        items = touched.taken()
        if own := touched.namespace or namespace:
            items.setdefault(own, [])
        for where, what in items.items():
            if self._level == "changes" and outcome == "done" and all(each["event"] == READ for each in what):
                continue
            if by.connection_id is not None:
                what.append({"event": USE, "kind": "connection", "count": 1, "ids": [by.connection_id]})
            entry = Entry(by.key_id, by.author, by.door, action, outcome, logs.request_id(), what)
            size = LINE_BYTES + ID_BYTES * sum(len(each["ids"]) for each in what)
            try:
                await self._lines.submit(where, entry, size)
            except RecollectError as problem:
                log.error("a line of the audit log could not be written: %s", problem)
                raise Unavailable(
                    "The audit log could not be written, so the answer is withheld. A change may have been stored. "
                    f"{problem}"
                ) from problem

    async def _write(self, namespace: str, entries: Sequence[Entry]) -> Sequence[Place]:
        async with self._database.transaction(namespace) as tx:
            last = await self._log.append(tx, entries)
        return [last] * len(entries)


def outcome_of(problem: BaseException) -> Outcome:
    """The outcome of an operation that raised: refused if the caller can mend it, failed otherwise."""
    # The library and MCP raise errors of their own from ours.
    if isinstance(problem.__cause__, RecollectError):
        problem = problem.__cause__
    # A command ends so when somebody does not confirm it.
    has_ended = isinstance(problem, SystemExit)
    is_refused = has_ended or (isinstance(problem, RecollectError) and not isinstance(problem, Unavailable))
    return "refused" if is_refused else "failed"


def outcome_of_status(status: int) -> Outcome:
    """The outcome of an operation by its HTTP status."""
    return "done" if status < 400 else "refused" if status < 500 else "failed"
