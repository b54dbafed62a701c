"""Charts: what they draw, and what they say to somebody who cannot see them."""

from xml.etree import ElementTree

import pytest

from recollect.doors.console import charts
from recollect.doors.console.charts import Column, Mark

HOURS = [Column("09:00", (3, 1)), Column("10:00", (0, 0)), Column("11:00", (1200, 800))]


def elements(chart: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(f"<div>{chart}</div>").iter(tag))


def test_columns_stand_on_each_other_and_reach_as_far_as_their_figures() -> None:
    chart = charts.columns("Writes per hour", ("Messages", "Memories"), HOURS)
    drawn = [rect for rect in elements(chart, "rect") if rect.get("class") in ("s1", "s2") and rect.get("y")]
    assert [float(rect.attrib["height"]) for rect in drawn] == [0.15, 0.05, 60, 40]
    assert [float(rect.attrib["y"]) for rect in drawn] == [pytest.approx(99.85, abs=0.06), 99.8, 40, 0]
    assert [title.text for title in elements(chart, "title")] == [
        "09:00: Messages 3, Memories 1",
        "10:00: Messages 0, Memories 0",
        "11:00: Messages 1,200, Memories 800",
    ]


def test_a_chart_has_its_figures_as_text() -> None:
    chart = charts.columns("Writes per hour", ("Messages", "Memories"), HOURS)
    assert "Writes per hour, 09:00 to 11:00: the most is 2,000 (11:00), the last 2,000" in chart
    assert [cell.text for cell in elements(chart, "td")] == ["3", "1", "0", "0", "1,200", "800"]
    assert [head.text for head in elements(chart, "th")][:3] == ["When", "Messages", "Memories"]


def test_a_line_has_a_rule_at_its_threshold() -> None:
    chart = charts.line("Precision", [Mark("1 May", 0.5), Mark("2 May", 1.0)], threshold=0.8, top=1)
    rules = [path.get("d") for path in elements(chart, "path") if path.get("class") == "rule"]
    assert rules == ["M0 20H1000"]
    assert [path.get("d") for path in elements(chart, "path") if path.get("class") == "line"] == ["M250 50L750 0"]
    assert "at least 0.8" in chart


def test_a_line_shows_what_each_figure_was_compared_with_and_which_fell_too_far() -> None:
    runs = [Mark("1 May", 0.5), Mark("2 May", 0.25, warns=True)]
    chart = charts.line("Precision", runs, top=1, baseline=[0.5, 0.5])
    paths = {path.get("class"): path.get("d") for path in elements(chart, "path")}
    assert paths["line before"] == "M0 50h500M500 50h500"
    assert paths["line dot warns"] == "M750 75h0"
    assert "2 May: 0.25, below the threshold" in chart
    assert "the most is 0.5 (1 May), the last 0.25" in chart
    assert [cell.text for cell in elements(chart, "td")] == ["0.5", "0.5", "0.25", "0.5"]


def test_a_bar_is_as_long_as_what_is_used_and_changes_its_colour_beyond_the_bound() -> None:
    used = elements(charts.bar(250, 1000, "250 of 1,000 tokens"), "rect")[1]
    assert (used.get("width"), used.get("class")) == ("250", "s1")
    over = elements(charts.bar(3000, 1000, "3,000 of 1,000 tokens"), "rect")[1]
    assert (over.get("width"), over.get("class")) == ("1000", "minus")
    assert elements(charts.bar(5, 0, "no bound"), "rect")[1].get("width") == "0"


def test_charts_without_figures_say_so_and_stored_names_are_text() -> None:
    assert "Recalls: nothing yet" in charts.columns("Recalls", ("Recalls",), [])
    assert "nothing yet" in charts.line("Precision", [])
    assert "<script>" not in charts.columns("x", ("<script>", "b"), [Column("<script>", (1, 2))])


@pytest.mark.parametrize(("value", "top"), [(0, 1), (1, 1), (3, 5), (7, 10), (120, 200), (0.83, 1), (1_000_000, 1e6)])
def test_an_axis_ends_at_a_round_figure(value: float, top: float) -> None:
    assert charts.rounded_up(value) == top
