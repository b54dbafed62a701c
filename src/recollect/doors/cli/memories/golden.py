"""`recollect golden`: maintain the golden set, measure search with it, and chart the results."""

import dataclasses
import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recollect import checks
from recollect.doors.cli.memories import trend
from recollect.doors.cli.one_command import with_engine
from recollect.doors.cli.printing import Styled, echo, print_json, shortened
from recollect.doors.expectations import insight_ids
from recollect.errors import Invalid, NotFound
from recollect.flows.cognitive.golden_test import Entry
from recollect.language.lengths import length_of
from recollect.memory.cognitive.golden import GoldenQuery, GoldenRun, PutQuery

MAX_SHOWN_CHARACTERS = 60
NONE = "none"


def add(query: str, expected: Sequence[str], as_json: bool) -> None:
    """Add one query, or change what it expects."""
    ids = [] if list(expected) == [NONE] else insight_ids(expected, "--expect")
    (put,) = _put([Entry(query, ids if expected else None)])
    _print_added([put], as_json)
    if as_json or put.change == "added":
        return
    before, now = _ids(put.expected_before or []), _ids(put.expected_ids)
    changes = f"still expects {now}" if put.change == "unchanged" else f"expected {before} and now expects {now}"
    echo(f"Already in the golden set; it {changes}.", err=True)


