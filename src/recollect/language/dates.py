"""Dates that a question names: "8 May 2023", "in May", "2023-05-08", and the months in German, French and Spanish."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

_ENGLISH: Final = "january february march april may june july august september october november december"
_GERMAN: Final = "januar februar märz april mai juni juli august september oktober november dezember"
_FRENCH: Final = "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"
_SPANISH: Final = "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
_SHORT: Final = "jan feb mar apr may jun jul aug sep oct nov dec"

_MONTHS: Final = {
    name: number
    for names in (_SHORT, _ENGLISH, _GERMAN, _FRENCH, _SPANISH)
    for number, name in enumerate(names.split(), start=1)
} | {"sept": 9, "jänner": 1, "setiembre": 9}
_LONGEST_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _one_of(names: str) -> str:
    return "|".join(sorted(names.split(), key=len, reverse=True))


_MONTH: Final = rf"(?P<month>{_one_of(' '.join(_MONTHS))})\b\.?"
_DAY: Final = r"(?<![\d.,/-])(?P<day>0?[1-9]|[12]\d|3[01])"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)\b"
_OF: Final = r"(?:of\s+|del?\s+)?"

# Tried in this order; what one has matched is cut out before the next. Months alone count only where they are unlike
# other words: with a capital letter in English and German, behind "en" in French and Spanish ("mars", "mayo").
_FORMS: Final = (
    re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<number>\d\d?)-(?P<day>\d\d?)(?=\b|T)"),
    re.compile(rf"{_DAY}(?:st|nd|rd|th|er|\.)?\s+{_OF}{_MONTH}(?:,?\s+{_OF}{_YEAR})?", re.I),
    re.compile(rf"\b{_MONTH}\s+{_DAY}(?:st|nd|rd|th)?\b(?:,?\s+{_YEAR})?", re.I),
    re.compile(rf"\b{_MONTH},?\s+{_OF}{_YEAR}", re.I),
    re.compile(rf"\b(?P<month>{_one_of(f'{_ENGLISH} {_GERMAN}'.title())})\b"),
    re.compile(rf"\ben\s+(?P<month>{_one_of(f'{_FRENCH} {_SPANISH}')})\b", re.I),
    re.compile(rf"(?<!\d[./-])\b{_YEAR}(?![./-]\d)"),
)


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


def dates_named(question: str) -> list[NamedDate]:
    """The dates that a question names. Relative ones ("last week") are not read."""
    dates: list[NamedDate] = []
    for form in _FORMS:
        for match in form.finditer(question):
            said = match.groupdict()
            year, month, number, day = (said.get(part) for part in ("year", "month", "number", "day"))
            date = NamedDate(
                year=int(year) if year else None,
                month=_MONTHS[month.lower()] if month else int(number) if number else None,
                day=int(day) if day else None,
            )
            if date.exists():
                dates.append(date)
        question = form.sub(" ", question)
    return dates
