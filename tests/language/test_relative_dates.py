"""Relative dates: counted from the time of asking, or from the time a message was written."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.language.dates import NamedDate, Period, asks_latest, dates_named
from recollect.language.dates.reading import MAX_DATES
from recollect.language.dates.vocabulary import AFTER, BEFORE, COUNTS, PHRASES, SEASONS, UNITS, WEEKDAYS

# A Wednesday.
NOW = datetime(2024, 6, 12, 15, 0, tzinfo=UTC)


def period(first: str, last: str | None = None) -> Period:
    return Period(date.fromisoformat(first), date.fromisoformat(last or first))


@pytest.mark.parametrize(
    ("questions", "expected"),
    [
        ("What did I eat yesterday? | Was war gestern? | Qu'ai-je fait hier ? | ¿Qué hice ayer?", period("2024-06-11")),
        ("today | heute | aujourd’hui | hoy | this morning | heute Morgen | ce matin", period("2024-06-12")),
        ("last night | anoche | letzte Nacht | la nuit dernière", period("2024-06-11", "2024-06-12")),
        ("the day before yesterday | vorgestern | avant-hier | anteayer", period("2024-06-10")),
        ("tomorrow | wir fahren morgen | demain | mañana | mañana por la mañana", period("2024-06-13")),
        ("this week | diese Woche | cette semaine | esta semana", period("2024-06-10", "2024-06-16")),
        ("last week | letzte Woche | la semaine dernière | la semana pasada", period("2024-06-03", "2024-06-09")),
        ("next week | nächste Woche | la semaine prochaine | la semana que viene", period("2024-06-17", "2024-06-23")),
        ("last month | letzten Monat | le mois dernier | el mes pasado", period("2024-05-01", "2024-05-31")),
        ("next month | nächsten Monat | le mois prochain | el próximo mes", period("2024-07-01", "2024-07-31")),
        ("last year | letztes Jahr | l'an dernier | el año pasado", period("2023-01-01", "2023-12-31")),
        ("last Friday | letzten Freitag | vendredi dernier | el viernes pasado", period("2024-06-07")),
        ("last Wednesday | letzten Mittwoch", period("2024-06-05")),
        ("next Wednesday | nächsten Mittwoch", period("2024-06-19")),
        ("this Friday", period("2024-06-14")),
        ("last weekend | letztes Wochenende | le week-end dernier", period("2024-06-08", "2024-06-09")),
        ("in spring | in the spring | im Frühling | au printemps | en primavera", period("2024-03-01", "2024-05-31")),
        ("in autumn | in the fall | im Herbst | en automne | en otoño", period("2023-09-01", "2023-11-30")),
        ("in winter | im Winter", period("2023-12-01", "2024-02-29")),
        ("in summer 2022 | summer of 2022 | im Sommer 2022", period("2022-06-01", "2022-08-31")),
        ("last summer | letzten Sommer | l'été dernier | in summer last year", period("2023-06-01", "2023-08-31")),
        ("last May | letzten Mai", period("2024-05-01", "2024-05-31")),
        ("last June", period("2023-06-01", "2023-06-30")),
        ("3 days ago | three days ago | vor drei Tagen | il y a 3 jours | hace tres días", period("2024-06-09")),
        ("a week ago | vor einer Woche | il y a une semaine | hace una semana", period("2024-06-02", "2024-06-08")),
        ("two months ago | vor zwei Monaten | il y a deux mois | hace dos meses", period("2024-03-29", "2024-04-28")),
        ("a few days ago | vor ein paar Tagen | hace unos días", period("2024-06-07", "2024-06-10")),
        ("an hour ago", period("2024-06-12")),
        ("in two weeks | two weeks from now | dans deux semaines", period("2024-06-23", "2024-06-29")),
        ("the past two weeks | the last 2 weeks | in den letzten zwei Wochen", period("2024-05-29", "2024-06-12")),
        ("the other day | l'autre jour | el otro día", period("2024-05-29", "2024-06-11")),
    ],
)  # fmt: skip
def test_relative_dates_count_from_now_in_four_languages(questions: str, expected: Period) -> None:
    for question in questions.split(" | "):
        assert dates_named(question, NOW) == [expected], question


@pytest.mark.parametrize("question", ["on Wednesday", "am Mittwoch", "mercredi", "el miércoles"])
def test_a_weekday_is_today_or_the_last_one_and_the_next_one(question: str) -> None:
    assert dates_named(question, NOW) == [period("2024-06-12"), period("2024-06-19")]


def test_a_winter_of_a_year_is_either_of_its_two() -> None:
    found = dates_named("in winter 2022", NOW)
    assert set(found) == {period("2021-12-01", "2022-02-28"), period("2022-12-01", "2023-02-28")}


def test_a_month_or_day_of_last_year_is_one_date() -> None:
    assert dates_named("What did we do in May last year?", NOW) == [NamedDate(2023, 5)]
    assert dates_named("And on 8 May last year?", NOW) == [NamedDate(2023, 5, 8)]


def test_each_date_counts_once_and_only_so_many_do() -> None:
    assert len(dates_named("yesterday " * 100, NOW)) == 1
    assert len(dates_named(" ".join(f"{days} days ago" for days in range(1, 100)), NOW)) == MAX_DATES


@pytest.mark.parametrize(
    "question",
    [
        "Was ist hier los?",
        "Guten Morgen!",
        "Der Morgen war kalt",
        "Every Monday I swim",
        "jeden Montag",
        "Is this an issue?",
        "How far can I run in an hour?",
        "Spring is a framework, and prices fall",
        "the last one may win",
        "At the end of the day",
        "hoy en día",
        "1000 days ago, 500 centuries ago",
        "in the year of our Lord",
    ],
)
def test_other_words_are_no_relative_dates(question: str) -> None:
    assert dates_named(question, NOW) == []


def test_days_are_those_of_the_asker() -> None:
    evening_in_new_york = datetime(2024, 6, 11, 22, 0, tzinfo=timezone(timedelta(hours=-4)))
    [today] = dates_named("What did I do today?", evening_in_new_york)
    assert today.matches(datetime(2024, 6, 12, 1, 0, tzinfo=UTC))
    assert not today.matches(datetime(2024, 6, 11, 2, 0, tzinfo=UTC))


@pytest.mark.parametrize(
    "question",
    [
        "What is my most recent order?",
        "the latest version",
        "as we did last time",
        "Where do I currently live?",
        "Was haben wir zuletzt gesagt?",
        "beim letzten Mal",
        "la dernière fois",
        "la última  vez",
    ],
)
def test_a_wish_for_the_newest_is_no_date(question: str) -> None:
    assert asks_latest(question)
    assert dates_named(question, NOW) == []


@pytest.mark.parametrize("question", ["When did we first meet?", "last year", "a last resort", "translate"])
def test_other_questions_do_not_ask_for_the_newest(question: str) -> None:
    assert not asks_latest(question)


_WORDS = [
    *PHRASES,
    *BEFORE,
    *AFTER,
    *COUNTS,
    *UNITS,
    *WEEKDAYS,
    *SEASONS,
    "ago",
    "vor",
    "in",
    "the",
    "May",
    "8",
    "999",
    "٣",
]
_QUESTIONS = st.text() | st.lists(st.sampled_from(_WORDS), max_size=12).map(" ".join)


@given(_QUESTIONS, st.datetimes(timezones=st.none() | st.timezones()))
def test_any_question_at_any_time_names_periods_that_do_not_end_before_they_begin(text: str, now: datetime) -> None:
    for each in dates_named(text, now):
        if isinstance(each, Period):
            assert each.first <= each.last


@given(st.integers(0, 999), st.datetimes(datetime(1000, 1, 1), datetime(9000, 1, 1)))
def test_days_ago_and_days_ahead_are_that_day(days: int, now: datetime) -> None:
    [ago] = dates_named(f"{days} days ago", now)
    [ahead] = dates_named(f"in {days} days", now)
    assert ago.matches(now - timedelta(days))
    assert ahead.matches(now + timedelta(days))
    assert not ago.matches(now - timedelta(days + 1))
    assert not ahead.matches(now + timedelta(days + 1))


def _period(question: str, now: datetime) -> Period:
    [named] = dates_named(question, now)
    assert isinstance(named, Period)
    return named


@given(st.sampled_from(sorted(WEEKDAYS)), st.datetimes(datetime(1000, 1, 1), datetime(9000, 1, 1)))
def test_the_last_weekday_is_within_a_week_before_and_the_next_within_a_week_after(weekday: str, now: datetime) -> None:
    last, following = (_period(f"{which} {weekday}", now) for which in ("last", "next"))
    assert last.first.weekday() == following.first.weekday() == WEEKDAYS[weekday]
    assert timedelta(1) <= now.date() - last.first <= timedelta(7)
    assert timedelta(1) <= following.first - now.date() <= timedelta(7)


@given(st.sampled_from(["week", "month", "year"]), st.datetimes(datetime(1000, 1, 1), datetime(9000, 1, 1)))
def test_last_this_and_next_follow_each_other_without_a_gap(unit: str, now: datetime) -> None:
    last, this, following = (_period(f"{which} {unit}", now) for which in ("last", "this", "next"))
    assert this.matches(now)
    assert last.last + timedelta(1) == this.first
    assert this.last + timedelta(1) == following.first
