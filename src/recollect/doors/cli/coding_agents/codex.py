"""Codex: servers in config.toml, hooks in hooks.json beside it."""

from pathlib import Path

from recollect.doors.cli.coding_agents.agent import Agent, Files, folder, group

VARIABLE = "CODEX_HOME"

CODEX = Agent(
    "codex",
    "Codex",
    lambda: Files(folder(VARIABLE, ".codex") / "config.toml", folder(VARIABLE, ".codex") / "hooks.json"),
    Files(Path(".codex/config.toml"), Path(".codex/hooks.json")),
    {"SessionStart": "start", "UserPromptSubmit": "prompt", "Stop": "turn", "SessionEnd": "end"},
    group,
    lambda url, headers: {"url": url} | ({"http_headers": dict(headers)} if headers else {}),
    servers=("mcp_servers",),
    after="Start a new session of Codex, and trust the hooks with /hooks: it runs none that you have not looked at.",
)
