"""Forks a `recollect` command for each line of JSON on standard input; tests/commands.py asks.

{"run": argv, "env": ..., "cwd": ..., "folder": ...} answers the process id; {"wait": pid} the exit code. A command
reads and writes the files stdin, stdout and stderr of its folder.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import sys
import threading
from pathlib import Path
from typing import Any

import recollect.doors.cli
from recollect.doors.cli.main import main

STREAMS = (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY | os.O_CREAT), ("stderr", os.O_WRONLY | os.O_CREAT))


def imported_ahead() -> None:
    for module in pkgutil.walk_packages(recollect.doors.cli.__path__, "recollect.doors.cli."):
        importlib.import_module(module.name)
    importlib.import_module("onnxruntime")
    gc.freeze()


def become(command: dict[str, Any]) -> None:
    for descriptor, (name, flags) in enumerate(STREAMS):
        opened = os.open(Path(command["folder"]) / name, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(command["env"])
    os.chdir(command["cwd"])
    sys.argv = command["run"]
    main()


def fork(command: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 0
    try:
        become(command)
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
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    imported_ahead()
    for line in sys.stdin:
        asked = json.loads(line)
        answer = fork(asked) if "run" in asked else os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])
        print(answer, flush=True)
