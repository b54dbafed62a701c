"""The embedded server's home: its layout, and what stays private to the account that owns it."""

import contextlib
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from recollect.errors import Misconfigured
from recollect.storage.embedded.account import Account, account_for
from recollect.storage.embedded.paths import descend, may_enter, without_links

# The longest socket path is 103 bytes on macOS and 107 on Linux; PostgreSQL adds "/.s.PGSQL.5432" to the directory.
_LONGEST_SOCKET_DIRECTORY = 85
_LEASES = "lease.lock"
_MOUNT_POINT_LITTER = "lost+found"
_ELSEWHERE = "Set RECOLLECT_DATA_DIR to a directory elsewhere, or RECOLLECT_DATABASE_URL to use another server."


@dataclass(frozen=True, slots=True)
class Home:
    """Paths of one embedded server."""

    path: Path
    account: Account

    @property
    def data(self) -> Path:
        """PostgreSQL's data directory."""
        return self.path / "data"

    @property
    def log(self) -> Path:
        """What the server and its supervisor have to say."""
        return self.path / "postgres.log"

    @property
    def sockets(self) -> Path:
        """The socket's directory; a short one elsewhere when the home's own path is too long for a socket."""
        here = self.path / "run"
        if len(os.fsencode(here)) <= _LONGEST_SOCKET_DIRECTORY:
            return here
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return Path("/tmp") / f"recollect-{self.account.uid}-{digest}"  # noqa: S108  # private_directory verifies it

    def open_leases(self) -> int:
        """The file that every client holds a shared lock on; it also marks the directory as a home."""
        return self.open(self.path / _LEASES)

    def open(self, path: Path, flags: int = 0) -> int:
        """Open a file of ours for reading and writing; a link or a pipe planted in its place is refused."""
        with self.account.files():
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise Misconfigured(f"{path} is in the way: it is not a file. Remove it. {_ELSEWHERE}")
        return descriptor

    def write(self, path: Path, text: str) -> None:
        """Replace a file of ours in one step."""
        partial = path.with_name(path.name + ".partial")
        with self.account.files():
            partial.unlink(missing_ok=True)
            with os.fdopen(self.open(partial, os.O_EXCL), "w", encoding="utf-8") as file:
                file.write(text)
            partial.replace(path)


def prepare(path: Path) -> Home:
    """Make the home, or take the one that is there, and keep everybody else out of it."""
    try:
        path = without_links(path)
        account = account_for(path)
        # Directories on the way are not ours, so they are never opened up: say which one is closed.
        for parent in reversed(path.parents) if account.is_another else ():
            if parent.exists() and not may_enter(parent.stat(), account.uid, account.gid):
                raise Misconfigured(
                    f"PostgreSQL does not run as root, and the account it runs as ({account.name}) cannot access "
                    f"{parent}, a parent directory of {path}. {_ELSEWHERE}"
                )
        with descend(path, 0o755 if account.is_another else 0o700) as descriptor:
            # Changing the mode or the owner of somebody's directory full of other things would be a disaster.
            entries = set(os.listdir(descriptor)) - {_MOUNT_POINT_LITTER}  # noqa: PTH208  # no path can stand for it
            if entries and _LEASES not in entries:
                raise Misconfigured(f"{path} contains other files and is not a Recollect data directory. {_ELSEWHERE}")
            _close_to_others(path, descriptor, account)
    except OSError as problem:
        raise Misconfigured(f"The embedded server cannot use {path}: {problem.strerror}. {_ELSEWHERE}") from problem
    return Home(path, account)


def private_directory(path: Path, account: Account) -> None:
    """Make a directory that only the account may enter; refuse a link or somebody else's directory in its place."""
    with account.files():
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as problem:
            raise Misconfigured(f"{path} is in the way: {problem.strerror}. Remove it. {_ELSEWHERE}") from problem
    try:
        _close_to_others(path, descriptor, account)
    finally:
        os.close(descriptor)


def _close_to_others(path: Path, descriptor: int, account: Account) -> None:
    owner = os.fstat(descriptor).st_uid
    if owner not in (account.uid, os.geteuid()):
        raise Misconfigured(f"{path} belongs to another user. {_ELSEWHERE}")
    if owner != account.uid:
        os.fchown(descriptor, account.uid, account.gid)
    os.fchmod(descriptor, 0o700)