def import_file(path: Path, as_json: bool) -> None:
    """Add the queries of a file, all or none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as problem:
        raise Invalid(f"{path} is not UTF-8 text") from problem
    entries = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{path} line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as problem:
            raise Invalid(f"{place} is not JSON: {checks.json_fault(problem)}") from problem
        if not isinstance(row, dict) or "query" not in row or row.keys() - {"query", "expect"}:
            raise Invalid(f"{place} must be an object with query, a string, and expect, a list of ids of insights")
        entries.append(Entry(row["query"], row.get("expect"), f"{place}: "))
    if not entries:
        raise Invalid(f"{path} has no queries: each line is an object with query and expect")
    added = _put(entries)
    if as_json:
        _print_added(added, as_json)
    else:
        changes = Counter(query.change for query in added)
        echo(
            f"Imported {len(added)} queries from {path}: "
            f"{changes['added']} new, {changes['changed']} changed, {changes['unchanged']} unchanged."
        )


def accept(query_id: int, as_json: bool) -> None:
    """Let a query expect what both judges found relevant."""
    accepted = with_engine(lambda engine: engine.ground_truth.accept(engine.settings.namespace, query_id))
    if as_json:
        fates = {name: ids for name, ids in dataclasses.asdict(accepted).items() if name != "query"}
        print_json({"id": accepted.query.id, "expect": accepted.query.expected_ids} | fates)
        return
    echo(f"Query {query_id} expects {_ids(accepted.query.expected_ids)}: {_ids(accepted.added)} added.")
    for ids, why in (
        (accepted.already_expected, "already expected"),
        (accepted.irrelevant, "irrelevant to both judges"),
        (accepted.disputed, "relevant to one judge only"),
        (accepted.unknown, "relevant to both, but no insight has that id"),
    ):
        if ids:
            echo(f"  {why}: {_ids(ids)}")


def show(as_json: bool) -> None:
    """Print the golden set."""
    queries = with_engine(lambda engine: engine.golden_test.queries(engine.settings.namespace))
    if as_json:
        print_json([_as_json(query) for query in queries])
        return
    for query in queries:
        expected = _ids(query.expected_ids) if query.expected_ids else "nothing yet (not measured)"
        shown = shortened(query.query, MAX_SHOWN_CHARACTERS)
        echo(f"{query.id:>6}  {length_of(query.query):<6}  {shown}  expects {expected}")
    if not queries:
        echo("The golden set is empty. Add a query with `recollect golden add QUERY --expect ID`.", err=True)


def remove(query_id: int) -> None:
    """Take one query out of the golden set."""
    with_engine(lambda engine: engine.golden_test.remove(engine.settings.namespace, query_id))
    echo(f"Removed {query_id}.")


def run(new_baseline: bool, as_json: bool) -> bool:
    """Measure and print; says whether there is drift."""
    report = with_engine(lambda engine: engine.golden_test.run(engine.settings.namespace, new_baseline=new_baseline))
    run = report.run
    if as_json:
        breakdown = {length: dataclasses.asdict(part) for length, part in report.breakdown.items()}
        changes = dataclasses.asdict(report.changes)
        details = {"details": report.details, "query_breakdown": breakdown, "set_changes": changes}
        print_json(_run_as_json(run) | details)
        return run.drift_detected
    echo(
        f"{run.day}  precision at 5: {run.precision_at_5:.3f}  baseline: {run.baseline_precision:.3f}  "
        f"queries: {run.queries_tested}"
    )
    for length, part in report.breakdown.items():
        precision = "-" if part.precision_at_5 is None else f"{part.precision_at_5:.3f}"
        echo(f"  {length:<7} {part.count:>4}  {precision}")
    echo(Styled(report.details, fg="red" if run.drift_detected else None))
    return run.drift_detected


def plot(limit: int, image: Path | None, as_json: bool) -> None:
    """Print the trend, and write it as a picture."""
    runs = with_engine(lambda engine: engine.golden_test.history(engine.settings.namespace, limit))
    if not runs:
        raise NotFound("The golden test has not been run yet: use `recollect golden run`")
    if image is not None:
        picture = trend.svg(runs)
        try:
            image.write_text(picture, encoding="utf-8")
        except OSError as problem:
            raise Invalid(f"{image} cannot be written: {problem.strerror}") from problem
    if as_json:
        print_json([_run_as_json(run) for run in runs])
        return
    echo(trend.chart(runs, shutil.get_terminal_size().columns))
    echo("* precision at 5   ! drift   - baseline")
    if image is not None:
        echo(f"Wrote {image}.")


def judgements(query_id: int, as_json: bool) -> None:
    """Print every score of both judges for a query."""
    found = with_engine(lambda engine: engine.judges.judgements(engine.settings.namespace, query_id))
    if as_json:
        print_json([{"id": one.id, "judged_at": one.judged_at} | dataclasses.asdict(one.evaluation) for one in found])
        return
    for judgement in found:
        evaluation = judgement.evaluation
        echo(
            f"{judgement.judged_at:%Y-%m-%d %H:%M}  kappa {evaluation.kappa:.2f} ({evaluation.agreement})  "
            f"{evaluation.judge1_model} {evaluation.judge1_score:.2f}  "
            f"{evaluation.judge2_model} {evaluation.judge2_score:.2f}"
            + ("  (one document: kappa is not meaningful)" if len(evaluation.scores) == 1 else "")
        )
        for score in evaluation.scores:
            echo(f"  document {score.document_id}: {score.judge1_score:.2f} and {score.judge2_score:.2f}")
    if not found:
        echo(f"Query {query_id} has not been judged yet.", err=True)


def _ids(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids)) or "nothing"


def _put(entries: Sequence[Entry]) -> list[PutQuery]:
    return with_engine(lambda engine: engine.golden_test.add(engine.settings.namespace, entries))


def _print_added(added: Sequence[PutQuery], as_json: bool) -> None:
    if as_json:
        changes = [{"change": query.change, "expected_before": query.expected_before} for query in added]
        print_json([_as_json(query) | change for query, change in zip(added, changes, strict=True)])
    else:
        echo("\n".join(str(query.id) for query in added))


def _as_json(query: GoldenQuery) -> dict[str, Any]:
    return {"id": query.id, "query": query.query, "expect": query.expected_ids, "type": length_of(query.query)}


def _run_as_json(run: GoldenRun) -> dict[str, Any]:
    """The contract's names."""
    return {
        "date": run.day.isoformat(),
        "precision_at_5": run.precision_at_5,
        "baseline_precision": run.baseline_precision,
        "drift_detected": run.drift_detected,
        "queries_tested": run.queries_tested,
    }
