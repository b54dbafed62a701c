"""`recollect memories prune`: counts old memories, asks, and deletes them."""

import sys

import click

from recollect.doors.cli.durations import seconds
from recollect.doors.cli.memories.forget import ask, receipt_lines
from recollect.doors.cli.one_command import chosen_namespace, command, opened_engine
from recollect.doors.cli.printing import echo, one_line
from recollect.flows.forgetting.prune import Pruned, not_changed_for

MAX_SHOWN_USERS = 10


@command
async def run(
    *,
    older_than: str,
    user: str | None,
    category: str | None,
    agent: str | None,
    namespace: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Delete memories that have not changed for long."""
    unchanged = not_changed_for(seconds(older_than, "--older-than"), user, agent, category)
    async with opened_engine() as engine:
        where = chosen_namespace(engine, namespace)
        expected = await engine.prune.count(where, unchanged)
        if not expected.receipt.rows:
            echo(f"{expected.receipt.what}: there are none")
            return
        if dry_run:
            _print(expected, "would be deleted")
            return
        if not yes:
            ask(where, _lines(expected))
        # Hidden where there is no terminal; on standard error, so that the receipt can be piped on.
        length = expected.receipt.total
        with click.progressbar(length=length, label="Pruning", show_pos=True, file=sys.stderr) as bar:
            pruned = await engine.prune.prune(where, unchanged, lambda gone: bar.update(gone - bar.pos))
        _print(pruned, "deleted")


def _print(pruned: Pruned, outcome: str) -> None:
    echo(f"{pruned.receipt.what}: {outcome}")
    for line in _lines(pruned):
        echo(line)


def _lines(pruned: Pruned) -> list[str]:
    users = list(pruned.by_user.items())
    shown = [("of no user" if user is None else f"of user {one_line(user)}", n) for user, n in users[:MAX_SHOWN_USERS]]
    if rest := users[MAX_SHOWN_USERS:]:
        shown.append((f"of {len(rest):,} other users", sum(count for _, count in rest)))
    shown += [(f"of category {category}", count) for category, count in pruned.by_category.items()]
    return [*receipt_lines(pruned.receipt), "Of the memories:", *(f"{count:>12,}  {name}" for name, count in shown)]
