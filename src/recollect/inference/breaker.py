"""Circuit breaker: a provider that keeps failing is left alone for a while, then tried by one request."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from recollect.errors import Unavailable
from recollect.inference.failures import Transient
from recollect.inference.limits import Clock

FAILURES_TO_OPEN = 8
OPEN_SECONDS = 30.0

State = Literal["closed", "open", "half-open"]


class Breaker:
    """Closed, it lets everyone through; open, nobody; half-open, one, whose luck decides.

    Only failures that may pass count: an answer that refuses the request shows that the provider is there.
    """

    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._failures = 0
        self._opened_at: float | None = None
        self._trying = False

    @property
    def state(self) -> State:
        """Where it stands now."""
        if self._opened_at is None:
            return "closed"
        return "open" if self._left() > 0 else "half-open"

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """One request, whose outcome is noted; Unavailable without asking while the circuit is open."""
        trying = self._enter()
        try:
            yield
        except Transient:
            self._failed(trying)
            raise
        else:
            self._succeeded(trying)
        finally:
            if trying:
                self._trying = False

    def _enter(self) -> bool:
        """Whether this request is the one that tries."""
        if self._opened_at is None:
            return False
        if self._left() > 0 or self._trying:
            raise Unavailable(
                f"{self._name} failed {self._failures} times in a row and is left alone for now. "
                f"Try again in {max(self._left(), 1.0):.0f} s."
            )
        self._trying = True
        return True

    def _failed(self, trying: bool) -> None:
        if self._opened_at is None or trying:
            self._failures += 1
            if trying or self._failures >= FAILURES_TO_OPEN:
                self._opened_at = self._clock.now()

    def _succeeded(self, trying: bool) -> None:
        # One that began before the circuit opened says nothing about now.
        if self._opened_at is None or trying:
            self._failures = 0
            self._opened_at = None

    def _left(self) -> float:
        assert self._opened_at is not None
        return OPEN_SECONDS - (self._clock.now() - self._opened_at)
