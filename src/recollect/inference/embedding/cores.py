"""How many documents to embed at once: on every core that would be idle, and behind whatever else wants one."""

import os
import sys
import threading
import time
from contextlib import suppress
from math import ceil
from pathlib import Path

# Each run of the network has some memory of its own, which onnxruntime does not give back.
MAX_AT_ONCE = 8

# Gets about a quarter of a core that another thread wants too.
_NICENESS = 5

# After a request, so long it is likely that another follows.
_BUSY_SECONDS = 0.05

_last_request = float("-inf")

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def at_once() -> int:
    """As many as there are cores for us; half of them where a thread cannot yield to others."""
    if not hasattr(os, "sched_getaffinity"):
        return min(max((os.cpu_count() or 1) // 2, 1), MAX_AT_ONCE)
    cores = len(os.sched_getaffinity(0))
    # More threads than a container may use would take up its time, and that of requests with it.
    with suppress(OSError, ValueError):
        quota, period = _QUOTA.read_text().split()
        cores = min(cores, ceil(int(quota) / int(period)))
    return max(1, min(cores, MAX_AT_ONCE))


def note_request() -> None:
    """Somebody waits for this process: for a write, or for an answer."""
    global _last_request
    _last_request = time.monotonic()


def requests_come_in() -> bool:
    """Whether there was a request just now: then documents get one core only, because niceness alone frees none."""
    return time.monotonic() - _last_request < _BUSY_SECONDS


def yield_to_others() -> None:
    """Lower the priority of this thread behind requests, questions and the database; only Linux can."""
    if sys.platform == "linux":
        with suppress(OSError):
            thread = threading.get_native_id()
            os.setpriority(os.PRIO_PROCESS, thread, max(os.getpriority(os.PRIO_PROCESS, thread), _NICENESS))
