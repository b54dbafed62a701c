"""File locks that die with the process that holds them, also when it is killed."""

import fcntl
import os
import time
import weakref
from types import TracebackType
from typing import ClassVar, Self

_POLL_SECONDS = 0.01


class FileLock:
    """One open file and the lock on it; closing is the only way to unlock."""

    _open: ClassVar["weakref.WeakSet[FileLock]"] = weakref.WeakSet()

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        FileLock._open.add(self)

    def take_shared(self, patience: float) -> bool:
        """Lock together with other holders; false when an exclusive holder kept it for longer than `patience`."""
        return self._take(fcntl.LOCK_SH, patience)

    def take_exclusive(self, patience: float = 0.0) -> bool:
        """Lock alone; false when somebody else kept it for longer than `patience` seconds."""
        return self._take(fcntl.LOCK_EX, patience)

    def fileno(self) -> int:
        """The descriptor, for a process that takes the lock over."""
        if self._descriptor is None:
            raise ValueError("The lock is closed")
        return self._descriptor

    def close(self) -> None:
        """Give the lock back. It is never unlocked by name: a process that took it over, or a fork, shares it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _take(self, operation: int, patience: float) -> bool:
        """Poll: a thread that sleeps inside flock could not be interrupted, and would keep the process from ending."""
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(self.fileno(), operation | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_POLL_SECONDS)
            else:
                return True

    @classmethod
    def forget_all(cls) -> None:
        """In a forked child: drop its copies, so that the locks end with the parent that took them."""
        for lock in list(cls._open):
            lock.close()


os.register_at_fork(after_in_child=FileLock.forget_all)
