"""The command `recollect why` and its options."""

import click

from recollect.doors.cli.namespace_option import namespace_option


@click.command()
@click.argument("item_id", metavar="ID")
@namespace_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def why(item_id: str, as_json: bool) -> None:
    """Tell the story of the item ID: what it says, who stored and changed it, and what it was made from.

    ID is as recall prints it, such as memory:ID or insight:12. Memories that were superseded or deleted have a story,
    too.
    """
    from recollect.doors.cli.memories.why import run

    run(item_id, as_json)
