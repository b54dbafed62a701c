"""Dates that a text names: "8 May 2023", "last Friday", "two months ago", also in German, French and Spanish."""

from recollect.language.dates.periods import NamedDate, Period
from recollect.language.dates.reading import asks_latest, dates_named, without_relative_dates

__all__ = ["NamedDate", "Period", "asks_latest", "dates_named", "without_relative_dates"]
