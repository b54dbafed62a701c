"""The command `recollect watch` and its options."""

import click

from recollect.doors.cli.namespace_option import namespace_option


@click.command()
@click.option(
    "--since",
    type=click.IntRange(min=0),
    metavar="NUMBER",
    help="Start after this change; 0 starts with the first.  [default: only new changes; with --once, 0]",
)
@namespace_option
@click.option("--once", is_flag=True, help="Print the changes there are, then exit.")
@click.option("--json", "as_json", is_flag=True, help="Print each change as a line of JSON.")
def watch(since: int | None, once: bool, as_json: bool) -> None:
    """Print what happens to memories, in order, until Ctrl-C.

    To continue later without missing anything, pass the number of the last change as --since.
    """
    from recollect.doors.cli.memories.watch import run

    run(since, once, as_json)
