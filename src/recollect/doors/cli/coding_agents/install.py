"""`recollect install` and `recollect uninstall`: connect a coding agent to the memory, and take that back."""

import getpass
import os
import shlex
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from recollect import checks
from recollect import settings as environment
from recollect.doors.cli.coding_agents import hook as hook_command
from recollect.doors.cli.coding_agents import record as records
from recollect.doors.cli.coding_agents.agent import SERVER, Agent
from recollect.doors.cli.coding_agents.claude_code import CLAUDE_CODE
from recollect.doors.cli.coding_agents.codex import CODEX
from recollect.doors.cli.coding_agents.cursor import CURSOR
from recollect.doors.cli.coding_agents.edits import Change, Entry, installing, is_complete, remove_folders, uninstalling
from recollect.doors.cli.coding_agents.gemini_cli import GEMINI_CLI
from recollect.doors.cli.coding_agents.record import Hook, Record
from recollect.doors.cli.one_command import confirmed
from recollect.doors.cli.printing import Styled, echo
from recollect.doors.mcp import toolsets as mcp_toolsets
from recollect.errors import Invalid
from recollect.settings import PREFIX, Settings
from recollect.storage.opening import place as where

AGENTS = {agent.name: agent for agent in (CLAUDE_CODE, CODEX, CURSOR, GEMINI_CLI)}

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_LOG_LINES = 5


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
    hook = _hook(agent, user, namespace, url, sys.stdin.readline().strip() if key == "-" else key)
    if scope is not None and hook.key:
        raise Invalid("A key in a project's file could be shared by mistake: install it without --project")
    mcp_toolsets.chosen(toolsets)
    files = agent.files(scope)
    entries = {files.hooks: _hooks(agent, place)}
    entries[files.mcp] = [_server(agent, hook, toolsets), *entries.get(files.mcp, [])]
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
    records.remove(place)
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
        echo(f"Background process: {_process(known.hook)}")
    if waiting := records.waiting(place):
        echo(f"{waiting} turn(s) wait to be stored")
    failures = _failures(place)
    echo(f"Last failures, in {records.home() / hook_command.LOG}:" if failures else "No failures are recorded")
    for line in failures:
        echo(f"  {line}")
    return 1 if lost else 0


def _scope(project: bool) -> Path | None:
    return Path.cwd() if project else None


def _hook(agent: Agent, user: str | None, namespace: str | None, url: str | None, key: str | None) -> Hook:
    settings = environment.load()
    if url is None and key is not None:
        raise Invalid("--key is for a server: name it with --url")
    if url is not None:
        _check_url(url, namespace)
    elif settings.database_url is not None:
        raise Invalid(
            "RECOLLECT_DATABASE_URL is set, and agents do not pass such settings on to their hooks. "
            "Start `recollect serve`, and install with --url."
        )
    chosen = {} if url is not None else _settings(settings, namespace)
    memory = f"{chosen.get(f'{PREFIX}NAMESPACE', settings.namespace)} {where(settings)}"
    return Hook(
        agent.name,
        checks.identifier(user or getpass.getuser(), "user"),
        user is not None,
        url,
        key,
        sys.executable,
        chosen,
        f"{sha256(memory.encode()).hexdigest()[:16]}.sock",
    )


def _check_url(url: str, namespace: str | None) -> None:
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise Invalid(f"--url must be the address of a server, such as http://127.0.0.1:8000, not {url!r}")
    if namespace is not None:
        raise Invalid("--namespace is for a memory on this machine: a server knows the namespace by the key")


def _settings(settings: Settings, namespace: str | None) -> dict[str, str]:
    """The settings that this shell has, which an agent may not pass on; secrets are not written."""
    fields = Settings.model_fields
    kept = {
        f"{PREFIX}{name.upper()}": os.environ[f"{PREFIX}{name.upper()}"]
        for name in fields
        if f"{PREFIX}{name.upper()}" in os.environ and not isinstance(getattr(settings, name), SecretStr)
    }
    if settings.data_dir is not None:
        kept[f"{PREFIX}DATA_DIR"] = str(settings.data_dir.absolute())
    if namespace is not None:
        kept[f"{PREFIX}NAMESPACE"] = checks.namespace(namespace)
    return kept


def _hooks(agent: Agent, place: Path) -> list[Entry]:
    """The last first: each is put before those that are there."""
    script = str(Path(hook_command.__file__))
    return [
        Entry(
            ("hooks", event),
            agent.handler(event, shlex.join([sys.executable, "-I", "-S", script, str(place), kind]), kind),
            is_item=True,
        )
        for event, kind in reversed(list(agent.events.items()))
    ]


def _server(agent: Agent, hook: Hook, toolsets: str) -> Entry:
    path = (*agent.servers, SERVER)
    if hook.url is not None:
        headers = {"Authorization": f"Bearer {hook.key}"} if hook.key else {}
        return Entry(path, agent.remote(f"{hook.url.rstrip('/')}/mcp", headers), is_item=False)
    command = {
        "command": str(Path(sys.executable).with_name("recollect")),
        "args": ["mcp", "--toolsets", toolsets],
    }
    return Entry(path, command | ({"env": dict(hook.settings)} if hook.settings else {}), is_item=False)


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


def _process(hook: Hook) -> str:
    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        os.chdir(records.home())  # the path of a socket may have a hundred characters
        connection.connect(hook.socket)
        return f"running, with the process id {Path(hook.socket).with_suffix('.lock').read_text()}"
    return "not running; the next prompt starts it"


def _failures(place: Path) -> list[str]:
    """The last lines of the log that are about an installation."""
    with suppress(FileNotFoundError):
        lines = (records.home() / hook_command.LOG).read_text(errors="replace").splitlines()
        return [line for line in lines if f" {place.name} " in line][-_LOG_LINES:]
    return []
