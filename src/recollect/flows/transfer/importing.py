"""Import: restores records with their ids, each batch in one transaction with its search index."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO

from recollect import checks, origin, tasks
from recollect.errors import Conflict, Forbidden, Invalid
from recollect.flows.defence.masking import MasksSecrets
from recollect.flows.kinds import registry
from recollect.flows.kinds.cognitive import WORKING_ITEM
from recollect.flows.kinds.conversations import MESSAGE
from recollect.flows.kinds.kind import Kind, SessionOwners
from recollect.flows.kinds.long_term import MEMORY_VERSION, as_trusted_as_memories
from recollect.flows.transfer.exporting import END, FORMAT, VERSION
from recollect.flows.transfer.import_lines import BadLine, Line, check, check_values, kind_of, read
from recollect.flows.transfer.import_report import Progress, Report, each_alone_if_not_together
from recollect.memory.changes import Change, Changes
from recollect.memory.cognitive.working import Working
from recollect.memory.index.passages import Passages
from recollect.memory.memories import Memories
from recollect.memory.records import Outcome, Records
from recollect.memory.sessions import Sessions
from recollect.storage.columns import Column, columns, move_on
from recollect.storage.database import Database, Transaction

BATCH_RECORDS = 200
BATCH_BYTES = 4 * 1024 * 1024

_REASONS = {
    Outcome.DIFFERENT: "already exists with different content and was not changed. Import into another namespace",
    Outcome.CLASH: "conflicts with a record that has another id. Import into another namespace",
}


class NotAnExport(Invalid):
    """A file that is none of our exports; the message is for the command line."""

    def __init__(self) -> None:
        super().__init__("The file is not a Recollect export. For other formats, use --from.")


class _Missing:
    """Records that were refused. Under their ids something else may be here, so nothing may refer to them."""

    def __init__(self) -> None:
        self._named: set[tuple[str, str, object]] = set()

    def add(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Remember what others may call a record by."""
        named_by = {
            column for other in registry.KINDS for of_kind, column in other.references.values() if of_kind == kind
        }
        for column in named_by:
            if isinstance(name := fields.get(column), str | int):
                self._named.add((kind, column, name))

    def check(self, kind: Kind, fields: Mapping[str, Any]) -> None:
        """Refuse a record that refers to one of them."""
        if self._named:
            for column, (other, by) in kind.references.items():
                named = fields[column] if isinstance(fields[column], list) else [fields[column]]
                if missing := [name for name in named if (other, by, name) in self._named]:
                    raise Invalid(f"{column} refers to the {other} {missing[0]}, which was rejected")


class _Run:
    """One import: what is known of the tables, and what came of the lines so far."""

    def __init__(self, namespace: str, tables: Mapping[str, Mapping[str, Column]]) -> None:
        self.report = Report(namespace)
        self.tables = tables
        self._missing = _Missing()

    def refuse(self, line: Line | BadLine, problem: object) -> None:
        """Refuse a line, and what refers to it."""
        if isinstance(line, Line):
            self._missing.add(str(line.fields.get("kind")), line.fields)
        self.report.refuse(line.place, problem)

    def admitted(self, kind: Kind, batch: Sequence[Line]) -> list[Line]:
        """Those of some lines that refer to nothing that was refused; the others are refused as well."""
        admitted = []
        for line in batch:
            try:
                self._missing.check(kind, line.fields)
            except Invalid as problem:
                self.refuse(line, problem)
            else:
                admitted.append(line)
        return admitted

    def note(self, kind: Kind, line: Line, outcome: Outcome) -> None:
        """Count what became of a line."""
        if outcome is Outcome.ADDED:
            self.report.added[kind.name] += 1
        elif outcome in (Outcome.SAME, Outcome.AKIN):
            self.report.known[kind.name] += 1
        else:
            name = " ".join((kind.name, *kind.record.named(line.fields)))
            self.refuse(line, f"{name} {_REASONS[outcome]}")


