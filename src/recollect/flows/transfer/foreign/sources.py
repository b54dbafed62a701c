"""Where foreign files come from: one file, a folder, or an archive, which is read without unpacking it."""

import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from recollect.errors import Invalid
from recollect.flows.transfer.import_report import Progress

# Nothing that people wrote or programs logged packs better than this; an archive that does is made to harm.
MAX_PACKING_RATIO = 200
# Of a small file, such a ratio is no sign of anything.
SMALL_BYTES = 16 * 1024 * 1024
MAX_FILE_BYTES = 64 * 1024**3
MAX_FILES = 1_000_000

_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)


@dataclass(frozen=True, slots=True)
class Member:
    """One file: its name below the folder or in the archive, its length, and when it was changed if that is known."""

    name: str
    size: int
    changed_at: float | None
    open: Callable[[], IO[bytes]]

    @property
    def basename(self) -> str:
        """The last part of its name."""
        return self.name.rpartition("/")[2]


class Source:
    """What the user named."""

    def __init__(self, path: Path, members: tuple[Member, ...], *, is_folder: bool) -> None:
        self.path = path
        self.members = members
        self.is_folder = is_folder
        """Whether it holds files besides those that are wanted: a folder or an archive."""

    @property
    def name(self) -> str:
        """What it is called, wherever it is."""
        return self.path.resolve().name


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """The files at a path; whatever cannot be read of them is Invalid."""
    try:
        if path.is_dir():
            yield Source(path, tuple(_in_folder(path)), is_folder=True)
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                yield Source(path, tuple(_in_archive(archive)), is_folder=True)
        else:
            yield Source(path, (_member(path, path.name, path.stat()),), is_folder=False)
    except OSError as problem:
        raise Invalid(f"{problem.filename or path} cannot be read: {problem.strerror or problem}") from problem
    except _DAMAGE as problem:
        raise Invalid(f"{path} is a damaged archive, or one of an unknown kind: {problem}") from problem


class Broken(Invalid):
    """From some place on, nothing can be read of a file."""


class Reading:
    """A file that tells how much of it was read; raises Broken where it cannot be read."""

    def __init__(self, file: IO[bytes], progress: Progress) -> None:
        self._file = file
        self._progress = progress

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        return self._counted(self._file.read, size)

    def readline(self, size: int = -1) -> bytes:
        """The next line, or so much of it."""
        return self._counted(self._file.readline, size)

    def _counted(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            content = read(size)
        except (OSError, *_DAMAGE) as problem:
            raise Broken(f"the file is damaged or cannot be read: {problem}") from problem
        self._progress(len(content))
        return content


def _in_folder(folder: Path) -> Iterator[Member]:
    """Every file of a folder in the order of names, but for hidden ones; links are not followed."""
    count = 0
    for place, folders, files in os.walk(folder, onerror=_fail):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place, name)
            state = path.lstat()
            if name.startswith(".") or not stat.S_ISREG(state.st_mode):
                continue
            count += 1
            if count > MAX_FILES:
                raise Invalid(f"{folder} has more than {MAX_FILES:,} files: import its folders one by one")
            # A name may be in any encoding.
            name = os.fsencode(path.relative_to(folder).as_posix()).decode("utf-8", "replace")
            yield _member(path, name, state)


def _fail(problem: OSError) -> None:
    raise problem


def _member(path: Path, name: str, state: os.stat_result) -> Member:
    return Member(name, state.st_size, state.st_mtime, lambda: path.open("rb"))


def _in_archive(archive: zipfile.ZipFile) -> Iterator[Member]:
    """Every file of an archive that can be trusted."""
    for entry in archive.infolist():
        if entry.is_dir():
            continue
        if entry.flag_bits & 1:
            raise Invalid(f"{entry.filename} in the archive is encrypted: unpack it and import the folder")
        if entry.file_size > MAX_FILE_BYTES or (
            entry.file_size > SMALL_BYTES and entry.file_size > MAX_PACKING_RATIO * entry.compress_size
        ):
            raise Invalid(
                f"{entry.filename} in the archive would unpack to {entry.file_size // 2**20:,} MB from "
                f"{entry.compress_size // 2**20:,} MB, as a harmful archive does: if you trust it, unpack it and "
                "import the folder"
            )
        # Reads no more than the length that the archive names.
        yield Member(entry.filename, entry.file_size, None, partial(archive.open, entry))
