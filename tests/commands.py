"""`recollect` commands as processes of their own, forked from one that has imported what they need.

Most of the time of a short command is imports, and the suite runs hundreds. What only a new interpreter shows (its
start and end, a child that keeps a pipe open) is seen by tests/programs, and by the commands of the docs, which also
start the embedded server.
"""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

INSTALLED = Path(sys.executable).with_name("recollect")


def _forked() -> "tuple[Path, list[str], subprocess.Popen[bytes] | None]":
    """A program that runs as the command and is forked, and one that runs a module so; both need Linux."""
    if not hasattr(os, "pidfd_open"):
        return INSTALLED, [sys.executable, "-m"], None
    folder = Path(tempfile.mkdtemp(prefix="recollect-commands-"))
    program, module = folder / "recollect", folder / "module"
    launcher = Path(__file__).with_name("command_launcher.py").read_text(encoding="utf-8")
    program.write_text(f"#!{sys.executable} -IS\n{launcher}", encoding="utf-8")
    program.chmod(0o755)
    module.symlink_to(program)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen()
        forks = subprocess.Popen(
            [sys.executable, "-m", "tests.command_forks", str(listener.fileno())],
            stdin=subprocess.PIPE,
            cwd=Path(__file__).parents[1],
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
    return program, [str(module)], forks


# The process that forks ends with this one, when nobody holds the other end of its standard input.
RECOLLECT, MODULE, _FORKS = _forked()


def recollect(
    *arguments: object, env: dict[str, str] | None = None, given: str = "", timeout: float = 60
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end, with a text on its standard input."""
    done = recollect_bytes(*arguments, env=env, given=given.encode(), timeout=timeout)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def recollect_bytes(
    *arguments: object, env: dict[str, str] | None = None, given: bytes = b"", timeout: float = 60
) -> "subprocess.CompletedProcess[bytes]":
    command = [str(RECOLLECT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=timeout, env=env, input=given)
