"""`recollect` commands as processes of their own, forked from one that has imported what they need.

Most of the time of a short command is imports, and the suite runs hundreds. What only a new interpreter with pipes
shows (its start and end, a child that keeps a pipe open) is seen by tests/programs, by the commands of the docs, which
also start the embedded server, and by every server that a test starts.
"""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path

RECOLLECT = Path(sys.executable).with_name("recollect")


class Forks:
    """A process that forks a command for every line it reads; see tests/command_forks.py."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.command_forks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )

    def ask(self, **request: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            return int(self._process.stdout.readline())


@cache
def forks() -> Forks:
    return Forks()


def recollect(
    *arguments: object, env: dict[str, str] | None = None, given: str = "", timeout: float = 60
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end, as `subprocess.run` does, with a text on its standard input."""
    done = recollect_bytes(*arguments, env=env, given=given.encode(), timeout=timeout)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def recollect_bytes(
    *arguments: object, env: dict[str, str] | None = None, given: bytes = b"", timeout: float = 60
) -> "subprocess.CompletedProcess[bytes]":
    command = [str(RECOLLECT), *map(str, arguments)]
    environment = dict(os.environ if env is None else env)
    if not hasattr(os, "pidfd_open"):
        return subprocess.run(command, capture_output=True, timeout=timeout, env=environment, input=given)
    with tempfile.TemporaryDirectory(prefix="recollect-command-") as name:
        folder = Path(name)
        (folder / "stdin").write_bytes(given)
        pid = forks().ask(run=command, env=environment, cwd=str(Path.cwd()), folder=name)
        ended = os.pidfd_open(pid)
        try:
            if not select.select([ended], [], [], timeout)[0]:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(command, timeout)
        finally:
            os.close(ended)
            code = forks().ask(wait=pid)
        said = [(folder / stream).read_bytes() for stream in ("stdout", "stderr")]
    return subprocess.CompletedProcess(command, code, *said)
