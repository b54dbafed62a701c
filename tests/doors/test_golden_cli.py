"""`recollect golden`, run as a user runs it."""

import json
import os
import subprocess
import xml.etree.ElementTree as ElementTree
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest

from recollect.doors.cli.memories import trend
from recollect.engine import Engine
from recollect.memory.cognitive.golden import GoldenRun
from recollect.memory.cognitive.judging import Evaluation, JudgeScore, Judging
from recollect.tasks import in_thread
from tests.commands import recollect
from tests.flows.test_hybrid_search import fill

DAY = date(2026, 3, 1)


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return recollect("golden", *arguments, env=os.environ | {"COLUMNS": "80"})


def ok(*arguments: str) -> str:
    result = run(*arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def some_runs(*precisions: float, baseline: float = 0.8) -> list[GoldenRun]:
    return [
        GoldenRun(DAY + timedelta(days=number), precision, baseline, precision < baseline * 0.95, 10, "set")
        for number, precision in enumerate(precisions)
    ]


async def test_a_golden_set_is_made_measured_and_found_to_drift(engine: Engine, namespace: str, tmp_path: Path) -> None:
    stored = await fill(engine, namespace)
    first = ok("add", "train to Lisbon", "--expect", f"{stored[0]},insight:{stored[1]}", "--expect", str(stored[3]))
    file = tmp_path / "golden.jsonl"
    rows: list[dict[str, Any]] = [
        {"query": "What did the doctor say?", "expect": stored[:1]},
        {"query": "to be judged"},
    ]
    file.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    assert ok("import", str(file)) == f"Imported 2 queries from {file}: 2 new, 0 changed, 0 unchanged.\n"

    listed = json.loads(ok("list", "--json"))
    assert [(query["query"], query["expect"], query["type"]) for query in listed] == [
        ("train to Lisbon", [stored[0], stored[1], stored[3]], "short"),
        ("What did the doctor say?", stored[:1], "short"),
        ("to be judged", [], "short"),
    ]
    assert str(listed[0]["id"]) == first.strip()
    assert "not measured" in ok("list")

    answer = json.loads(ok("run", "--json"))
    assert list(answer) == [
        "date",
        "precision_at_5",
        "baseline_precision",
        "drift_detected",
        "queries_tested",
        "details",
        "query_breakdown",
        "set_changes",
    ]
    assert (answer["precision_at_5"], answer["drift_detected"], answer["queries_tested"]) == (0.4, False, 2)
    assert answer["query_breakdown"]["long"] == {"count": 0, "precision_at_5": None}

    await engine.forget.item(namespace, f"insight:{stored[0]}")
    drifted = await in_thread(run, "run")
    assert drifted.returncode == 3
    assert "precision at 5: 0.200  baseline: 0.400" in drifted.stdout
    assert "Drift: precision at 5 is 0.200, 50.0% below the baseline" in drifted.stdout
    accepted = await in_thread(run, "run", "--new-baseline")
    assert (accepted.returncode, "baseline: 0.200" in accepted.stdout) == (0, True)

    again = await in_thread(run, "add", "train to Lisbon")
    assert (again.stdout, again.stderr) == (
        first,
        f"Already in the golden set; it still expects {stored[0]}, {stored[1]}, {stored[3]}.\n",
    )
    assert (await in_thread(run, "add", "train to Lisbon", "--expect", str(stored[3]))).stderr == (
        f"Already in the golden set; it expected {stored[0]}, {stored[1]}, {stored[3]} and now expects {stored[3]}.\n"
    )
    changed = json.loads(ok("add", "train to Lisbon", "--expect", "none", "--json"))[0]
    assert (changed["expect"], changed["change"], changed["expected_before"]) == ([], "changed", stored[3:])
    assert ok("remove", first.strip()) == f"Removed {first.strip()}.\n"
    assert len(json.loads(ok("list", "--json"))) == 2


async def test_the_trend_is_drawn_in_the_terminal_and_as_a_picture(
    engine: Engine, namespace: str, tmp_path: Path
) -> None:
    runs = some_runs(0.8, 0.82, 0.7)
    async with engine.database.transaction(namespace) as tx:
        for each in runs:
            await engine.capabilities.golden.record(tx, each, [])
    picture = tmp_path / "trend.svg"
    drawn = ok("plot", "--svg", str(picture))
    assert drawn.startswith(trend.chart(runs, 80))
    assert f"Wrote {picture}." in drawn
    assert picture.read_text() == trend.svg(runs)
    assert [run["date"] for run in json.loads(ok("plot", "--json", "--days", "2"))] == ["2026-03-02", "2026-03-03"]


async def test_every_score_of_the_judges_can_be_read(engine: Engine, namespace: str) -> None:
    query_id = int(ok("add", "to be judged"))
    scores = (JudgeScore(7, 0.9, "It fits.", 0.25, "It does not."),)
    async with engine.database.transaction(namespace) as tx:
        await Judging().add(tx, Evaluation(query_id, "asked", "one", "two", 0.9, 0.25, 0.0, "slight", scores))
    shown = ok("judgements", str(query_id))
    assert "kappa 0.00 (slight)  one 0.90  two 0.25" in shown
    assert "document 7: 0.90 and 0.25" in shown
    (judged,) = json.loads(ok("judgements", str(query_id), "--json"))
    assert judged["scores"][0]["judge2_reason"] == "It does not."


async def test_what_both_judges_found_relevant_is_accepted_by_a_command(engine: Engine, namespace: str) -> None:
    stored = await fill(engine, namespace)
    query_id = int(ok("add", "train to Lisbon", "--expect", str(stored[0])))
    scores = (JudgeScore(stored[3], 0.9, "It fits.", 1.0, "Yes."), JudgeScore(stored[1], 0.9, "It fits.", 0.5, "No."))
    async with engine.database.transaction(namespace) as tx:
        await Judging().add(tx, Evaluation(query_id, "Train to Lisbon?", "one", "two", 0.9, 0.7, 0.0, "slight", scores))
    assert ok("accept", str(query_id)) == (
        f"Query {query_id} expects {stored[0]}, {stored[3]}: {stored[3]} added.\n"
        f"  relevant to one judge only: {stored[1]}\n"
    )
    again = json.loads(ok("accept", str(query_id), "--json"))
    assert (again["expect"], again["added"], again["already_expected"]) == ([stored[0], stored[3]], [], [stored[3]])


def test_bad_commands_are_one_sentence_and_an_exit_code(engine: Engine, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"query": "fine"}\n{"query": "fine", "expected": [1]}\n')
    worse = tmp_path / "worse.jsonl"
    worse.write_text('{"query": "fine"}\n\n{"query": "", "expect": []}\n')
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    for arguments, code, sentence in (
        (("add", "tea", "--expect", "one"), 2, "--expect takes comma-separated insight ids"),
        (("add", "tea", "--expect", "1"), 1, "expect contains unknown insight ids: 1"),
        (("import", str(bad)), 2, "bad.jsonl line 2 must be an object with query"),
        (("import", str(worse)), 2, "worse.jsonl line 3: query is empty"),
        (("import", str(empty)), 2, "empty.jsonl has no queries"),
        (("remove", "1"), 1, "query_id 1 is not in the golden set"),
        (("run",), 1, "The golden test set is empty"),
        (("plot",), 1, "has not been run yet"),
        (("plot", "--days", "0"), 2, "limit must be between"),
        (("judgements", "1"), 1, "query_id 1 is not in the golden set"),
    ):
        result = run(*arguments)
        assert result.returncode == code, (arguments, result.stderr)
        assert sentence in result.stderr
        assert "Traceback" not in result.stderr
    assert run("list").stdout == ""


def test_a_chart_marks_precision_drift_and_baseline() -> None:
    assert trend.chart(some_runs(0.8, 0.82, 0.7), 80).splitlines() == [
        " 0.82  *",
        "      *--",
        "",
        " 0.78",
        "",
        "",
        " 0.74",
        "",
        "",
        " 0.70   !",
        "      2026-03-01 to 2026-03-03",
    ]


@pytest.mark.parametrize("precisions", [[0.0], [1.0], [0.5, 0.5], [0.2] * 200])
def test_a_level_line_and_a_long_one_are_drawn_within_the_width(precisions: list[float]) -> None:
    runs = some_runs(*precisions, baseline=precisions[0])
    lines = trend.chart(runs, 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.count("*") for line in lines) == min(len(precisions), 74)
    assert ElementTree.fromstring(trend.svg(runs)).tag == "{http://www.w3.org/2000/svg}svg"


def test_a_picture_has_a_mark_for_every_run_and_squares_for_drift() -> None:
    picture = ElementTree.fromstring(trend.svg(some_runs(0.8, 0.82, 0.7)))
    space = "{http://www.w3.org/2000/svg}"
    assert [mark.findtext(f"{space}title") for mark in picture.findall(f"{space}circle")] == [
        "2026-03-01: 0.800",
        "2026-03-02: 0.820",
    ]
    (drift,) = [mark for mark in picture.findall(f"{space}rect") if mark.find(f"{space}title") is not None]
    assert drift.findtext(f"{space}title") == "2026-03-03: 0.700, drift"
