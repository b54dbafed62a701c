"""Dates: what a question says about time, and nothing it does not say."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.language.dates import NamedDate, dates_named

NOW = datetime(2024, 6, 12, 15, 0, tzinfo=UTC)

DAY = NamedDate(2023, 5, 8)


@pytest.mark.parametrize(
    "question",
    [
        "What happened on 2023-05-08?",
        "What happened at 2023-05-08T10:30?",
        "What happened on 8 May 2023?",
        "What happened on 8 May, 2023?",
        "What happened on the 8th of May 2023?",
        "What happened on May 8, 2023?",
        "What happened on may 8th 2023?",
        "Was geschah am 8. Mai 2023?",
        "Que s'est-il passé le 8 mai 2023 ?",
        "¿Qué pasó el 8 de mayo de 2023?",
        "¿Qué pasó el 8 de mayo del 2023?",
    ],
)
def test_a_day_is_read_in_every_usual_form(question: str) -> None:
    assert dates_named(question, NOW) == [DAY]


@pytest.mark.parametrize(
    ("question", "date"),
    [
        ("What did she do on 3 Jan?", NamedDate(month=1, day=3)),
        ("Qu'a-t-elle fait le 1er août ?", NamedDate(month=8, day=1)),
        ("What did we plan for Sept. 2022?", NamedDate(2022, 9)),
        ("Was war im März 2022?", NamedDate(2022, 3)),
        ("What did we do in October?", NamedDate(month=10)),
        ("Was haben wir im Oktober gemacht?", NamedDate(month=10)),
        ("Qu'avons-nous fait en mars ?", NamedDate(month=3)),
        ("¿Qué hicimos en mayo?", NamedDate(month=5)),
        ("Who won in 1998?", NamedDate(1998)),
    ],
)
def test_what_is_not_said_stays_open(question: str, date: NamedDate) -> None:
    assert dates_named(question, NOW) == [date]


def test_several_dates_are_all_read() -> None:
    assert set(dates_named("Between 3 May 2021 and June 2022, or in 2024?", NOW)) == {
        NamedDate(2021, 5, 3),
        NamedDate(2022, 6),
        NamedDate(2024),
    }


@pytest.mark.parametrize(
    "question",
    [
        "",
        "It may rain, we march on",
        "Is there life on Mars?",
        "Did you put mayo on it?",
        "2023-13-01",
        "2023-02-30",
        "2023-05-45",
        "30 February",
        "room 2512, flat 3000, version 1.2.2023.4",
        "12345",
    ],
)
def test_nonsense_and_other_words_are_no_dates(question: str) -> None:
    assert dates_named(question, NOW) == []


def test_an_impossible_day_leaves_the_month() -> None:
    assert dates_named("What was on 45 May 2023?", NOW) == [NamedDate(2023, 5)]


def test_a_date_matches_the_times_that_have_all_its_parts() -> None:
    at = datetime(2023, 5, 8, 13, 30)
    assert DAY.matches(at)
    assert NamedDate(month=5).matches(at)
    assert NamedDate(2023).matches(at)
    assert not NamedDate(2023, 6).matches(at)
    assert not NamedDate(month=5, day=9).matches(at)


@given(
    st.text() | st.lists(st.sampled_from(["May", "8", "2023", "-", "45", "13", " ", "en", "de", "٣", "."])).map("".join)
)
def test_any_question_names_only_dates_that_exist(question: str) -> None:
    assert all(date.exists() for date in dates_named(question, NOW) if isinstance(date, NamedDate))


@given(st.datetimes(datetime(1900, 1, 1), datetime(2099, 12, 31)))
def test_an_iso_date_matches_its_own_day(at: datetime) -> None:
    [date] = dates_named(f"What did I do on {at.date().isoformat()}?", NOW)
    assert date.matches(at)
