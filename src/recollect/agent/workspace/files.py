"""Files of a workspace: written atomically, by one writer at a time, and never through a link to another file.

A workspace may come from somebody else. Every file is opened by descriptor, folder by folder below the workspace: links
are not followed, and devices, pipes and files of any size are refused instead of read.
"""

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from recollect.agent.faults import FileFault

PATIENCE_SECONDS = 10.0
MAX_BYTES = 1024 * 1024
_POLL_SECONDS = 0.005

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without waiting: the other end of a pipe may never come.
_PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOT_PLAIN = {errno.ELOOP: "it is a link", errno.ENXIO: "it is not a regular file"}


def read_text(root: Path, *names: str) -> str:
    """The text of a file below a folder as it is, line ends included; empty if there is none."""
    path = root.joinpath(*names)
    try:
        with opened(root, *names) as descriptor:
            content = bytearray()
            # Up to one byte more than is allowed.
            while len(content) <= MAX_BYTES and (piece := os.read(descriptor, MAX_BYTES + 1 - len(content))):
                content += piece
    except FileNotFoundError:
        return ""
    except OSError as problem:
        raise unreadable(path, problem) from problem
    if len(content) > MAX_BYTES:
        raise FileFault(f"{path} is larger than {MAX_BYTES:,} bytes: shorten it")
    try:
        return content.decode()
    except UnicodeDecodeError as problem:
        raise FileFault(f"{path} is not UTF-8 text: save it as UTF-8") from problem


def replace_text(root: Path, name: str, text: str) -> None:
    """Put a new text in the place of the old one; a crash at any moment leaves one of the two, whole."""
    try:
        with folder(root) as place:
            _replace(place, name, text.encode())
    except OSError as problem:
        raise unwritable(root / name, problem) from problem


@contextlib.contextmanager
def opened(root: Path, *names: str, flags: int = os.O_RDONLY) -> Iterator[int]:
    """A descriptor of a regular file below a folder; raises OSError for anything else."""
    with folder(root, *names[:-1]) as place:
        descriptor = os.open(names[-1], flags | _PLAIN, 0o600, dir_fd=place)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def folder(root: Path, *names: str) -> Iterator[int]:
    """A descriptor of a folder. The root may be a link, because its user names it; nothing below it may."""
    descriptor = os.open(root, _FOLDER)
    try:
        for name in names:
            inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def unreadable(path: Path, problem: OSError) -> FileFault:
    """Why a file cannot be read."""
    return FileFault(f"{path} cannot be read: {_why(problem)}")


def unwritable(path: Path, problem: OSError) -> FileFault:
    """Why a file cannot be written."""
    return FileFault(f"{path} cannot be written: {_why(problem)}")


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable, which the sync of a file does not."""
    with folder(path) as descriptor:
        os.fsync(descriptor)


def private_directory(path: Path) -> Path:
    """A directory for this user alone; what a person has opened to others stays as it is."""
    try:
        if not path.is_dir():
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_directory(path.parent)
    except OSError as problem:
        raise FileFault(f"Cannot create the folder {path}: {problem.strerror}") from problem
    return path


@contextlib.contextmanager
def locked(root: Path, name: str, patience: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Hold a lock file alone. The system gives the lock back when its holder ends, however it ends."""
    with contextlib.ExitStack() as stack:
        try:
            descriptor = stack.enter_context(opened(root, name, flags=os.O_RDWR | os.O_CREAT))
        except OSError as problem:
            raise FileFault(f"{root / name} cannot be opened: {_why(problem)}") from problem
        take_lock(descriptor, root / name, patience)
        yield


def take_lock(descriptor: int, path: Path, patience: float = PATIENCE_SECONDS) -> None:
    """Poll for the lock: a thread asleep inside flock could not be interrupted, and would keep the process alive."""
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise FileFault(
                    f"{path} has been locked by another process for more than {patience:.0f} seconds: try again"
                ) from None
            time.sleep(_POLL_SECONDS)
        else:
            return


def _replace(place: int, name: str, content: bytes) -> None:
    new = f".{name}.{secrets.token_hex(8)}.new"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, 0o600, dir_fd=place)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(descriptor, stat.S_IMODE(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode))
            os.fsync(descriptor)
        os.rename(new, name, src_dir_fd=place, dst_dir_fd=place)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new, dir_fd=place)
        raise
    os.fsync(place)


def _why(problem: OSError) -> str:
    """A folder that is a link is no folder to the system, which says so of files, too."""
    return _NOT_PLAIN.get(problem.errno or 0) or problem.strerror or type(problem).__name__
