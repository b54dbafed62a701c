"""A program whose workers end as soon as they begin; prints what their supervisor says."""

import os
import sys
from collections.abc import Callable

from recollect.doors.cli.serving.workers import supervise
from recollect.errors import Misconfigured


def end_at_once(code: int, started: Callable[[], None]) -> None:
    os._exit(code)


if __name__ == "__main__":
    try:
        supervise(2, end_at_once, (7,), lambda: print("all of them serve"))
    except Misconfigured as problem:
        sys.exit(str(problem))
