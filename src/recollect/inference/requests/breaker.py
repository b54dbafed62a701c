"""Circuit breaker: a provider that keeps failing is left alone for a while, then tried by one request."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from recollect.errors import Unavailable
from recollect.inference.failures import Silent, Throttled, Transient
from recollect.inference.requests.limits import Clock

FAILURES_TO_OPEN = 8
OPEN_SECONDS = 30.0

State = Literal["closed", "open", "half-open"]


class Breaker:
    """Closed, it lets all requests through; open, none; half-open, one, whose outcome decides.

    A request that was let in keeps its retries, whatever happens to the circuit meanwhile. Only failures of the
    provider count: one that asks us to wait is there, and so is one that refuses a request. Silence costs
    callers the most time, so that less of it may be enough to open.
    """

    def __init__(self, name: str, clock: Clock, silences_to_open: int = FAILURES_TO_OPEN) -> None:
        self._name = name
        self._clock = clock
        self._silences_to_open = silences_to_open
        self._failures = 0
        self._silences = 0
        self._opened_at: float | None = None
        self._trying = False

    @property
    def state(self) -> State:
        """Where it stands now."""
        if self._opened_at is None:
            return "closed"
        return "open" if self._left() > 0 else "half-open"

    @contextmanager
    def request(self) -> Iterator[bool]:
        """One request with all its attempts; Unavailable without asking while the circuit is open.

        Gives whether this is the one that tries a half-open circuit.
        """
        trying = self._opened_at is not None
        if trying:
            if self._left() > 0 or self._trying:
                raise Unavailable(
                    f"{self._name} failed {self._failures} times in a row and is skipped for now. "
                    f"Try again in {max(self._left(), 1.0):.0f} s."
                )
            self._trying = True
        try:
            yield trying
        finally:
            if trying:
                self._trying = False

    @contextmanager
    def attempt(self, trying: bool) -> Iterator[None]:
        """One attempt of a request, whose outcome is noted."""
        began = self._clock.now()
        try:
            yield
        except Throttled:
            raise
        except Transient as problem:
            if self._opened_at is None or trying:
                self._failures += 1
                self._silences += isinstance(problem, Silent)
                if trying or self._failures >= FAILURES_TO_OPEN or self._silences >= self._silences_to_open:
                    self._opened_at = self._clock.now()
            raise
        # One that began before the circuit opened says nothing about now.
        if self._opened_at is None or trying or began > self._opened_at:
            self._failures = self._silences = 0
            self._opened_at = None

    def _left(self) -> float:
        assert self._opened_at is not None
        return OPEN_SECONDS - (self._clock.now() - self._opened_at)
