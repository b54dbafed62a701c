"""The record of an installation: what the hooks need to know, and what was written where."""

import json
import os
import shutil
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from recollect.doors.cli.coding_agents.edits import Written
from recollect.doors.cli.coding_agents.hook import LOG
from recollect.errors import Misconfigured
from recollect.settings import Settings
from recollect.storage.opening import place as where

LOG_LINES = 5
"""Of failures that are worth a look."""

IDLE_SECONDS = 30 * 60
"""How long the background process stays without a question: an agent may work alone for a while."""


def home() -> Path:
    """Where records, logs and sockets of the hooks are."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "recollect" / "coding-agents"


def folder(agent: str, project: Path | None) -> Path:
    """Of one installation."""
    mark = "" if project is None else f"-{sha256(str(project).encode()).hexdigest()[:8]}"
    return home() / f"{agent}{mark}"


def socket_name(settings: Settings, namespace: str) -> str:
    """Of the process that answers hooks for a namespace of a data directory."""
    memory = f"{namespace} {where(settings)}"
    return f"{sha256(memory.encode()).hexdigest()[:16]}.sock"


@dataclass(frozen=True, slots=True)
class Hook:
    """What the hook's command reads: whose memory it is, and how to reach it."""

    agent: str
    user: str
    only_user: bool
    url: str | None
    key: str | None
    python: str
    settings: Mapping[str, str]
    socket: str
    idle_seconds: float = IDLE_SECONDS


@dataclass(frozen=True, slots=True)
class Record:
    """One installation."""

    hook: Hook
    files: tuple[Written, ...]

    @classmethod
    def read(cls, place: Path) -> Self | None:
        """None if nothing is installed there."""
        try:
            read: dict[str, Any] = json.loads((place / "record.json").read_text())
            return cls(Hook(**read["hook"]), tuple(map(Written.of, read["files"])))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as problem:
            raise Misconfigured(f"{place / 'record.json'} is damaged: delete it, and install again") from problem

    def of(self, file: Path) -> Written | None:
        """What was put into a file."""
        return next((written for written in self.files if written.file == str(file)), None)

    def write(self, place: Path) -> None:
        """For the user's eyes only: it may hold a key, and prompts wait beside it."""
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        place.parent.chmod(0o700)
        part = place / "record.json.new"
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(asdict(self), file, indent=2)
        part.replace(place / "record.json")


def waiting(place: Path) -> int:
    """Turns that were not stored yet."""
    return len(list((place / "turns").glob("*.json")))


def remove(place: Path, agent: str) -> None:
    """The record, and what the hooks kept: of sessions only if the agent is not connected elsewhere. Logs stay."""
    shutil.rmtree(place)
    if not any(home().glob(f"{agent}*/record.json")):
        for file in (home() / "sessions").glob(f"{agent}-*.json"):
            file.unlink(missing_ok=True)
    with suppress(OSError):
        place.parent.rmdir()


def process(hook: Hook) -> str:
    """Whether the background process runs, in words."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        os.chdir(home())  # the path of a socket may have a hundred characters
        connection.connect(hook.socket)
        return f"running, with the process id {Path(hook.socket).with_suffix('.lock').read_text()}"
    return "not running; the next prompt starts it"


def failures(place: Path) -> list[str]:
    """The last lines of the log that are about an installation."""
    with suppress(FileNotFoundError):
        lines = (home() / LOG).read_text(errors="replace").splitlines()
        return [line for line in lines if f" {place.name} " in line][-LOG_LINES:]
    return []
