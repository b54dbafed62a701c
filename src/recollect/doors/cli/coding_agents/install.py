"""`recollect install` and `recollect uninstall`: connect a coding agent to the memory, and take that back."""

import sys
from collections.abc import Sequence
from pathlib import Path

from recollect.doors.cli.coding_agents import record as records
from recollect.doors.cli.coding_agents.claude_code import CLAUDE_CODE
from recollect.doors.cli.coding_agents.codex import CODEX
from recollect.doors.cli.coding_agents.cursor import CURSOR
from recollect.doors.cli.coding_agents.edits import Change, installing, is_complete, remove_folders, uninstalling
from recollect.doors.cli.coding_agents.entries import hook_of, hooks, server
from recollect.doors.cli.coding_agents.gemini_cli import GEMINI_CLI
from recollect.doors.cli.coding_agents.hook import LOG
from recollect.doors.cli.coding_agents.record import Hook, Record
from recollect.doors.cli.one_command import confirmed
from recollect.doors.cli.printing import Styled, echo
from recollect.doors.mcp import toolsets as mcp_toolsets
from recollect.errors import Invalid
from recollect.settings import PREFIX

AGENTS = {agent.name: agent for agent in (CLAUDE_CODE, CODEX, CURSOR, GEMINI_CLI)}

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def install(
    name: str,
    *,
    project: bool,
    user: str | None,
    namespace: str | None,
    url: str | None,
    key: str | None,
    toolsets: str,
    yes: bool,
) -> None:
    """Show what would be written, ask, and write it."""
    agent, scope = AGENTS[name], _scope(project)
    place = records.folder(name, scope)
    known = Record.read(place)
    hook = hook_of(agent, user, namespace, url, sys.stdin.readline().strip() if key == "-" else key)
    if scope is not None and hook.key:
        raise Invalid("A key in a project's file could be shared by mistake: install it without --project")
    mcp_toolsets.chosen(toolsets)
    files = agent.files(scope)
    entries = {files.hooks: hooks(agent, place)}
    entries[files.mcp] = [server(agent, hook, toolsets), *entries.get(files.mcp, [])]
    changes = [
        installing(
            file, wanted, None if known is None else known.of(file), agent.new_hooks_file if file == files.hooks else ""
        )
        for file, wanted in entries.items()
    ]
    record = Record(hook, tuple(change.written for change in changes if change.written is not None))
    if not any(change.is_change for change in changes) and known == record:
        echo(f"{agent.title} is connected already.")
        return
    _show(changes, hook.key)
    if not _agreed(f"Connect {agent.title} to the memory?", yes):
        return
    record.write(place)
    for change in changes:
        change.write(is_secret=bool(hook.key) and change.file == files.mcp)
    echo(f"{agent.title} is connected to {_memory(hook)}. {agent.after}")


def uninstall(name: str, *, project: bool, yes: bool) -> None:
    """Take out what was put in, and nothing else."""
    agent, scope = AGENTS[name], _scope(project)
    place = records.folder(name, scope)
    known = Record.read(place)
    if known is None:
        raise Invalid(f"{agent.title} is not connected{' in this folder' if project else ''}: nothing to remove")
    hooks = str(agent.files(scope).hooks)
    changes = [uninstalling(written, agent.new_hooks_file if written.file == hooks else "") for written in known.files]
    _show(changes, known.hook.key)
    if not _agreed(f"Disconnect {agent.title}?", yes):
        return
    for change in changes:
        change.write()
    for written in known.files:
        remove_folders(written)
    if lost := records.waiting(place):
        echo(f"{lost} turn(s) had not reached the memory and are gone.", err=True)
    records.remove(place, name)
    echo(f"{agent.title} is disconnected. What it said stays in the memory.")


def check(name: str, *, project: bool) -> int:
    """Print whether an agent is connected and what went wrong lately; 1 if something needs attention."""
    agent, scope = AGENTS[name], _scope(project)
    place = records.folder(name, scope)
    known = Record.read(place)
    if known is None:
        echo(f"{agent.title} is not connected: run `recollect install {name}{' --project' if project else ''}`")
        return 1
    lost = [written.file for written in known.files if not is_complete(written)]
    for file in lost:
        echo(f"{file} lacks what was written there: run `recollect install {name}` again")
    echo(f"{agent.title} is connected to {_memory(known.hook)}")
    if known.hook.url is None:
        echo(f"Background process: {records.process(known.hook)}")
    if waiting := records.waiting(place):
        echo(f"{waiting} turn(s) wait to be stored")
    lately = records.failures(place)
    echo(f"Last failures, in {records.home() / LOG}:" if lately else "No failures are recorded")
    for line in lately:
        echo(f"  {line}")
    return 1 if lost else 0


def _scope(project: bool) -> Path | None:
    return Path.cwd() if project else None


def _show(changes: Sequence[Change], secret: str | None) -> None:
    for change in changes:
        for line in change.difference(secret):
            echo(Styled(line, fg=_COLOURS.get(line[:1])))


def _agreed(question: str, yes: bool) -> bool:
    if yes:
        return True
    if not sys.stdin.isatty():
        raise Invalid("There is no terminal to ask: add --yes to write this")
    return confirmed(question)


def _memory(hook: Hook) -> str:
    if hook.url is not None:
        return f"{hook.url}, as the user {hook.user}"
    namespace = hook.settings.get(f"{PREFIX}NAMESPACE", "default")
    return f"the namespace {namespace} of this machine, as the user {hook.user}"
