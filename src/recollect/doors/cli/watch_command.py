"""The command `recollect watch` and its options."""

import click


@click.command()
@click.option(
    "--since",
    type=click.IntRange(min=0),
    metavar="NUMBER",
    help="Begin behind this change; 0 for the first.  [default: what comes from now on; with --once, the first]",
)
@click.option("--once", is_flag=True, help="Print the changes there are, then exit.")
@click.option("--json", "as_json", is_flag=True, help="Print each change as a line of JSON.")
def watch(since: int | None, once: bool, as_json: bool) -> None:
    """Print what happens to memories, in order, until Ctrl-C.

    The number of the last change is the cursor to go on from with --since: nothing is missed in between.
    """
    from recollect.doors.cli.memories.watch import run

    run(since, once, as_json)
