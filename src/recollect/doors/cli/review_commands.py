"""The commands `recollect review ...` and their options."""

import click

from recollect.doors.cli.namespace_option import namespace_option


@click.group()
def review() -> None:
    """List what screening found (RECOLLECT_DEFENCE), and release or forget it."""


@review.command("list")
@click.option(
    "--state",
    type=click.Choice(["held", "warned", "released"]),
    help="Only items in this state.  [default: held, warned]",
)
@namespace_option
@click.option("--limit", type=int, default=50, show_default=True, help="Maximum number of items.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_items(state: str | None, limit: int, as_json: bool) -> None:
    """List suspicious items with the reasons, newest first."""
    from recollect.doors.cli.operating.review import show

    show(state, limit, as_json)


@review.command("screen")
@namespace_option
def screen_stored() -> None:
    """Screen what is already stored, as RECOLLECT_DEFENCE says. Released items stay released. Can be run again."""
    from recollect.doors.cli.operating.review import screen

    screen()


@review.command()
@click.argument("item", metavar="ID")
@namespace_option
def release(item: str) -> None:
    """Release the item ID, as `recollect review list` prints it, so that recall finds it."""
    from recollect.doors.cli.operating.review import release as run

    run(item)


@review.command()
@click.argument("item", metavar="ID")
@namespace_option
@click.option("--dry-run", is_flag=True, help="Count what would be deleted; delete nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def forget(item: str, dry_run: bool, yes: bool) -> None:
    """Permanently delete the item ID: lists what will be deleted, asks for confirmation, and prints a receipt."""
    from recollect.doors.cli.operating.review import forget as run

    run(item, dry_run, yes)
