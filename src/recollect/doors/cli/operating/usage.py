"""`recollect usage`: LLM usage and what is left of today's token budget."""

import dataclasses

from recollect.doors.cli.one_command import command, opened_engine
from recollect.doors.cli.printing import echo, print_json

_TITLES = ("day", "feature", "model", "requests", "input", "output")


@command
async def run(days: int, as_json: bool) -> None:
    """Print usage by day, feature and model."""
    async with opened_engine() as engine:
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
        if not lines:
            echo("No LLM usage.")
        rows = [
            (str(line.day), line.feature, line.model, *(f"{n:,}" for n in dataclasses.astuple(line)[3:]))
            for line in lines
        ]
        widths = [max(map(len, column)) for column in zip(_TITLES, *rows, strict=True)]
        for row in [_TITLES, *rows] if rows else []:
            texts = [cell.ljust(width) for cell, width in zip(row[:3], widths[:3], strict=True)]
            numbers = [cell.rjust(width) for cell, width in zip(row[3:], widths[3:], strict=True)]
            echo("  ".join(texts + numbers))
        echo(f"Namespace {namespace!r} has used {spent:,} of {budget:,} tokens today (UTC).")
