"""The page that `make bench` writes: one table of one machine, in which no figure passes for another's."""

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import __main__ as bench
from benchmarks import page
from benchmarks.report import Report
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[1]
MACHINE = page.machine("18.4", "0.8.5")
ORDER = ["first", "second", "third"]
CELLS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="\\"), min_size=1)


def figures(*rows: tuple[str, str, str]) -> Report:
    report = Report()
    for row in rows:
        report.add(*row)
    return report


def shown(path: Path) -> list[tuple[str, str, str]]:
    return [(row.part, row.what, row.figure) for row in page.kept(path, MACHINE)]


def test_a_part_that_is_measured_again_replaces_its_own_rows_alone(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    page.update(path, MACHINE, "second", figures(("a|b", "1 ms", "< 2 ms"), ("gone", "3 ms", "")), ORDER)
    page.update(path, MACHINE, "first", figures(("c", "0.9", "")), ORDER)
    yesterday = page.kept(path, MACHINE)[0].day
    path.write_text(path.read_text().replace(yesterday, "2020-01-01"))
    page.update(path, MACHINE, "second", figures(("a|b", "2 ms", "< 2 ms")), ORDER)
    assert shown(path) == [("first", "c", "0.9"), ("second", "a|b", "2 ms")]
    assert [row.day == "2020-01-01" for row in page.kept(path, MACHINE)] == [True, False]
    assert MACHINE in path.read_text()
    assert list(tmp_path.iterdir()) == [path]


def test_figures_of_another_machine_and_of_parts_that_are_gone_do_not_stay(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    page.update(path, page.machine("17.0", "0.8.5"), "first", figures(("a", "1 ms", "")), ORDER)
    page.update(path, MACHINE, "second", figures(("b", "2 ms", "")), ORDER)
    assert shown(path) == [("second", "b", "2 ms")]
    page.update(path, MACHINE, "third", figures(("c", "3 ms", "")), ["third"])
    assert shown(path) == [("third", "c", "3 ms")]


@given(CELLS, CELLS, CELLS)
def test_a_row_is_read_as_it_was_written(what: str, figure: str, bar: str) -> None:
    row = page.Row("part", what, figure, bar, "2026-01-01")
    assert page._row(page._line(row).removesuffix("\n")) == row


def test_every_module_that_measures_is_a_part() -> None:
    parts = set(bench.benchmarks([]))
    for module in (ROOT / "benchmarks").glob("*.py"):
        if "from benchmarks.report import Report" in module.read_text() and module.stem not in ("__main__", "page"):
            assert module.stem in parts, f"{module.name} is not run by `make bench`"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nonsense"], "unknown benchmark: nonsense"),
        (["summaries"], "summaries needs conversations"),
        (["yardsticks"], "give a file of turns and one of questions"),
    ],
    ids=["unknown", "summaries without a corpus", "yardsticks without a corpus"],
)
def test_what_cannot_be_measured_is_said_before_anything_is(arguments: list[str], sentence: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 2
    assert sentence in result.stderr


async def test_summaries_are_measured_on_the_given_conversations(tmp_path: Path) -> None:
    corpus = tmp_path / "talks.jsonl"
    said = '{"conversation": "c", "speaker": "Ann", "text": "We met in Lisbon on 3 May, and it rained all %d days."}\n'
    corpus.write_text("".join(said % day for day in range(400)))
    report = Report()
    await bench.benchmarks([corpus])["summaries"](report, tmp_path)
    assert report.rows[0][0].startswith("talks: names, numbers and dates kept")
