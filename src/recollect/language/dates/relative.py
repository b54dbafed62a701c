"""Dates that are counted from a day: "yesterday", "last week", "two months ago", "in spring"."""

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import date, timedelta
from typing import Final

from recollect.language.dates.calendar import MONTH_IN_CAPITALS, MONTHS
from recollect.language.dates.periods import Period
from recollect.language.dates.vocabulary import (
    AFTER,
    BEFORE,
    COUNTS,
    PHRASES,
    SEASONS,
    SPANS,
    UNITS,
    WEEKDAYS,
    WEEKENDS,
    any_of,
)

_THING: Final = (
    rf"(?P<span>{any_of(SPANS)})|(?P<weekday>{any_of(WEEKDAYS)})|(?P<season>{any_of(SEASONS)})"
    rf"|(?P<weekend>{any_of(WEEKENDS)})"
)
_COUNT: Final = rf"(?P<count>\d{{1,3}}|{any_of(COUNTS)})"
_UNIT: Final = rf"(?P<unit>{any_of(UNITS)})\b"
_UNIT_OF_DAYS: Final = rf"(?P<unit>{any_of({word for word, unit in UNITS.items() if unit != 'hour'})})\b"
_ROLLING: Final = r"past|last|previous|letzten|vergangenen|derni(?:er|ère)s|últim[oa]s"
_DAYS: Final = {"hour": 0, "day": 1, "week": 7, "month": 30, "year": 365}
_YEAR: Final = r"(?P<year>(?:19|20)\d\d|(?:last|this|next) year)\b"

_WORD: Final = re.compile(r"\w+")

# "Hier" is yesterday in French and here in German, which has none of these words.
_FRENCH: Final = re.compile(
    r"\b(?:je|tu|il|elle|on|nous|vous|le|la|les|une|et|est|ai|as|que|quoi)\b|\b(?:[cdjlmnst]|qu)'", re.I
)


def relative_periods(text: str, today: date) -> tuple[list[Period], str]:
    """The periods that a text names by their distance from a day, and the text without them."""
    periods: list[Period] = []
    rest: list[str] = []
    end = 0
    is_french = _FRENCH.search(text) is not None
    for word in _WORD.finditer(text):
        if word.start() < end:
            continue
        if found := _match(text, word):
            match, read = found
            rest.append(text[end : match.start()])
            end = match.end()
            # What lies before the year 1 or after the year 9999 is no date.
            with suppress(ValueError, OverflowError):
                if is_french or match.group().lower() != "hier":
                    periods += read(match, today)
    return periods, " ".join((*rest, text[end:]))


def _match(text: str, word: re.Match[str]) -> "tuple[re.Match[str], _Read] | None":
    """The form that a word begins. Most words begin none, so that a text costs little more than its words."""
    for number in _BEGUN_BY.get("0" if word[0].isdecimal() else word[0].lower(), ()):
        _, form, read = _FORMS[number]
        if match := form.match(text, word.start()):
            return match, read
    return None


def _phrase(match: re.Match[str], today: date) -> Iterator[Period]:
    said = match["phrase"]
    days = PHRASES[said.lower()]
    if days is not None and said != "Morgen":  # the noun
        yield Period(today + timedelta(days[0]), today + timedelta(days[1]))


def _rolling(match: re.Match[str], today: date) -> Iterator[Period]:
    """The past two weeks: up to today."""
    days = _DAYS[UNITS[match["unit"].lower()]]
    yield Period(today - timedelta(_counted(match)[1] * days), today)


def _ago(match: re.Match[str], today: date) -> Iterator[Period]:
    yield _around(match, today, -1)


def _ahead(match: re.Match[str], today: date) -> Iterator[Period]:
    yield _around(match, today, 1)


