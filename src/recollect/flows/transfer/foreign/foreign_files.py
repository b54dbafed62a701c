"""Imports of foreign files: batches what a reader yields, stores each batch in one transaction, and reports."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from recollect import checks, tasks
from recollect.errors import Invalid
from recollect.flows.capabilities import Capabilities
from recollect.flows.defence.masking import Masking, MasksSecrets
from recollect.flows.indexing.passage_writer import PassageWriter
from recollect.flows.transfer.foreign.fact_writer import FactWriter
from recollect.flows.transfer.foreign.formats import FORMATS, recognised
from recollect.flows.transfer.foreign.message_writer import MessageWriter, Stored
from recollect.flows.transfer.foreign.pieces import Fact, Item, LeftOut, Piece, Refused, Said, Text
from recollect.flows.transfer.foreign.sources import Broken, opened
from recollect.flows.transfer.foreign.text_writer import TextWriter
from recollect.flows.transfer.import_report import Report, each_alone_if_not_together
from recollect.flows.transfer.importing import Importing
from recollect.quotas import ANONYMOUS
from recollect.storage.database import Database

BATCH_ITEMS = 200
BATCH_CHARACTERS = 1024 * 1024

ImportProgress = Callable[[int, Report], None]
"""Hears how many bytes were read since it was last told, and what came of the import so far."""


class ForeignFiles(MasksSecrets):
    """Takes over what other programs exported. It can be run again: what is there already is not stored twice."""

    def __init__(
        self,
        database: Database,
        memory: Capabilities,
        importing: Importing,
        passage_writer: PassageWriter,
        written: Callable[[str], None],
    ) -> None:
        self._database = database
        self._memory = memory
        self._importing = importing
        self._passage_writer = passage_writer
        self._written = written

    def size(self, path: Path, origin: str) -> int:
        """How many bytes there are to read."""
        with opened(path) as source:
            return sum(member.size for member in FORMATS[origin].wanted(source))

    async def run(
        self,
        namespace: str,
        path: Path,
        origin: str,
        user_id: str | None = None,
        *,
        dry_run: bool = False,
        progress: ImportProgress | None = None,
    ) -> Report:
        """Import a file, folder or archive of a format; whose memory it becomes is `user_id`, or else nobody's.

        A dry run reads everything, and counts what it would store.
        """
        report = Report(checks.namespace(namespace))
        if user_id is not None:
            checks.identifier(user_id, "user")
        refuse_other_format(path, origin)
        run = _Run(report, self._writers(namespace, dry_run), progress, None if dry_run else self.masking)
        with opened(path) as source:
            if not FORMATS[origin].wanted(source):
                raise Invalid(f"{path} has nothing to import: expected {FORMATS[origin].about}")
            pieces = FORMATS[origin].read(source, user_id or ANONYMOUS, run.progress, user_id)
            try:
                async with self.counting_once(namespace):
                    await run.take(pieces)
            except Broken as problem:
                report.refuse(source.name, f"{problem}. What comes before was taken, and nothing behind it was read.")
        self._written(namespace)
        return report

    def _writers(self, namespace: str, dry_run: bool) -> dict[type, Any]:
        database, memory = self._database, self._memory
        return {
            Said: MessageWriter(database, memory, namespace, dry_run=dry_run),
            Text: TextWriter(database, memory, self._importing, namespace, dry_run=dry_run),
            Fact: FactWriter(database, memory, self._passage_writer, namespace, dry_run=dry_run),
        }


class OtherFormat(Invalid):
    """A file that seems to be in another format than was named; the message is for the command line."""

    def __init__(self, path: Path, about: str, found: str) -> None:
        super().__init__(f"{path} looks like {about}. Use --from {found}.")
        self.about = about
        self.found = found


def refuse_other_format(path: Path, origin: str | None) -> None:
    """Refuse what seems to be in another format than was named, and name the other."""
    found = recognised(path, origin)
    if found is not None and found != origin:
        about = FORMATS[found].about.partition(":")[0] if found in FORMATS else f"a file of {found}"
        raise OtherFormat(path, about, found)


class _Run:
    """One import: sorts pieces, and keeps the report."""

    def __init__(
        self,
        report: Report,
        writers: dict[type, Any],
        progress: ImportProgress | None,
        masking: Masking | None,
    ) -> None:
        self._report = report
        self._masking = masking
        self._writers = writers
        self._progress = progress

    def progress(self, size: int) -> None:
        """So many bytes were read."""
        if self._progress is not None:
            self._progress(size, self._report)

    async def take(self, pieces: Iterator[Piece]) -> None:
        """Store everything that can be, in batches of one kind; those before a broken place are stored, too."""
        batches = self._batches(pieces)
        # In a thread, since a server may have others to answer while files are read and parsed.
        while (batch := await tasks.in_thread(next, batches, None)) is not None:
            await self._store(batch)

    def _batches(self, pieces: Iterator[Piece]) -> Iterator[list[Item]]:
        batch: list[Item] = []
        size = 0
        try:
            for item in self._items(pieces):
                full = len(batch) == BATCH_ITEMS or size + item.size > BATCH_CHARACTERS
                if batch and (full or type(item) is not type(batch[0])):
                    complete, batch, size = batch, [], 0
                    yield complete
                batch.append(item)
                size += item.size
        except Broken:
            if batch:
                yield batch
            raise
        if batch:
            yield batch

    def _items(self, pieces: Iterator[Piece]) -> Iterator[Item]:
        """What is to be stored; the rest goes into the report."""
        for piece in pieces:
            if isinstance(piece, LeftOut):
                self._report.leave_out(piece.place, piece.reason, piece.count)
            elif isinstance(piece, Refused):
                self._report.refuse(piece.place, piece.reason)
            else:
                try:
                    piece.check()
                except Invalid as problem:
                    self._report.refuse(piece.place, problem)
                else:
                    yield piece

    async def _store(self, batch: Sequence[Item]) -> None:
        if self._masking is not None:
            batch = [await self._masking.of(self._report.namespace, item) for item in batch]
        await each_alone_if_not_together(
            batch, self._store_together, lambda item, problem: self._report.refuse(item.place, problem)
        )
        self.progress(0)

    async def _store_together(self, batch: Sequence[Item]) -> None:
        """Store items of one kind, all or none."""
        stored: Stored = await self._writers[type(batch[0])].store(batch)
        self._report.added.update(stored.added)
        self._report.known.update(stored.known)
        self._report.changed.update(stored.changed)
