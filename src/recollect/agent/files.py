"""Files that outlive crashes and other processes: whole or not at all, one writer at a time."""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from recollect.agent.faults import FileFault

PATIENCE_SECONDS = 10.0
_POLL_SECONDS = 0.005


def read_text(path: Path) -> str:
    """The text of a file as it is, line ends included; empty if there is none."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as problem:
        raise FileFault(f"{path} is not UTF-8 text: save it as UTF-8.") from problem
    except OSError as problem:
        raise FileFault(f"{path} cannot be read: {problem.strerror}.") from problem


def replace_text(path: Path, text: str) -> None:
    """Put a new text in the place of the old one; a crash at any moment leaves one of the two, whole."""
    try:
        # A link keeps pointing where its owner pointed it.
        _replace(path.resolve(), text.encode())
    except OSError as problem:
        raise FileFault(f"{path} cannot be written: {problem.strerror}.") from problem


def _replace(path: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if path.exists():
                os.fchmod(descriptor, path.stat().st_mode & 0o7777)
            os.fsync(descriptor)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable, which the sync of a file does not."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def private_directory(path: Path) -> Path:
    """A directory for this user alone; what a person has opened to others stays as it is."""
    try:
        if not path.is_dir():
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_directory(path.parent)
    except OSError as problem:
        raise FileFault(f"{path} cannot be made a folder: {problem.strerror}.") from problem
    return path


@contextlib.contextmanager
def locked(path: Path, patience: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Hold a lock file alone. The system gives the lock back when its holder ends, however it ends."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise FileFault(f"{path} cannot be opened: {problem.strerror}.") from problem
    try:
        take_lock(descriptor, path, patience)
        yield
    finally:
        os.close(descriptor)


def take_lock(descriptor: int, path: Path, patience: float = PATIENCE_SECONDS) -> None:
    """Poll for the lock: a thread asleep inside flock could not be interrupted, and would keep the process alive."""
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise FileFault(
                    f"{path} is held by another process for more than {patience:.0f} seconds: try again."
                ) from None
            time.sleep(_POLL_SECONDS)
        else:
            return
