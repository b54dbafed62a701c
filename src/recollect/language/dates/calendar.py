"""Dates by their place in the calendar: "8 May 2023", "in May", "2023-05-08"."""

import re
from typing import Final

from recollect.language.dates.periods import NamedDate

_ENGLISH: Final = "january february march april may june july august september october november december"
_GERMAN: Final = "januar februar märz april mai juni juli august september oktober november dezember"
_FRENCH: Final = "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"
_SPANISH: Final = "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
_SHORT: Final = "jan feb mar apr may jun jul aug sep oct nov dec"

MONTHS: Final = {
    name: number
    for names in (_SHORT, _ENGLISH, _GERMAN, _FRENCH, _SPANISH)
    for number, name in enumerate(names.split(), start=1)
} | {"sept": 9, "jänner": 1, "setiembre": 9}


def _one_of(names: str) -> str:
    return "|".join(sorted(names.split(), key=len, reverse=True))


_MONTH: Final = rf"(?P<month>{_one_of(' '.join(MONTHS))})\b\.?"
_DAY: Final = r"(?<![\d.,/-])(?P<day>0?[1-9]|[12]\d|3[01])"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)\b"
_OF: Final = r"(?:of\s+|del?\s+)?"

MONTH_IN_CAPITALS: Final = _one_of(f"{_ENGLISH} {_GERMAN}".title())
"""Months that a capital letter tells from other words ("May", "March"), in English and German."""

# Tried in this order; what one has matched is cut out before the next. Months alone count only where they are unlike
# other words: with a capital letter in English and German, behind "en" in French and Spanish ("mars", "mayo").
# Beside each: whether it needs a number, and a month by its name. Looking for these first saves most texts the forms.
_FORMS: Final = (
    (True, False, re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<number>\d\d?)-(?P<day>\d\d?)(?=\b|T)")),
    (True, True, re.compile(rf"{_DAY}(?:st|nd|rd|th|er|\.)?\s+{_OF}{_MONTH}(?:,?\s+{_OF}{_YEAR})?", re.I)),
    (True, True, re.compile(rf"\b{_MONTH}\s+{_DAY}(?:st|nd|rd|th)?\b(?:,?\s+{_YEAR})?", re.I)),
    (True, True, re.compile(rf"\b{_MONTH},?\s+{_OF}{_YEAR}", re.I)),
    (False, True, re.compile(rf"\b(?P<month>{MONTH_IN_CAPITALS})\b")),
    (False, True, re.compile(rf"\ben\s+(?P<month>{_one_of(f'{_FRENCH} {_SPANISH}')})\b", re.I)),
    (True, False, re.compile(rf"(?<!\d[./-])\b{_YEAR}(?![./-]\d)")),
)
_NUMBER: Final = re.compile(r"\d")
_WORD: Final = re.compile(r"[^\W\d_]+")


def calendar_dates(text: str) -> list[NamedDate]:
    """The days, months and years that a text names."""
    dates: list[NamedDate] = []
    has_number = _NUMBER.search(text) is not None
    has_month = not MONTHS.keys().isdisjoint(_WORD.findall(text.lower()))
    for needs_number, needs_month, form in _FORMS:
        if needs_number > has_number or needs_month > has_month:
            continue
        for match in form.finditer(text):
            said = match.groupdict()
            year, month, number, day = (said.get(part) for part in ("year", "month", "number", "day"))
            named = NamedDate(
                year=int(year) if year else None,
                month=MONTHS[month.lower()] if month else int(number) if number else None,
                day=int(day) if day else None,
            )
            if named.exists():
                dates.append(named)
        text = form.sub(" ", text)
    return dates
