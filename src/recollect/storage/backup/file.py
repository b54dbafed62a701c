"""The file of a backup: a zip archive with a member for each table, in the text form of COPY, and a manifest behind."""

import hashlib
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, ValidationError

from recollect.errors import Conflict, Invalid, Misconfigured

FORMAT = 1
MANIFEST = "manifest.json"

# A reader of the file can read all memories.
PRIVATE = 0o600

# Most of a backup are vectors as text: level 3 leaves 35 % of them, and level 6 30 % at a fifth of the speed.
_LEVEL = 3
_CHUNK = 1 << 20

# Its tables and their columns, many times over.
MAX_MANIFEST_BYTES = 4 * 1024 * 1024

# Two texts of 16 MB, in which COPY escapes every character, with metadata and vectors.
MAX_ROW_BYTES = 80 * 1024 * 1024


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class TableEntry(_Record):
    """What a backup holds of one table."""

    name: str
    columns: list[str]
    rows: int
    sha256: str


class Counter(_Record):
    """The last id that a column has given out."""

    table: str
    column: str
    last: int


class Manifest(_Record):
    """What a backup holds, and of what."""

    format: int
    recollect: str
    schema_version: int
    postgres: str
    pgvector: str
    made_at: datetime
    tables: list[TableEntry]
    counters: list[Counter]

    def rows(self) -> int:
        """How many there are in all tables."""
        return sum(table.rows for table in self.tables)


class TableWriter:
    """Takes the rows of one table as they come."""

    def __init__(self, path: Path, member: IO[bytes]) -> None:
        self._path = path
        self._member = member
        self._digest = hashlib.sha256()
        self.rows = 0

    def write(self, data: bytes) -> int:
        """In the text form of COPY a line is a row: line breaks inside of values are escaped. Returns the rows."""
        rows = data.count(b"\n")
        with _on_disk(self._path):
            self._member.write(data)
        self._digest.update(data)
        self.rows += rows
        return rows

    def entry(self, name: str, columns: list[str]) -> TableEntry:
        """What the manifest says of the table."""
        return TableEntry(name=name, columns=columns, rows=self.rows, sha256=self._digest.hexdigest())


class BackupWriter:
    """Writes tables one after another, then the manifest."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path = path
        self._archive = archive

    @contextmanager
    def table(self, name: str) -> Iterator[TableWriter]:
        """A place for the rows of a table."""
        with self._archive.open(_member(name), "w", force_zip64=True) as member:
            yield TableWriter(self._path, member)

    def finish(self, manifest: Manifest) -> None:
        """Say what was written; a file without this is no backup."""
        self._archive.writestr(MANIFEST, manifest.model_dump_json(indent=1))


@contextmanager
def writing(path: Path, *, overwrite: bool) -> Iterator[BackupWriter]:
    """A file that appears under its name when it is whole and on disk, and not before."""
    if path.exists() and not overwrite:
        raise Conflict(f"{path} already exists: choose another name, or use --force to replace it")
    # A name of its own: another backup to the same place must neither take this file away nor pass it off as its own.
    partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}.partial")
    with _on_disk(path):
        partial.touch(PRIVATE, exist_ok=False)
    try:
        with _on_disk(path), partial.open("r+b") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
                yield BackupWriter(path, archive)
            file.flush()
            os.fsync(file.fileno())
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _on_disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise Misconfigured(f"{path} cannot be written: {problem.strerror or problem}") from problem


class BackupReader:
    """Reads a file that `reading` has found to be whole."""

    def __init__(self, archive: zipfile.ZipFile, manifest: Manifest) -> None:
        self._archive = archive
        self.manifest = manifest

    def rows(self, table: str) -> Iterator[bytes]:
        """The rows of a table, some at a time."""
        with self._archive.open(_member(table)) as member:
            while data := member.read(_CHUNK):
                yield data


@contextmanager
def reading(path: Path) -> Iterator[BackupReader]:
    """A backup that was read once from end to end and is what was written."""
    try:
        file = path.open("rb")
    except OSError as problem:
        raise Invalid(f"{path} cannot be read: {problem.strerror or problem}") from problem
    with file:
        try:
            archive = zipfile.ZipFile(file)
            # No more of the manifest than one can be: a few kilobytes of an archive may unpack to gigabytes.
            with archive.open(MANIFEST) as member:
                content = member.read(MAX_MANIFEST_BYTES + 1)
            if len(content) > MAX_MANIFEST_BYTES:
                raise ValueError("the manifest is too large")
            reader = BackupReader(archive, Manifest.model_validate_json(content))
            if reader.manifest.format != FORMAT:
                raise Misconfigured(
                    f"{path} has backup format {reader.manifest.format}, but this version of Recollect reads {FORMAT}: "
                    f"use Recollect {reader.manifest.recollect}, which wrote it, or a newer version"
                )
            whole = all(_digest(reader, table.name) == table.sha256 for table in reader.manifest.tables)
        # What zipfile raises on damaged bytes depends on where they are.
        except (zipfile.BadZipFile, zlib.error, ValidationError, EOFError, KeyError, ValueError, OSError) as problem:
            raise _damaged(path) from problem
        except (NotImplementedError, RuntimeError) as problem:
            raise _damaged(path) from problem
        if not whole:
            raise _damaged(path)
        yield reader


def _damaged(path: Path) -> Invalid:
    return Invalid(f"{path} is not a complete Recollect backup: it is damaged, truncated or not a backup")


def _digest(reader: BackupReader, table: str) -> str:
    """Of a table whose rows are no longer than rows can be: the database holds each of them in memory whole."""
    digest = hashlib.sha256()
    row = 0
    for data in reader.rows(table):
        digest.update(data)
        last = data.rfind(b"\n")
        row = row + len(data) if last < 0 else len(data) - last - 1
        if row > MAX_ROW_BYTES:
            raise ValueError("a row is too large")
    return digest.hexdigest()


def _member(table: str) -> str:
    return f"tables/{table}"
