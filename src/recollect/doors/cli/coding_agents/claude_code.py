"""Claude Code: servers in ~/.claude.json or .mcp.json, hooks in its settings."""

from pathlib import Path

from recollect.doors.cli.coding_agents.agent import Agent, Files, folder, group

VARIABLE = "CLAUDE_CONFIG_DIR"

CLAUDE_CODE = Agent(
    "claude-code",
    "Claude Code",
    lambda: Files(folder(VARIABLE, "") / ".claude.json", folder(VARIABLE, ".claude") / "settings.json"),
    # The settings that are not shared: paths of this machine do not belong into a repository.
    Files(Path(".mcp.json"), Path(".claude/settings.local.json")),
    {"SessionStart": "start", "UserPromptSubmit": "prompt", "Stop": "turn", "SessionEnd": "end"},
    group,
    lambda url, headers: {"type": "http", "url": url} | ({"headers": dict(headers)} if headers else {}),
    after="Start a new session of Claude Code.",
)