def _around(match: re.Match[str], today: date, direction: int) -> Period:
    """Two weeks ago: give or take half a week, since nobody counts the days."""
    days = _DAYS[UNITS[match["unit"].lower()]]
    ends = sorted(today + timedelta(direction * count * days) for count in _counted(match))
    return Period(ends[0] - timedelta(days // 2), ends[1] + timedelta(days // 2))


def _counted(match: re.Match[str]) -> tuple[int, int]:
    said = (match["count"] or "1").lower()
    return COUNTS[said] if said in COUNTS else (int(said), int(said))


def _placed(match: re.Match[str], today: date) -> Iterator[Period]:
    """Last, this or next: week, month, year, weekend, weekday, season or month by its name."""
    said = match.groupdict()
    which = (BEFORE | AFTER)[match["which"].lower()]
    if span := said["span"]:
        yield Period.of(SPANS[span.lower()], today, which)
    elif said["weekend"]:
        sunday = Period.week(today + timedelta(weeks=which)).last
        yield Period(sunday - timedelta(days=1), sunday)
    elif weekday := said["weekday"]:
        yield _weekday(WEEKDAYS[weekday.lower()], today, which)
    elif season := said["season"]:
        yield _nearest_year(SEASONS[season.lower()], 3, today, which)
    else:
        yield _nearest_year(MONTHS[match["month"].lower()], 1, today, which)


def _weekday(weekday: int, today: date, which: int) -> Period:
    """The last one before today, the one of this week, or the next one after today."""
    if which == 0:
        return Period.day(Period.week(today).first + timedelta(weekday))
    days = (today.weekday() - weekday) % 7 if which < 0 else (weekday - today.weekday()) % 7
    return Period.day(today + timedelta(which * (days or 7)))


def _nearest_year(month: int, count: int, today: date, which: int) -> Period:
    """The last one that is over, the one of this year, or the next one that has not begun."""
    years = (today.year - 2, today.year - 1, today.year, today.year + 1)
    periods = [Period.months(year, month, count) for year in years]
    if which < 0:
        return max((period for period in periods if period.last < today), key=lambda period: period.first)
    if which > 0:
        return min((period for period in periods if period.first > today), key=lambda period: period.first)
    return min(periods, key=lambda period: (abs((today - period.first).days), period.first))


def _on_a_weekday(match: re.Match[str], today: date) -> Iterator[Period]:
    """Today or the last one, and the next one: only the tense would say which. Not "every Monday"."""
    if match["each"] is None:
        weekday = WEEKDAYS[match["weekday"].lower()]
        yield _weekday(weekday, today + timedelta(days=1), -1)
        yield _weekday(weekday, today, 1)


def _in_a_season(match: re.Match[str], today: date) -> Iterator[Period]:
    """The latest that has begun, or that of a year. A winter belongs to both of its years."""
    month = SEASONS[match["season"].lower()]
    if match["year"] is None:
        periods = (Period.months(today.year - back, month, 3) for back in (0, 1))
        yield next(period for period in periods if period.first <= today)
    else:
        which, _, spelled = match["year"].rpartition(" ")
        year = today.year + BEFORE[which.lower()] if which else int(spelled)
        yield Period.months(year, month, 3)
        if month + 2 > 12:
            yield Period.months(year - 1, month, 3)


_Read = Callable[[re.Match[str], date], Iterator[Period]]
_SEASON: Final = rf"(?P<season>{any_of(SEASONS)})\b"
_WHICH: Final = rf"(?P<which>{any_of(BEFORE)}) (?!ans?\b)"
_MONTH: Final = rf"(?P<month>(?-i:{MONTH_IN_CAPITALS}))"
_EVERY: Final = ("every", "each", "jeden", "chaque", "cada", "los", "les")
_EACH: Final = rf"(?P<each>(?:{any_of(_EVERY)}) )?"


def _first_words(phrases: Collection[str]) -> set[str]:
    return {_WORD.findall(phrase)[0] for phrase in phrases}


# The words that begin a form, the form, and what reads it. Those that a word begins are tried in this order. "0" stands
# for any number; words are one space apart.
_FORMS: Final[tuple[tuple[Collection[str], re.Pattern[str], _Read], ...]] = (
    (_first_words(PHRASES), re.compile(rf"\b(?P<phrase>{any_of(PHRASES)})(?!\w)", re.I), _phrase),
    ({"0", *_first_words(COUNTS)}, re.compile(rf"\b{_COUNT} {_UNIT} ago\b", re.I), _ago),
    (("vor", "il", "hace"), re.compile(rf"\b(?:vor|il y a|hace) {_COUNT} {_UNIT}", re.I), _ago),
    ({"0", *_first_words(COUNTS)}, re.compile(rf"\b{_COUNT} {_UNIT_OF_DAYS} from now\b", re.I), _ahead),
    (("in", "dans", "dentro"), re.compile(rf"\b(?:in|dans|dentro de) {_COUNT} {_UNIT_OF_DAYS}", re.I), _ahead),
    (
        ("the", "den", "les", "los", "las"),
        re.compile(rf"\b(?:the|den|les|los|las) (?:{_ROLLING}) (?:{_COUNT} )?{_UNIT}", re.I),
        _rolling,
    ),
    (("les", "los", "las"), re.compile(rf"\b(?:les|los|las) {_COUNT} (?:{_ROLLING}) {_UNIT}", re.I), _rolling),
    (("past", "last"), re.compile(rf"\b(?:past|last) {_COUNT} {_UNIT}", re.I), _rolling),
    (("past",), re.compile(rf"\bpast (?P<count>){_UNIT}", re.I), _rolling),
    (
        ("in", "im", "during", "since", "en", "au", "of"),
        re.compile(rf"\b\w+ (?:the )?{_SEASON}(?:(?:,| of| de| del)? {_YEAR})?", re.I),
        _in_a_season,
    ),
    (SEASONS, re.compile(rf"\b{_SEASON}(?:,| of| de| del)? {_YEAR}", re.I), _in_a_season),
    (BEFORE, re.compile(rf"\b{_WHICH}(?:{_THING}|{_MONTH})\b", re.I), _placed),
    (
        {*SPANS, *WEEKENDS, *WEEKDAYS, *SEASONS},
        re.compile(rf"\b(?:{_THING}) (?P<which>{any_of(AFTER)})\b", re.I),
        _placed,
    ),
    ({*_EVERY, *WEEKDAYS}, re.compile(rf"\b{_EACH}(?P<weekday>{any_of(WEEKDAYS)})\b", re.I), _on_a_weekday),
)

_BEGUN_BY: Final = {
    word: [number for number, (beginnings, _, _) in enumerate(_FORMS) if word in beginnings]
    for word in set().union(*(beginnings for beginnings, _, _ in _FORMS))
}
"""The forms that a word begins, by their numbers."""
