"""The commands `recollect audit ...` and their options."""

from pathlib import Path

import click


@click.group()
def audit() -> None:
    """See who read and changed what (RECOLLECT_AUDIT), and verify that the log was not tampered with."""


_NAMESPACE = click.option("--namespace", help="Namespace of the log.  [default: default, or RECOLLECT_NAMESPACE]")


@audit.command("list")
@_NAMESPACE
@click.option("--by", metavar="WHO", help="Only lines of this key, by its id or label, or of this gateway user.")
@click.option("--door", help="Only lines of this door: rest, gateway, mcp, console, cli or library.")
@click.option("--action", help="Only lines of this route, tool, command or method.")
@click.option("--outcome", type=click.Choice(["done", "refused", "failed"]), help="Only lines with this outcome.")
@click.option("--item", metavar="KIND:ID", help="Only lines that touched this item, or any item of a KIND.")
@click.option("--before", type=int, metavar="NUMBER", help="Only lines before this one.")
@click.option("--limit", type=int, default=50, show_default=True, help="Maximum number of lines.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_lines(
    namespace: str | None,
    by: str | None,
    door: str | None,
    action: str | None,
    outcome: str | None,
    item: str | None,
    before: int | None,
    limit: int,
    as_json: bool,
) -> None:
    """List operations, newest first: who did what, when, through which door, and to which items."""
    from recollect.doors.audits import audit_filter
    from recollect.doors.cli.operating.audit import show

    show(namespace, audit_filter(by, door, action, outcome, item), before, limit, as_json)


@audit.command()
@_NAMESPACE
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def export(namespace: str | None, file: Path, force: bool) -> None:
    """Write all lines with their hashes to FILE as JSON Lines (`-`: standard output).

    Keep it where the database administrators cannot change it: `recollect audit verify --against FILE` detects even a
    log that was rewritten from scratch.
    """
    from recollect.doors.cli.operating.audit import export as run

    run(namespace, file, force)


@audit.command()
@_NAMESPACE
@click.option(
    "--against",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Also check that every line of this earlier export is still there.",
)
def verify(namespace: str | None, against: Path | None) -> None:
    """Recompute the hash chain. If the log was altered, print the first wrong line and exit with 1."""
    from recollect.doors.cli.operating.audit import verify as run

    run(namespace, against)


@audit.command()
@_NAMESPACE
@click.option("--before", required=True, metavar="WHEN", help="Delete lines before this date or time, UTC.")
@click.option("--dry-run", is_flag=True, help="Only count what would be deleted.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
def prune(namespace: str | None, before: str, dry_run: bool, yes: bool) -> None:
    """Delete old lines. A new line records the deletion, and the rest can still be verified."""
    from recollect.doors.cli.operating.audit import prune as run

    run(namespace, before, dry_run, yes)
