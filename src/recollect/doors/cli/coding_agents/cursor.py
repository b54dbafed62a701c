"""Cursor: servers in mcp.json, hooks in hooks.json; the answer of a turn comes with an event of its own."""

from pathlib import Path

from recollect.doors.cli.coding_agents.agent import SECONDS, Agent, Files

CURSOR = Agent(
    "cursor",
    "Cursor",
    lambda: Files(Path.home() / ".cursor" / "mcp.json", Path.home() / ".cursor" / "hooks.json"),
    Files(Path(".cursor/mcp.json"), Path(".cursor/hooks.json")),
    {
        "sessionStart": "start",
        "beforeSubmitPrompt": "prompt",
        "afterAgentResponse": "answer",
        "stop": "turn",
        "sessionEnd": "end",
    },
    lambda _, command, __: {"command": command, "timeout": SECONDS},
    lambda url, headers: {"url": url} | ({"headers": dict(headers)} if headers else {}),
    new_hooks_file='{\n  "version": 1\n}\n',
    after="Open a new chat in Cursor.",
)
