"""The embedded server's home: its layout, the account that owns it, and what stays private to that account."""

import contextlib
import hashlib
import os
import pwd
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from recollect.errors import Misconfigured

# The longest socket path is 103 bytes on macOS and 107 on Linux; PostgreSQL adds "/.s.PGSQL.5432" to the directory.
_LONGEST_SOCKET_DIRECTORY = 85
_LEASES = "lease.lock"
_MOUNT_POINT_LITTER = "lost+found"
_ELSEWHERE = "Set RECOLLECT_DATA_DIR to a directory elsewhere, or RECOLLECT_DATABASE_URL to use another server."


@dataclass(frozen=True, slots=True)
class Account:
    """Who runs the server: the caller, or as root an unprivileged account, since PostgreSQL refuses to run as root."""

    name: str
    uid: int
    gid: int

    @property
    def is_another(self) -> bool:
        """Whether processes must change to this account."""
        return self.uid != os.geteuid()

    def run(self, *command: str | Path) -> "subprocess.CompletedProcess[str]":
        """Run a program of PostgreSQL as this account, from a directory that any account may be in."""
        return subprocess.run(
            [str(part) for part in command],
            cwd="/",
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            user=self.uid if self.is_another else None,
            group=self.gid if self.is_another else None,
            extra_groups=[] if self.is_another else None,
        )


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
        """Open a file of ours for reading and writing; a link planted in its place is not followed."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
        state = os.fstat(descriptor)
        # Only what root just made changes hands; a second name would mean that the file is something else as well.
        if self.account.is_another and state.st_uid == os.geteuid() and state.st_nlink == 1:
            os.fchown(descriptor, self.account.uid, self.account.gid)
        return descriptor

    def write(self, path: Path, text: str) -> None:
        """Replace a file of ours in one step."""
        partial = path.with_name(path.name + ".partial")
        partial.unlink(missing_ok=True)
        with os.fdopen(self.open(partial, os.O_EXCL), "w", encoding="utf-8") as file:
            file.write(text)
        partial.replace(path)


def prepare(path: Path) -> Home:
    """Make the home, or take the one that is there, and keep everybody else out of it."""
    try:
        path = path.expanduser().resolve()
        account = _account_for(path)
        if account.is_another:
            _require_way_in(path, account)
        _make_parents(path, account)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        _require_home_or_empty(path)
        private_directory(path, account)
    except OSError as problem:
        raise Misconfigured(f"The embedded server cannot use {path}: {problem.strerror}. {_ELSEWHERE}") from problem
    return Home(path, account)


def private_directory(path: Path, account: Account) -> None:
    """Make a directory that only the account may enter; refuse a link or somebody else's directory in its place."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as problem:
        raise Misconfigured(f"{path} is in the way: {problem.strerror}. Remove it. {_ELSEWHERE}") from problem
    try:
        owner = os.fstat(descriptor).st_uid
        if owner not in (account.uid, os.geteuid()):
            raise Misconfigured(f"{path} belongs to another user. {_ELSEWHERE}")
        if owner != account.uid:
            os.fchown(descriptor, account.uid, account.gid)
        os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)


def clean_environment() -> dict[str, str]:
    """What server processes inherit: no keys of the caller, no PG* variables, no locale of the terminal."""
    loader = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"} | loader


def _account_for(path: Path) -> Account:
    """The caller. As root: whoever owns the home, else `recollect` if the administrator made it, else `nobody`."""
    caller = os.geteuid()
    if caller != 0:
        return Account("this user", caller, os.getegid())
    if path.exists() and (state := path.stat()).st_uid != 0:
        return Account(f"user {state.st_uid}, the owner of the home", state.st_uid, state.st_gid)
    for name in ("recollect", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(name, entry.pw_uid, entry.pw_gid)
    raise Misconfigured("PostgreSQL refuses to run as root. Make an account named recollect, or run as another user.")


def _require_way_in(path: Path, account: Account) -> None:
    """Directories on the way are not ours, so they are never opened up: say which one is closed."""
    for parent in reversed(path.parents):
        if parent.exists() and not _may_enter(parent.stat(), account):
            raise Misconfigured(
                f"PostgreSQL does not run as root, and the account it runs as ({account.name}) may not enter {parent}, "
                f"which leads to {path}. {_ELSEWHERE}"
            )


def _may_enter(state: os.stat_result, account: Account) -> bool:
    if state.st_uid == account.uid:
        return bool(state.st_mode & stat.S_IXUSR)
    if state.st_gid == account.gid:
        return bool(state.st_mode & stat.S_IXGRP)
    return bool(state.st_mode & stat.S_IXOTH)


def _make_parents(path: Path, account: Account) -> None:
    """Make what is missing on the way; the account must pass through it, whatever the caller's umask is."""
    mode = 0o755 if account.is_another else 0o700
    for parent in reversed(path.parents):
        if not parent.exists():
            with contextlib.suppress(FileExistsError):
                parent.mkdir(mode=mode)
                parent.chmod(mode)


def _require_home_or_empty(path: Path) -> None:
    """Changing the mode or the owner of somebody's directory full of other things would be a disaster."""
    entries = {entry.name for entry in path.iterdir()} - {_MOUNT_POINT_LITTER}
    if entries and _LEASES not in entries:
        raise Misconfigured(f"{path} holds other files and is not a home of Recollect. {_ELSEWHERE}")
