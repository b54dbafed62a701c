"""The path to the embedded server's home, walked by descriptor, so that no directory can be swapped for a link."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from recollect.errors import Misconfigured

_MOST_LINKS = 40
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Parents may be closed to readers and still let everybody through.
_PASSING = _DIRECTORY | getattr(os, "O_PATH", 0)


def without_links(path: Path) -> Path:
    """The same place by a path without links; a link that another user made, as anybody may in /tmp, is refused."""
    path = Path(os.path.normpath(path.expanduser().absolute()))
    for _ in range(_MOST_LINKS):
        link = next((part for part in reversed([path, *path.parents]) if part.is_symlink()), None)
        if link is None:
            return path
        if link.lstat().st_uid not in (0, os.geteuid()):
            raise Misconfigured(f"{link} is a link of another user. Set RECOLLECT_DATA_DIR to a real directory.")
        target = Path(os.path.normpath(link.parent / link.readlink()))
        path = target / path.relative_to(link)
    raise Misconfigured(f"{path} has too many levels of links. Set RECOLLECT_DATA_DIR to a real directory.")


@contextlib.contextmanager
def descend(path: Path, mode_of_parents: int) -> Iterator[int]:
    """A descriptor of the directory; what is missing on the way is made, and no link is followed."""
    descriptor = os.open(path.anchor, _PASSING)
    try:
        for part in path.parent.parts[1:]:
            descriptor = _enter(descriptor, part, mode_of_parents, _PASSING)
        descriptor = _enter(descriptor, path.name, 0o700, _DIRECTORY)
        yield descriptor
    finally:
        os.close(descriptor)


def _enter(parent: int, name: str, mode: int, flags: int) -> int:
    """Go one step down, and let go of the parent unless that fails."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=parent)
        # Whatever the caller's umask is: the account must pass through.
        made = os.open(name, _DIRECTORY, dir_fd=parent)
        os.fchmod(made, mode)
        os.close(made)
    descriptor = os.open(name, flags, dir_fd=parent)
    os.close(parent)
    return descriptor


def may_enter(state: os.stat_result, uid: int, gid: int) -> bool:
    """Whether an account may pass through a directory."""
    if state.st_uid == uid:
        return bool(state.st_mode & stat.S_IXUSR)
    if state.st_gid == gid:
        return bool(state.st_mode & stat.S_IXGRP)
    return bool(state.st_mode & stat.S_IXOTH)
