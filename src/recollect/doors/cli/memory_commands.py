"""The commands `recollect remember` and `recollect memories`, and their options."""

import sys
from typing import Any

import click

from recollect.doors.cli.namespace_option import namespace_option

# Options of `remember` that only a memory of a user has, and the parameters that they fill.
_OF_MEMORIES = {
    "category": "--category",
    "key": "--key",
    "supersedes": "--supersedes",
    "valid_from": "--valid-from",
    "valid_until": "--valid-until",
    "expires_at": "--expires-at",
    "expires_in": "--expires-in",
    "pinned": "--pinned",
}

_AS_OF = click.option("--as-of", metavar="TIME", help="As it was then, such as 2026-02-14T12:00Z.  [default: now]")
_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@click.argument("text")
@namespace_option
@click.option("--user", help="Store it as a long-term memory of this user, listed by `recollect memories list`.")
@click.option("--category", help="semantic, episodic, fact or preference.  [default: fact]")
@click.option("--key", help='What it is about, such as "home city": a newer memory with the same key replaces it.')
@click.option("--supersedes", multiple=True, metavar="ID", help="A memory that it replaces. Can be repeated.")
@click.option("--valid-from", metavar="TIME", help="True in the world from then on, such as 2026-02-14T12:00Z.")
@click.option("--valid-until", metavar="TIME", help="True in the world until then.")
@click.option("--expires-at", metavar="TIME", help="Erase it at this time.")
@click.option("--expires-in", metavar="DURATION", help="Erase it after this long: seconds, or such as 12h, 90d or 2w.")
@click.option("--pinned", is_flag=True, help="Pin it: `memories list --pinned` lists pinned memories.")
def remember(text: str, user: str | None, **options: Any) -> None:
    """Store TEXT and print its id. Use - to read the text from standard input.

    All other options than --namespace and --user describe a long-term memory, so they need --user.
    """
    given = {name: value for name, value in options.items() if value}
    if given and user is None:
        names = ", ".join(_OF_MEMORIES[name] for name in given)
        raise click.UsageError(f"{names}: only a memory of a user has this. Name the user with --user.")
    from recollect.doors.cli.memories import remember_recall as memory

    memory.remember(sys.stdin.read().rstrip("\n") if text == "-" else text, user, **given)


@click.group()
def memories() -> None:
    """List and show long-term memories and their history, restore superseded ones, delete them and prune old ones."""


@memories.command("list")
@click.option("--user", help="Only this user's items.")
@namespace_option
@click.option("--agent", help="Only this agent's memories.")
@click.option("--session", help="Only this session's memories.")
@click.option("--key", help="Only memories with this key.")
@click.option("--pinned", is_flag=True, help="Only pinned memories.")
@click.option("--category", "categories", multiple=True, help="Only this category. Can be repeated.")
@_AS_OF
@click.option("--valid-at", metavar="TIME", help="Only what is true in the world then.")
@click.option("--limit", type=int, default=20, show_default=True, help="Maximum number of memories.")
@_AS_JSON
def list_memories(**options: Any) -> None:
    """List the memories in force, newest first."""
    from recollect.doors.cli.memories import memories

    memories.show_list(**options)


@memories.command("show")
@click.argument("memory_id")
@namespace_option
@_AS_OF
@_AS_JSON
def show_memory(memory_id: str, as_of: str | None, as_json: bool) -> None:
    """Show everything about the memory MEMORY_ID, even if it is superseded."""
    from recollect.doors.cli.memories import memories

    memories.show(memory_id, as_of, as_json)


@memories.command("history")
@click.argument("memory_id")
@namespace_option
@_AS_JSON
def memory_history(memory_id: str, as_json: bool) -> None:
    """Show what happened to the memory MEMORY_ID and why, even if it was deleted."""
    from recollect.doors.cli.memories import memories

    memories.history(memory_id, as_json)


@memories.command("undo")
@click.argument("memory_id")
@namespace_option
def undo_memory(memory_id: str) -> None:
    """Restore the memory MEMORY_ID, which a newer one superseded.

    If both have the same key, the newer one is superseded in turn.
    """
    from recollect.doors.cli.memories import memories

    memories.undo(memory_id)


@memories.command("delete")
@click.argument("memory_id")
@namespace_option
@click.option("--restore", is_flag=True, help="Restore the memories that it had superseded.")
def delete_memory(memory_id: str, restore: bool) -> None:
    """Permanently delete the memory MEMORY_ID and its past versions. Its history stays, without texts."""
    from recollect.doors.cli.memories import memories

    memories.delete(memory_id, restore)


@memories.command("prune")
@click.option("--older-than", required=True, metavar="AGE", help="Not changed for this long, such as 90d, 12h or 2w.")
@click.option("--user", help="Only this user's items.")
@click.option("--category", help="Only this category: semantic, episodic, fact or preference.")
@click.option("--agent", help="Only this agent's memories.")
@click.option("--namespace", help="Namespace to prune.  [default: default, or RECOLLECT_NAMESPACE]")
@click.option("--dry-run", is_flag=True, help="Count what would be deleted; delete nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def prune_memories(**options: Any) -> None:
    """Permanently delete memories that have not changed for a while, superseded ones included, but never pinned ones.

    The age of a memory that was never changed counts from when it was said, or else stored. Counts what will be
    deleted, asks for confirmation, and prints a receipt. Histories stay, without texts. If interrupted, run it again to
    continue.
    """
    from recollect.doors.cli.memories.prune import run

    run(**options)
