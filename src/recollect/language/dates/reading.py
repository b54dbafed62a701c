"""Reads the dates of a question against the time of asking."""

import re
from dataclasses import replace
from datetime import datetime
from typing import Final

from recollect.language.dates.calendar import calendar_dates
from recollect.language.dates.periods import NamedDate, Period
from recollect.language.dates.relative import relative_periods

# Every nominee is compared with each of them.
MAX_DATES: Final = 20

_LATEST: Final = re.compile(
    r"\b(?:latest|(?:most|more) recent(?:ly)?|newest|recently|lately|last time|current(?:ly)?|these days|nowadays"
    r"|right now|so far|up to now"
    r"|zuletzt|letzte[sn]? mal|neueste[nrsm]?|kürzlich|neulich|derzeit|zurzeit|momentan|bisher"
    r"|dernière fois|plus récente?s?|récemment|dernièrement|actuellement|en ce moment"
    r"|última vez|más recientes?|recientemente|últimamente|actualmente)\b",
    re.I,
)


def dates_named(question: str, now: datetime) -> list[NamedDate | Period]:
    """The dates that a question names, counted from `now` where it says so."""
    periods, rest = relative_periods(_single_spaced(question), now.date())
    named = calendar_dates(rest)
    years = [each for each in periods if each == Period.months(each.first.year, 1, 12)]
    if len(years) == 1 and any(each.year is None for each in named):  # "in May last year"
        named = [replace(each, year=each.year or years[0].first.year) for each in named]
        periods.remove(years[0])
    dates: list[NamedDate | Period] = [*named, *(replace(period, zone=now.tzinfo) for period in periods)]
    return list(dict.fromkeys(dates))[:MAX_DATES]


def without_relative_dates(question: str, now: datetime) -> str:
    """A question without "last week" and the like, which say when and not what; as it is if it has none of them."""
    periods, rest = relative_periods(_single_spaced(question), now.date())
    return rest if periods else question


def asks_latest(question: str) -> bool:
    """Whether a question asks for what is newest: "most recent", "last time", "currently"."""
    return _LATEST.search(_single_spaced(question)) is not None


def _single_spaced(text: str) -> str:
    return " ".join(text.replace("’", "'").split())
