"""Claude Code: servers in ~/.claude.json or .mcp.json, hooks in its settings."""

import os
from pathlib import Path

from recollect.doors.cli.coding_agents.agent import Agent, Files, group


def _user_files() -> Files:
    if folder := os.environ.get("CLAUDE_CONFIG_DIR"):
        return Files(Path(folder, ".claude.json"), Path(folder, "settings.json"))
    return Files(Path.home() / ".claude.json", Path.home() / ".claude" / "settings.json")


CLAUDE_CODE = Agent(
    "claude-code",
    "Claude Code",
    _user_files,
    # The settings that are not shared: paths of this machine do not belong into a repository.
    Files(Path(".mcp.json"), Path(".claude/settings.local.json")),
    {"SessionStart": "start", "UserPromptSubmit": "prompt", "Stop": "turn", "SessionEnd": "end"},
    group(10),
    lambda url, headers: {"type": "http", "url": url} | ({"headers": dict(headers)} if headers else {}),
    after="Start a new session of Claude Code.",
)
