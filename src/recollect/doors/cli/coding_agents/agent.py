"""What a coding agent looks like to the installer: its files, their formats, and its events."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

SERVER = "recollect"
"""The name of the MCP server in the agent's configuration."""

# The hook gives up long before; Codex takes no more for the end of a session.
SECONDS = 10
END_SECONDS = 3

Kind = Literal["start", "prompt", "answer", "turn", "end"]


@dataclass(frozen=True, slots=True)
class Files:
    """Where one scope of an agent's configuration is; a project's is relative to its folder."""

    mcp: Path
    hooks: Path


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent, as data. The values of hooks and servers are written as they are into its files."""

    name: str
    title: str
    user_files: Callable[[], Files]
    project_files: Files
    events: Mapping[str, Kind]
    """The agent's names of events, and what we do at each."""
    handler: Callable[[str, str, Kind], Any]
    """An item of an event's list: from the name of the event, the command and what it does."""
    remote: Callable[[str, Mapping[str, str]], Mapping[str, Any]]
    """A server at a URL, with headers."""
    servers: Sequence[str] = ("mcpServers",)
    """Where the servers are in the file."""
    new_hooks_file: str = ""
    """What a file of hooks holds besides, where it does not exist yet."""
    after: str = ""
    """What the user has to do then."""

    def files(self, project: Path | None) -> Files:
        """Of the user, or of a project."""
        if project is None:
            return self.user_files()
        return Files(project / self.project_files.mcp, project / self.project_files.hooks)


def folder(variable: str, usual: str) -> Path:
    """Where an agent keeps its configuration: where a variable says, or at the usual place in the user's home."""
    return Path(os.environ.get(variable) or Path.home() / usual)


def group(_: str, command: str, kind: Kind) -> Any:
    """A handler as Claude Code has it, and Codex after it: a group of one command."""
    seconds = END_SECONDS if kind == "end" else SECONDS
    return {"hooks": [{"type": "command", "command": command, "timeout": seconds}]}
