"""The account that runs the embedded server and owns its files: the caller, or for root an unprivileged one."""

import contextlib
import ctypes
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recollect.errors import Misconfigured

# Accounts that root hands the server to, the first that exists. The administrator makes the first one.
DEDICATED = "recollect"
SHARED = "nobody"

# Linux alone changes the rights to files for one thread: os.seteuid() would change those of the whole process.
_LIBC = ctypes.CDLL(None)


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

    @contextlib.contextmanager
    def files(self) -> Iterator[None]:
        """Open, make and remove files with this account's rights, in this thread alone.

        The owner of the home can put a link in any place of it at any moment. With the account's rights, root reaches
        little through such a link that the account could not reach itself: what root's groups may, and no more.
        """
        if not self.is_another:
            yield
            return
        group, user = _LIBC.setfsgid(self.gid), _LIBC.setfsuid(self.uid)
        try:
            if _LIBC.setfsuid(-1) != self.uid:
                raise Misconfigured(f"Root cannot act as account {self.name} here. Run Recollect as an ordinary user.")
            yield
        finally:
            _LIBC.setfsuid(user)
            _LIBC.setfsgid(group)

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


def account_for(path: Path) -> Account:
    """The caller. As root: the owner of the home, else `recollect` if the administrator made it, else `nobody`."""
    caller = os.geteuid()
    if caller != 0:
        return Account("this user", caller, os.getegid())
    if sys.platform != "linux":
        raise Misconfigured(
            "Root cannot start the embedded server on this system. Run Recollect as an ordinary user, or set "
            "RECOLLECT_DATABASE_URL to use another server."
        )
    with contextlib.suppress(FileNotFoundError):
        state = path.lstat()
        if state.st_uid != 0:
            return Account(f"user {state.st_uid}, the owner of the home", state.st_uid, state.st_gid)
    for name in (DEDICATED, SHARED):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(name, entry.pw_uid, entry.pw_gid)
    raise Misconfigured("PostgreSQL refuses to run as root. Create an account named recollect, or run as another user.")


def is_shared(uid: int) -> bool:
    """Whether other programs run as this account too, so that each of them can reach the server."""
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(SHARED).pw_uid == uid
    return False


def clean_environment() -> dict[str, str]:
    """What server processes inherit: no keys of the caller, no PG* variables, no locale of the terminal."""
    loader = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"} | loader
