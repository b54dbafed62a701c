"""Gemini CLI: servers and hooks in one settings.json, which may have comments."""

from pathlib import Path

from recollect.doors.cli.coding_agents.agent import SECONDS, Agent, Files

GEMINI_CLI = Agent(
    "gemini-cli",
    "Gemini CLI",
    lambda: Files(Path.home() / ".gemini" / "settings.json", Path.home() / ".gemini" / "settings.json"),
    Files(Path(".gemini/settings.json"), Path(".gemini/settings.json")),
    {"SessionStart": "start", "BeforeAgent": "prompt", "AfterAgent": "turn", "SessionEnd": "end"},
    lambda _, command, kind: {
        "hooks": [{"name": f"recollect-{kind}", "type": "command", "command": command, "timeout": 1000 * SECONDS}]
    },
    lambda url, headers: {"httpUrl": url} | ({"headers": dict(headers)} if headers else {}),
    after="Start a new session of Gemini CLI.",
)
