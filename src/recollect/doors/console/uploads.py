"""Files that browsers send, kept on disk for work that outlives the request."""

import re
import shutil
import tempfile
from pathlib import Path

from starlette.datastructures import UploadFile

from recollect import tasks

# What programs call their exports; the ending tells the format of some.
_UNUSUAL = re.compile(r"[^\w. ()-]+")
MAX_NAME_CHARACTERS = 100


async def kept(file: UploadFile) -> Path:
    """A copy under its own name, in a folder of its own that only we can read; whoever takes it deletes the folder."""
    name = _UNUSUAL.sub("_", (file.filename or "").replace("\\", "/").rpartition("/")[2]).strip(". ")
    path = Path(tempfile.mkdtemp(prefix="recollect-import-")) / (name[-MAX_NAME_CHARACTERS:] or "file")
    await tasks.in_thread(_copy, file, path)
    return path


def _copy(file: UploadFile, path: Path) -> None:
    with path.open("wb") as copy:
        shutil.copyfileobj(file.file, copy)
