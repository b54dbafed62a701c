"""The meter protocol: who pays for a request, and how it is counted before and after."""

from dataclasses import dataclass
from datetime import date
from typing import Protocol

from recollect.errors import LimitReached


class BudgetSpent(LimitReached):
    """The budget of the day does not allow a request."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """On whose account a request goes."""

    namespace: str
    feature: str
    model: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a request took."""

    input: int
    output: int


@dataclass(frozen=True, slots=True)
class Reservation:
    """Tokens set aside for a request, from the budget of a day."""

    purpose: Purpose
    day: date
    tokens: int


class Meter(Protocol):
    """Sets tokens aside before a request, so that callers at once cannot overspend together, and counts them after."""

    async def reserve(self, purpose: Purpose, tokens: int) -> Reservation:
        """Set the most that a request may take aside; BudgetSpent if the day's budget has not that much left."""

    async def settle(self, reservation: Reservation, used: Tokens) -> None:
        """Count what a request took and give the rest back."""

    async def release(self, reservation: Reservation) -> None:
        """Give all of it back: the request was not served."""
