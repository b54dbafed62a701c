"""Wait for something to become true, with a deadline: the only way a test waits."""

import time
from collections.abc import Callable

DEADLINE_SECONDS = 60.0
POLL_SECONDS = 0.02


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Return as soon as the condition holds; fail with a sentence if it never does."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"after {DEADLINE_SECONDS:.0f} s still waiting until {what}")
        time.sleep(POLL_SECONDS)
