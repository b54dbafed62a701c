"""The embedded PostgreSQL: one server per home, shared by every process that holds a lease on it."""

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from recollect.errors import Misconfigured, Unavailable
from recollect.storage.embedded.address import Address

if TYPE_CHECKING:
    from recollect.storage.embedded.locks import FileLock

__all__ = ["Address", "Lease", "default_home", "start"]


class Lease:
    """Keeps the server running; it stops after the last lease, also when the process that held it was killed."""

    def __init__(self, lock: "FileLock", connection: Address, superuser: Address) -> None:
        self._lock = lock
        self.connection = connection
        self.superuser = superuser

    def release(self) -> None:
        """Let the server stop if no other process needs it; does not wait for that. A second call does nothing."""
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def start(home: Path) -> Lease:
    """A lease on the server in `home`, which is made, started or recovered as needed.

    It blocks and runs an event loop of its own, so from async code call it in a thread. A forked child has no part in
    its parent's leases and takes its own.
    """
    if sys.platform == "win32":
        raise Misconfigured("The embedded server does not run on Windows. Set RECOLLECT_DATABASE_URL to use a server.")
    # Here and not above, because these need a POSIX system to be imported, and a client of another server needs none.
    from recollect.storage.embedded import home as embedded_home
    from recollect.storage.embedded import server as embedded_server

    place = embedded_home.prepare(home)
    with ExitStack() as unless_it_fails:
        try:
            lock = unless_it_fails.enter_context(embedded_server.take_lease(place))
            embedded_server.ensure_running(place)
        except OSError as problem:
            raise Unavailable(f"The embedded server in {place.path} could not be started: {problem}") from problem
        unless_it_fails.pop_all()
    return Lease(lock, embedded_server.ordinary(place), embedded_server.superuser(place))


def default_home() -> Path:
    """Where the server lives unless RECOLLECT_DATA_DIR says otherwise."""
    if sys.platform != "win32" and os.geteuid() == 0:
        return Path("/var/lib/recollect")
    chosen = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (chosen if chosen.is_absolute() else Path.home() / ".local" / "share") / "recollect"
