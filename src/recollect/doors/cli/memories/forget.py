"""`recollect forget`: counts what will be deleted, asks, and deletes it permanently."""

import sys
from collections.abc import Sequence

import click

from recollect.doors.cli.one_command import command, confirmed, opened_engine
from recollect.doors.cli.printing import echo, one_line, print_json
from recollect.errors import Invalid
from recollect.flows.forgetting.receipts import Receipt
from recollect.flows.kinds.target import NAMESPACE, SESSION, USER, Target


@command
async def run(
    item_id: str | None,
    *,
    session: str | None,
    user: str | None,
    whole_namespace: str | None,
    twins: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Forget what exactly one of the arguments names."""
    named = {SESSION: session, USER: user, NAMESPACE: whole_namespace}
    given = [Target(kind, name) for kind, name in named.items() if name is not None]
    if item_id is not None:
        given.append(Target.named(item_id))
    if len(given) != 1:
        raise click.UsageError("Specify exactly one of: an ID, --session, --user or --whole-namespace.")
    (target,) = given
    async with opened_engine() as engine:
        namespace = target.id if target.kind == NAMESPACE else engine.settings.namespace
        expected = await engine.forget.count(namespace, target, twins=twins)
        if dry_run:
            print_receipt(expected, "would be forgotten", as_json)
            return
        if not yes:
            ask(namespace, receipt_lines(expected))
        # Hidden where there is no terminal; on standard error, so that the receipt can be piped on.
        with click.progressbar(length=expected.total, label="Forgetting", show_pos=True, file=sys.stderr) as bar:
            receipt = await engine.forget.forget(
                namespace, target, lambda gone: bar.update(gone - bar.pos), twins=twins
            )
        print_receipt(receipt, "forgotten", as_json)


def ask(namespace: str, expected: Sequence[str]) -> None:
    """Ask on a terminal whether all that these lines tell of is to go; without one, refuse."""
    echo(f"To be permanently deleted from namespace {namespace!r}:", err=True)
    for line in expected:
        echo(line, err=True)
    if not sys.stdin.isatty():
        raise Invalid("Nothing was deleted: no terminal to confirm on. Use --yes to delete, or --dry-run to count.")
    if not confirmed("Delete all of this?"):
        echo("Nothing was deleted.", err=True)
        sys.exit(1)


def print_receipt(receipt: Receipt, outcome: str, as_json: bool = False) -> None:
    """What was removed, or would be."""
    if as_json:
        document = {"what": receipt.what, "outcome": outcome, "rows": receipt.rows}
        print_json(document | {"insights_left": receipt.insights_left, "twins_left": receipt.twins_left})
        return
    echo(f"{one_line(receipt.what)}: {outcome}")
    for line in receipt_lines(receipt):
        echo(line)


def receipt_lines(receipt: Receipt) -> list[str]:
    """How many rows of each kind, and what is left."""
    lines = [f"{count:>12,}  {kind}" for kind, count in receipt.rows.items()]
    if receipt.insights_left:
        ids = ", ".join(f"insight:{insight_id}" for insight_id in receipt.insights_left)
        lines.append(f"Kept, because they are also based on messages that remain: {ids}")
    if receipt.twins_left:
        lines.append(f"Duplicates kept (use --twins to delete them too): {', '.join(receipt.twins_left)}")
    return lines
