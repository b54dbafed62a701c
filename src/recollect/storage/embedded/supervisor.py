"""The embedded server's supervisor: runs it while any process holds a lease, and stops it after the last one.

A process of its own, on the standard library alone: `python -I -S supervisor.py SUPERVISION LEASES POSTGRES DATA
SOCKETS [UID GID]`; the first two are open descriptors. It inherits the lock on SUPERVISION, so there is exactly one.
Every client holds a shared lock on LEASES, so getting it alone means that the last client is gone, however it went.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

BUSY_PATIENCE_SECONDS = 30.0
_FAILURE_PATIENCE_SECONDS = 2.0
_FIRST_DELAY_SECONDS = 0.05
_LONGEST_DELAY_SECONDS = 1.0
_WATCH_SECONDS = 0.1
# Fast shutdown with a checkpoint; then without one, which means recovery at the next start; then by force.
_WAYS_TO_STOP = ((signal.SIGINT, 60.0), (signal.SIGQUIT, 15.0), (signal.SIGKILL, 15.0))
STOPPING_SECONDS = sum(limit for _, limit in _WAYS_TO_STOP)
# What PostgreSQL says while processes of a killed server are still ending: worth waiting for, unlike other failures.
_STILL_BUSY = (b"is still in use", b"already exists")
_STATUS_LINE = 7


class Server:
    """A running postmaster: our child, or one that outlived the supervisor which started it."""

    def __init__(self, pid: int, data: Path, child: "subprocess.Popen[bytes] | None" = None) -> None:
        self.pid = pid
        self._data = data
        self._child = child

    def wait(self) -> None:
        """Until it has ended."""
        if self._child is not None:
            self._child.wait()
            return
        while serves(self.pid, self._data):
            time.sleep(_WATCH_SECONDS)

    def send(self, number: signal.Signals) -> None:
        """Signal it, if it is still there."""
        if self._child is not None:
            self._child.send_signal(number)
        elif serves(self.pid, self._data):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def came_up(self) -> bool:
        """Whether it had got as far as serving, judged after its end: then its end is no reason to give up."""
        if self._child is None or self._child.returncode == 0:
            return True
        lines = _postmaster_file(self._data)
        return lines[:1] == [str(self.pid)] and lines[_STATUS_LINE : _STATUS_LINE + 1] == ["ready"]


class Keeper:
    """Keeps one server running until told to stop."""

    def __init__(self, postgres: Path, data: Path, sockets: Path) -> None:
        self._postgres = postgres
        self._data = data
        self._sockets = sockets
        self._stopping = threading.Event()
        self._guard = threading.Lock()
        self._server: Server | None = None
        self._log_before = 0

    def run(self) -> None:
        """Adopt or launch, and launch again after an unexpected end; returns when it makes no sense any more."""
        delay, failing_since = _FIRST_DELAY_SECONDS, time.monotonic()
        while server := self._adopt_or_launch():
            server.wait()
            if server.came_up():
                delay, failing_since = _FIRST_DELAY_SECONDS, time.monotonic()
            else:
                said = os.pread(sys.stderr.fileno(), 65536, self._log_before)
                busy = any(words in said for words in _STILL_BUSY)
                patience = BUSY_PATIENCE_SECONDS if busy else _FAILURE_PATIENCE_SECONDS
                if time.monotonic() - failing_since > patience:
                    say("the server does not start; giving up")
                    return
            if not self._stopping.is_set():
                say(f"the server (PID {server.pid}) exited; restarting it")
            self._stopping.wait(delay)
            delay = min(delay * 2, _LONGEST_DELAY_SECONDS)

    def stop(self, running: threading.Thread) -> None:
        """End the server and wait until it is down."""
        with self._guard:
            self._stopping.set()
        for number, limit in _WAYS_TO_STOP:
            if self._server is not None:
                self._server.send(number)
            running.join(limit)
            if not running.is_alive():
                return
            say(f"the server is still running {limit:.0f} s after {number.name}")

    def _adopt_or_launch(self) -> Server | None:
        with self._guard:
            if self._stopping.is_set():
                return None
            lines = _postmaster_file(self._data)
            left_behind = int(lines[0]) if lines and lines[0].isdigit() else None
            if left_behind is not None and serves(left_behind, self._data):
                self._server = Server(left_behind, self._data)
            else:
                self._server = self._launch(left_behind)
            return self._server

    def _launch(self, left_behind: int | None) -> Server:
        # A server killed in the instant between making its lock file and filling it leaves one that blocks every start.
        for path in (self._data / "postmaster.pid", *self._sockets.glob(".s.PGSQL.*.lock")):
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_size == 0:
                    path.unlink()
        environment = dict(os.environ)
        if left_behind is not None:
            # The number in the lock file belongs to a zombie or, after a reboot, to somebody else. PostgreSQL would
            # take either for a live server, except where it is told that the number is its own ancestor's. Its
            # second check, that no process uses the old shared memory, stays in force.
            environment["PG_GRANDPARENT_PID"] = str(left_behind)
            # Processes of a killed server hold its memory until they notice, and one that is busy with a query does
            # not. Elsewhere than on Linux they are waited for.
            processes = (int(process.name) for process in Path("/proc").glob("[1-9]*"))
            for orphan in (process for process in processes if serves(process, self._data)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(orphan, signal.SIGQUIT)
        self._log_before = os.fstat(sys.stderr.fileno()).st_size
        child = subprocess.Popen([self._postgres, "-D", self._data], env=environment, start_new_session=True)
        return Server(child.pid, self._data, child)


def serves(pid: int, data: Path) -> bool:
    """Whether this is a live process of the server on `data`; a zombie is not."""
    if sys.platform == "linux":
        process = Path(f"/proc/{pid}")
        try:
            # Every server process stays in its data directory; a zombie is nowhere.
            return (process / "comm").read_text() == "postgres\n" and (process / "cwd").samefile(data)
        except OSError:
            return False
    shown = subprocess.run(["ps", "-p", str(pid), "-o", "stat=,command="], capture_output=True, text=True, check=False)
    state, _, command = shown.stdout.strip().partition(" ")
    return not state.startswith("Z") and str(data) in command


def say(words: str) -> None:
    """A line in the server's log."""
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    sys.stderr.write(f"{moment} UTC [{os.getpid()}] supervisor: {words}\n")
    sys.stderr.flush()


def _postmaster_file(data: Path) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return [line.strip() for line in (data / "postmaster.pid").read_text().splitlines()]
    return []


def main(supervision: str, leases: str, postgres: str, data: str, sockets: str, *account: str) -> None:
    """Supervise until the last lease is gone, somebody says SIGTERM, or the server cannot be kept up."""
    if os.fork():
        os._exit(0)  # the client reaps this one at once; the child is orphaned
    os.umask(0o077)
    if account:
        uid, gid = map(int, account)
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    reasons, reason = os.pipe()
    keeper = Keeper(Path(postgres), Path(data), Path(sockets))

    def keep() -> None:
        try:
            keeper.run()
        finally:
            os.write(reason, b"server")

    def wait_for_last_lease() -> None:
        fcntl.flock(int(leases), fcntl.LOCK_EX)
        os.write(reason, b"leases")

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.write(reason, b"signal"))
    keeping = threading.Thread(target=keep)
    keeping.start()
    threading.Thread(target=wait_for_last_lease, daemon=True).start()
    os.read(reasons, 1)
    keeper.stop(keeping)
    # A client that waits for the lease must not find us still supervising once it has it.
    os.close(int(supervision))


if __name__ == "__main__":
    main(*sys.argv[1:])
