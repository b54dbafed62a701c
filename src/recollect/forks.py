"""A fork waits for imports in other threads: a child would inherit module locks that no thread is left to release."""

import os
import threading
from contextlib import AbstractContextManager

# Importing an SDK or loading the model takes a second; on a machine where it takes longer, a fork takes its chances.
FORK_WAITS_SECONDS = 10.0


class _ImportLock:
    """A lock that a fork takes first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held_for_fork = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._wait, after_in_parent=self._go_on, after_in_child=self._replace)

    def held(self) -> AbstractContextManager[bool]:
        return self._lock

    def _wait(self) -> None:
        self._held_for_fork = self._lock.acquire(timeout=FORK_WAITS_SECONDS)

    def _go_on(self) -> None:
        if self._held_for_fork:
            self._lock.release()

    def _replace(self) -> None:
        self._lock = threading.Lock()


_imports = _ImportLock()


def importing() -> AbstractContextManager[bool]:
    """Import large packages in a thread inside this block, one at a time, and no fork falls into it."""
    return _imports.held()
