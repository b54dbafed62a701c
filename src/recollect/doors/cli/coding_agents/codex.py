"""Codex: servers in config.toml, hooks in hooks.json beside it."""

import os
from pathlib import Path

from recollect.doors.cli.coding_agents.agent import Agent, Files, group


def _user_files() -> Files:
    folder = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
    return Files(folder / "config.toml", folder / "hooks.json")


CODEX = Agent(
    "codex",
    "Codex",
    _user_files,
    Files(Path(".codex/config.toml"), Path(".codex/hooks.json")),
    {"SessionStart": "start", "UserPromptSubmit": "prompt", "Stop": "turn"},
    group(10),
    lambda url, headers: {"url": url} | ({"http_headers": dict(headers)} if headers else {}),
    servers=("mcp_servers",),
    after="Start a new session of Codex, and trust the hooks with /hooks: it runs none that you have not looked at.",
)
