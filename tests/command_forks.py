"""Forks a command for each tests/command_launcher.py that connects: python -m tests.command_forks LISTENER

A launcher called `recollect` gets that command; one called `module`, the module that is its first argument.

It ends with its standard input, with it the commands that still run, and removes the folder of the launcher.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import shutil
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import recollect.doors.cli
from recollect.doors.cli.main import main


def imported_ahead() -> None:
    for module in pkgutil.walk_packages(recollect.doors.cli.__path__, "recollect.doors.cli."):
        importlib.import_module(module.name)
    for name in ("onnxruntime", "recollect.doors.mcp.server", "uvicorn.protocols.http.h11_impl"):
        importlib.import_module(name)
    gc.freeze()


def become(command: dict[str, Any], streams: list[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    # What belongs to the other commands: a pipe that stayed open here would never end there.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(command["env"])
    os.chdir(command["cwd"])
    sys.argv = command["argv"]
    # As an interpreter opens them: a terminal sees every line at once.
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", 1 if os.isatty(1) else -1, closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    if Path(sys.argv[0]).name == "module":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__")
    else:
        sys.modules["__main__"].__package__ = None  # the command is called as it was, and not `python -m ...`
        main()


def fork(command: dict[str, Any], streams: list[int]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 0
    try:
        become(command, streams)
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001  # as an interpreter would end
        sys.excepthook(*sys.exc_info())
        code = 1
    # The end of an interpreter, which a fork does not have by itself.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


class Forks:
    """The commands that run, each with the launcher that waits for its end."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(sys.stdin, selectors.EVENT_READ, self._end)
        self._selector.register(listener, selectors.EVENT_READ, self._begin)
        self._running: set[int] = set()
        self._is_ending = False

    def run(self) -> None:
        while not self._is_ending:
            for key, _ in self._selector.select():
                key.data()

    def _end(self) -> None:
        self._is_ending = True
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)

    def _begin(self) -> None:
        launcher, _ = self._listener.accept()
        length, streams, _, _ = socket.recv_fds(launcher, 16, 3)
        size, _, begun = length.partition(b"\n")
        while more := size and len(begun) < int(size) and launcher.recv(1 << 16):
            begun += more
        whole = size and len(begun) == int(size)
        pid = fork(json.loads(begun), streams) if whole else None
        for stream in streams:
            os.close(stream)
        if pid is None:
            launcher.close()  # killed before it had said what to run
            return
        self._running.add(pid)
        _tell(launcher, pid)
        ended = os.pidfd_open(pid)
        self._selector.register(ended, selectors.EVENT_READ, lambda: self._ended(pid, ended, launcher))
        # It says nothing more: it has been killed.
        self._selector.register(launcher, selectors.EVENT_READ, lambda: self._left(pid, launcher))

    def _left(self, pid: int, launcher: socket.socket) -> None:
        if pid in self._running:  # or both have ended at once
            self._selector.unregister(launcher)
            os.kill(pid, signal.SIGKILL)

    def _ended(self, pid: int, ended: int, launcher: socket.socket) -> None:
        self._selector.unregister(ended)
        os.close(ended)
        self._running.discard(pid)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if launcher in self._selector.get_map():
            self._selector.unregister(launcher)
            _tell(launcher, code)
        launcher.close()


def _tell(launcher: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it may be killed at any moment
        launcher.send(b"%d\n" % number)


if __name__ == "__main__":
    imported_ahead()
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        Forks(listener).run()
        shutil.rmtree(Path(listener.getsockname()).parent)
