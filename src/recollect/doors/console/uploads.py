"""Files that browsers send, kept on disk for work that outlives the request."""

import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from starlette.datastructures import FormData, UploadFile

from recollect import tasks
from recollect.errors import Unavailable

# What programs call their exports; the ending tells the format of some.
_UNUSUAL = re.compile(r"[^\w. ()-]+")
MAX_NAME_BYTES = 100

# Import deletes its folder, unless its process was killed. None takes so long.
PREFIX = "recollect-import-"
LEFT_SECONDS = 86_400.0


@asynccontextmanager
async def received(form: Awaitable[FormData]) -> AsyncIterator[FormData]:
    """The fields of a form that is being sent; a large file of it goes to disk."""
    with _on_disk():
        fields = await form
    try:
        yield fields
    finally:
        await fields.close()


async def kept(file: UploadFile) -> Path:
    """A copy under its own name, in a folder of its own that only we can read; whoever takes it deletes the folder."""
    name = _UNUSUAL.sub("_", (file.filename or "").replace("\\", "/").rpartition("/")[2]).strip(". ")
    name = name.encode()[-MAX_NAME_BYTES:].decode(errors="ignore")
    with _on_disk():
        await tasks.in_thread(_sweep)
        path = Path(tempfile.mkdtemp(prefix=PREFIX)) / (name or "file")
        try:
            await tasks.in_thread(_copy, file, path)
        except BaseException:
            shutil.rmtree(path.parent, ignore_errors=True)
            raise
    return path


@contextmanager
def _on_disk() -> Iterator[None]:
    """Tell of a disk that is full, or cannot be written."""
    try:
        yield
    except OSError as problem:
        raise Unavailable(
            f"The server could not keep the file: {problem.strerror or problem}. Ask whoever runs the server to look "
            "at its directory for temporary files, which TMPDIR names."
        ) from problem


def _copy(file: UploadFile, path: Path) -> None:
    with path.open("wb") as copy:
        shutil.copyfileobj(file.file, copy)


def _sweep() -> None:
    """Delete our folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            found = folder.lstat()
        except FileNotFoundError:
            continue
        is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        if is_ours and found.st_mtime < time.time() - LEFT_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
