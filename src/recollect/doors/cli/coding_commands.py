"""The commands `recollect install` and `recollect uninstall`, and their options."""

import sys
from typing import Any

import click

_AGENT = click.argument("agent", type=click.Choice(["claude-code", "codex", "cursor", "gemini-cli"]))
_PROJECT = click.option(
    "--project", is_flag=True, help="Only for the project in this folder.  [default: for you, in every project]"
)
_YES = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


@click.command()
@_AGENT
@_PROJECT
@click.option(
    "--user",
    help="Whose memory it is: only this user's is recalled.  [default: your account, and all of the namespace]",
)
@click.option("--namespace", help="Namespace of the memory.  [default: default, or RECOLLECT_NAMESPACE]")
@click.option("--url", help="Use the server at this address instead of a process on this machine.")
@click.option("--key", help="Key for that server; - reads it from standard input. It is written, but not printed.")
@click.option("--toolsets", default="core", show_default=True, help="MCP tools to offer, as in `recollect mcp`.")
@click.option("--check", is_flag=True, help="Only show whether it is connected, and what went wrong lately.")
@_YES
def install(agent: str, check: bool, **options: Any) -> None:
    """Connect a coding agent: MCP tools, recall before prompts, and a memory of every turn.

    Shows what it will write into the agent's configuration, and asks. Everything else there stays as it is.
    """
    from recollect.doors.cli.coding_agents import install as command

    if check:
        sys.exit(command.check(agent, project=options["project"]))
    command.install(agent, **options)


@click.command()
@_AGENT
@_PROJECT
@_YES
def uninstall(agent: str, project: bool, yes: bool) -> None:
    """Disconnect a coding agent: takes out of its configuration what `recollect install` wrote."""
    from recollect.doors.cli.coding_agents import install as command

    command.uninstall(agent, project=project, yes=yes)
