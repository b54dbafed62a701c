"""What is written for an agent: its MCP server, its hooks, and the record that the hooks read."""

import getpass
import os
import shlex
import sys
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from recollect import checks
from recollect import settings as environment
from recollect.doors.cli.coding_agents import hook as hook_command
from recollect.doors.cli.coding_agents.agent import SERVER, Agent
from recollect.doors.cli.coding_agents.edits import Entry
from recollect.doors.cli.coding_agents.record import Hook, socket_name
from recollect.errors import Invalid
from recollect.settings import PREFIX, Settings


def hook_of(agent: Agent, user: str | None, namespace: str | None, url: str | None, key: str | None) -> Hook:
    """Whose memory the hooks use, and where it is."""
    settings = environment.load()
    if url is None and key is not None:
        raise Invalid("--key is for a server: name it with --url")
    if url is not None and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
        raise Invalid(f"--url must be the address of a server, such as http://127.0.0.1:8000, not {url!r}")
    if url is not None and namespace is not None:
        raise Invalid("--namespace is for a memory on this machine: a server knows the namespace by the key")
    if url is None and settings.database_url is not None:
        raise Invalid(
            "RECOLLECT_DATABASE_URL is set, and agents do not pass such settings on to their hooks. "
            "Start `recollect serve`, and install with --url."
        )
    chosen = {} if url is not None else _settings(settings, namespace)
    return Hook(
        agent.name,
        checks.identifier(user or getpass.getuser(), "user"),
        user is not None,
        url,
        key,
        sys.executable,
        chosen,
        socket_name(settings, namespace or settings.namespace),
    )


def _settings(settings: Settings, namespace: str | None) -> dict[str, str]:
    """The settings that this shell has, which an agent may not pass on; secrets are not written."""
    variables = {f"{PREFIX}{name.upper()}": getattr(settings, name) for name in Settings.model_fields}
    kept = {
        name: os.environ[name]
        for name, value in variables.items()
        if name in os.environ and not isinstance(value, SecretStr)
    }
    if settings.data_dir is not None:
        kept[f"{PREFIX}DATA_DIR"] = str(settings.data_dir.absolute())
    return kept | {f"{PREFIX}NAMESPACE": checks.namespace(namespace or settings.namespace)}


def hooks(agent: Agent, place: Path) -> list[Entry]:
    """One for each event, the last first: each is put before those that are there."""
    script = str(Path(hook_command.__file__))
    return [
        Entry(
            ("hooks", event),
            agent.handler(event, shlex.join([sys.executable, "-I", "-S", script, str(place), kind]), kind),
            is_item=True,
        )
        for event, kind in reversed(list(agent.events.items()))
    ]


def server(agent: Agent, hook: Hook, toolsets: str) -> Entry:
    """The MCP server: a process of this machine, or one at a URL."""
    path = (*agent.servers, SERVER)
    if hook.url is not None:
        headers = {"Authorization": f"Bearer {hook.key}"} if hook.key else {}
        return Entry(path, agent.remote(f"{hook.url.rstrip('/')}/mcp", headers), is_item=False)
    command = {
        "command": str(Path(sys.executable).with_name("recollect")),
        "args": ["mcp", "--toolsets", toolsets],
    }
    return Entry(path, command | {"env": dict(hook.settings)}, is_item=False)
