"""`recollect usage`: LLM usage and what is left of today's token budget."""

import dataclasses

from recollect.doors.cli.one_command import with_engine
from recollect.doors.cli.printing import echo, print_json
from recollect.engine import Engine
from recollect.memory.accounts.usage import UsageLine

_TITLES = ("day", "feature", "model", "requests", "input", "output")


def run(days: int, as_json: bool) -> None:
    """Print usage by day, feature and model."""
    with_engine(lambda engine: _show(engine, days, as_json))


async def _show(engine: Engine, days: int, as_json: bool) -> None:
    namespace, budget = engine.settings.namespace, engine.spending.daily_tokens
    lines = await engine.spending.lines(namespace, days)
    spent = await engine.spending.spent_today(namespace)
    if as_json:
        document = {
            "namespace": namespace,
            "spent_today": spent,
            "daily_tokens": budget,
            "usage": [dataclasses.asdict(line) for line in lines],
        }
        print_json(document)
        return
    _print_table(lines)
    echo(f"Namespace {namespace!r} has used {spent:,} of {budget:,} tokens today (UTC).")


def _print_table(lines: list[UsageLine]) -> None:
    rows = [_TITLES] + [
        (str(line.day), line.feature, line.model, *(f"{n:,}" for n in dataclasses.astuple(line)[3:])) for line in lines
    ]
    if len(rows) == 1:
        echo("No LLM usage.")
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        texts = [cell.ljust(width) for cell, width in zip(row[:3], widths[:3], strict=True)]
        numbers = [cell.rjust(width) for cell, width in zip(row[3:], widths[3:], strict=True)]
        echo("  ".join(texts + numbers))
