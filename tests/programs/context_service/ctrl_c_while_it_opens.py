"""Ctrl-C while the first call opens the database, in a program that goes on: one thread is left, not two."""

import os
import signal
import threading
import time

from recollect import ContextService
from recollect.doors.library.context_service import background

assert background


def threads() -> int:
    return [thread.name for thread in threading.enumerate()].count("recollect")


def interrupt() -> None:
    while not threads():
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)


threading.Thread(target=interrupt).start()
try:
    ContextService.create_conversation("ann")
except KeyboardInterrupt:
    pass
else:
    raise SystemExit("nothing was interrupted")
assert ContextService.create_conversation("ann")["id"]
deadline = time.monotonic() + 60
while threads() > 1:
    assert time.monotonic() < deadline, threading.enumerate()
    time.sleep(0.01)
