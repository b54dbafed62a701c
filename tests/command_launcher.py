"""What tests run as `recollect`: asks tests/command_forks.py for the command, and is it for whoever started it.

It passes its streams, arguments and environment on, its signals too, and ends as the command ends. One that is killed
takes the command with it: whoever wants to see that waits for the end of its output. It imports next to nothing, not
even pathlib, and so starts in a fiftieth of the command's own time.
"""

# ruff: noqa: PTH100, PTH109, PTH118, PTH120
import json
import os
import signal
import socket
import sys
from contextlib import suppress

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def pass_on(number: int, pid: int) -> None:
    with suppress(ProcessLookupError):  # it has just ended by itself
        os.kill(pid, number)


def main() -> None:
    # They wait until there is a command to pass them on to.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(os.path.join(os.path.dirname(os.path.abspath(__file__)), "socket"))
        command = json.dumps({"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd()}).encode()
        socket.send_fds(asked, [b"%d\n" % len(command)], [0, 1, 2])
        asked.sendall(command)
        with asked.makefile("r") as answers:
            pid = int(answers.readline())
            for number in SIGNALS:
                signal.signal(number, lambda number, _: pass_on(number, pid))
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            code = int(answers.readline())
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main()