class Importing(MasksSecrets):
    """Adds what is not there. What is there stays as it is, so an import that was stopped is simply run again."""

    def __init__(
        self,
        database: Database,
        records: Records,
        sessions: Sessions,
        memories: Memories,
        working: Working,
        passages: Passages,
        changes: Changes,
        written: Callable[[str], None],
    ) -> None:
        self._database = database
        self._records = records
        self._sessions = sessions
        self._memories = memories
        self._working = working
        self._passages = passages
        self._changes = changes
        self._written = written

    async def run(self, file: BinaryIO, namespace: str | None = None, progress: Progress | None = None) -> Report:
        """Import an export, into the namespace it came from or into another.

        An invalid record is rejected, and the others are imported. Keyword search finds them at once, semantic search
        when the indexer has embedded them. Whoever imports must be an admin: see `require_admin`.
        """
        lines = read(file)
        header = next(lines, None)
        if not isinstance(header, Line) or header.fields.get("kind") != FORMAT:
            raise NotAnExport
        if header.fields.get("version") != VERSION:
            raise Invalid(
                f"The file has export version {header.fields.get('version')!r}, but this version of Recollect reads "
                f"{VERSION}: import it with the version that wrote it, or a newer one"
            )
        require_admin()
        named = header.fields.get("namespace")
        if not isinstance(named, str):
            raise Invalid("The first line of the file does not name its namespace")
        namespace = checks.namespace(namespace or named)
        run = _Run(namespace, await columns(self._database, [kind.record.table for kind in registry.KINDS]))
        batches = _batches(_records(lines, run))
        async with self.counting_once(namespace):
            # In a thread, since a server may have others to answer while lines are parsed.
            while (found := await tasks.in_thread(next, batches, None)) is not None:
                kind, batch = found
                if admitted := [await self._masked(namespace, kind, line) for line in run.admitted(kind, batch)]:
                    await each_alone_if_not_together(admitted, partial(self._store, run, kind), run.refuse)
                if progress is not None:
                    progress(sum(line.size for line in batch))
        self._written(namespace)
        return run.report

    async def add(
        self, tx: Transaction, kind: Kind, texts: Sequence[str], fields: Sequence[Mapping[str, Any]]
    ) -> dict[tuple[str, ...], Outcome]:
        """Add those of some records that are not there, and make them findable; tells of each."""
        outcomes = await self._records.restore(tx, kind.record, texts)
        added = [record for record in fields if outcomes[kind.record.named(record)] is Outcome.ADDED]
        owners: SessionOwners = {}
        if kind is MESSAGE and added:
            sessions = {record["session_id"] for record in added}
            next_positions = await self._sessions.next_positions(tx, sessions)
            for record in added:
                # In a place that its session has yet to hand out, no new message could be stored.
                if record["position"] >= (free := next_positions[record["session_id"]]):
                    raise Invalid(
                        f"position must be below {free}, the next_position of its session, not {record['position']}"
                    )
            owners = await self._sessions.owners_of(tx, sessions)
        if (source := kind.source) is not None and added:
            # Only now is it known which are new: to weigh the words of all beforehand would make going on after a stop
            # as slow as the first time.
            made = await tasks.in_thread(lambda: [source(record, owners) for record in added])
            sources = [each for each in made if each is not None]
            if kind is MEMORY_VERSION:
                sources = await as_trusted_as_memories(tx, self._memories, sources)
            await self._passages.add(tx, sources)
        if kind.item is not None and (judged := kind.item.judged) is not None:
            shown = [judged(record, owners) for record in added]
            await self._passages.screen(tx, [each for each in shown if each is not None])
        if kind is WORKING_ITEM and added:
            await self._working.require_room(tx)
        return outcomes

    async def replace(
        self, tx: Transaction, kind: Kind, texts: Sequence[str], fields: Sequence[Mapping[str, Any]]
    ) -> None:
        """Put some records in the place of earlier ones with their ids, and their passages likewise."""
        await self._records.replace(tx, kind.record, texts)
        if (source := kind.source) is not None:
            made = await tasks.in_thread(lambda: [source(record, {}) for record in fields])
            item_ids = [name for record in fields for name in kind.record.named(record)]
            earlier = await self._passages.of_items(tx, kind.name, item_ids)
            await self._passages.replace(tx, earlier, [each for each in made if each is not None])

    async def record(
        self,
        tx: Transaction,
        kind: Kind,
        fields: Sequence[Mapping[str, Any]],
        outcomes: Mapping[tuple[str, ...], Outcome],
        others: Sequence[Change] = (),
    ) -> None:
        """Record that those of some records which were not there are imported, behind other changes; see Changes."""
        added = [record for record in fields if outcomes[kind.record.named(record)] is Outcome.ADDED]
        imported = [] if kind.feed is None else kind.feed.imported(added)
        await self._changes.record(tx, [*others, *imported])

    async def _masked(self, namespace: str, kind: Kind, line: Line) -> Line:
        if self.masking is None:
            return line
        clean = await self.masking.record(namespace, kind, line.fields)
        if clean is line.fields:
            return line
        return replace(line, text=json.dumps(clean, ensure_ascii=False), fields=clean)

    async def _store(self, run: _Run, kind: Kind, batch: Sequence[Line]) -> None:
        if len({kind.record.named(line.fields) for line in batch}) < len(batch):
            raise Conflict("Two lines of a batch are of the same record: one after the other")
        for column in run.tables[kind.record.table].values():
            if column.counted:
                # Before the rows are there, so that no id is given out twice if we stop in between.
                ids = [line.fields[column.name] for line in batch]
                await move_on(self._database, kind.record.table, column.name, ids)
        async with self._database.transaction(run.report.namespace) as tx:
            fields = [line.fields for line in batch]
            outcomes = await self.add(tx, kind, [line.text for line in batch], fields)
            await self.record(tx, kind, fields, outcomes)
        for line in batch:
            run.note(kind, line, outcomes[kind.record.named(line.fields)])


def require_admin() -> None:
    """Refuse whoever may not say what an export says: who wrote what, by which door, and that it is the operator's."""
    if not origin.may("admin"):
        raise Forbidden(
            "An export of Recollect says who wrote what and how far it is to be trusted: to import one, use a key with "
            "role admin"
        )


def _records(lines: Iterator[Line | BadLine], run: _Run) -> Iterator[tuple[Kind, Line]]:
    """The lines that are whole records; the others are refused."""
    ended = False
    for line in lines:
        try:
            if isinstance(line, BadLine):
                raise Invalid(line.reason)
            if line.fields.get("kind") == END:
                ended = True
                continue
            kind = kind_of(line.fields)
            check(kind, line.fields, run.tables[kind.record.table])
            check_values(kind, line.fields)
        except Invalid as problem:
            run.refuse(line, problem)
        else:
            yield kind, line
    if not ended:
        run.report.refuse("the end", "the last line is missing: the file was cut off")


def _batches(records: Iterator[tuple[Kind, Line]]) -> Iterator[tuple[Kind, list[Line]]]:
    """Records that follow each other and are of one kind, as many as go into a transaction."""
    batch: list[Line] = []
    kind, size = registry.KINDS[0], 0
    for kind_of_next, line in records:
        if batch and (kind_of_next is not kind or len(batch) == BATCH_RECORDS or size + line.size > BATCH_BYTES):
            yield kind, batch
            batch, size = [], 0
        kind, size = kind_of_next, size + line.size
        batch.append(line)
    if batch:
        yield kind, batch
