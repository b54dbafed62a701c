"""Times that a text can name: a date with open parts, and a period of whole days."""

from calendar import monthrange
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, tzinfo
from typing import Final, Self

_LONGEST_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class NamedDate:
    """A day, a month or a year; None for what was not said."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def matches(self, at: datetime) -> bool:
        """Whether every part that was said is that part of the given time."""
        return (
            (self.year is None or self.year == at.year)
            and (self.month is None or self.month == at.month)
            and (self.day is None or self.day == at.day)
        )

    def exists(self) -> bool:
        """Whether a calendar has it: there is no 13th month and no 30 February."""
        if self.month is None:
            return self.day is None
        return 1 <= self.month <= 12 and (self.day is None or 1 <= self.day <= _LONGEST_MONTHS[self.month - 1])


@dataclass(frozen=True, slots=True)
class Period:
    """Days from the first to the last, both included, in the time zone of whoever named them."""

    first: date
    last: date
    zone: tzinfo | None = field(default=None, compare=False)

    @classmethod
    def day(cls, day: date) -> Self:
        return cls(day, day)

    @classmethod
    def week(cls, day: date) -> Self:
        """The ISO week of a day, from Monday to Sunday."""
        monday = day - timedelta(days=day.weekday())
        return cls(monday, monday + timedelta(days=6))

    @classmethod
    def months(cls, year: int, month: int, count: int = 1) -> Self:
        """Whole months from one on; a month outside 1 to 12 belongs to a year before or after."""
        year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
        last_year, last_month = year + (month + count - 2) // 12, (month + count - 2) % 12 + 1
        return cls(date(year, month, 1), date(last_year, last_month, monthrange(last_year, last_month)[1]))

    @classmethod
    def of(cls, span: str, today: date, which: int) -> Self:
        """The week, month or year of a day, or that many before or after it."""
        if span == "week":
            return cls.week(today + timedelta(weeks=which))
        if span == "month":
            return cls.months(today.year, today.month + which)
        return cls.months(today.year + which, 1, 12)

    def matches(self, at: datetime) -> bool:
        """Whether a time is on one of its days."""
        local = at
        if self.zone is not None and at.tzinfo is not None:
            with suppress(OverflowError):  # at the very edge of the years
                local = at.astimezone(self.zone)
        return self.first <= local.date() <= self.last
