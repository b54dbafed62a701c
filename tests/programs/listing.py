"""The programs, what each needs and how it should end, and the names that are public and must appear in one."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

import recollect.doors
from recollect import ContextService, MemoryManager
from recollect.doors.cli.main import cli
from recollect.doors.mcp import toolsets
from recollect.doors.rest.route_modules import ROUTE_MODULES
from tests.architecture.test_docs import blocks

FOLDER = Path(__file__).parent
NEW_DIRECTORY = "a new data directory"
OWN_DATABASE = "a database of its own"

# Folders of programs for doors that the package has: another door needs another line, and programs.
DOORS = {
    "library": ("library", "context_service"),
    "mcp": ("mcp",),
    "rest": ("rest", "gateway", "serve"),
    "cli": ("cli", "agent"),
    "console": ("console",),
}


@dataclass(frozen=True, slots=True)
class Program:
    """A file that runs as a process. Comments in it say what it needs, and how it ends if not with 0 and silently."""

    path: Path

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def text(self) -> str:
        return self.path.read_text()

    @property
    def exit_codes(self) -> set[int]:
        return set(map(int, re.findall(r"-?\d+", self._noted("exit") or "0")))

    @property
    def last_line_of_stderr(self) -> str | None:
        return self._noted("stderr")

    @property
    def needs(self) -> str | None:
        return self._noted("needs")

    def _noted(self, what: str) -> str | None:
        found = re.search(rf"^# {what}: (.+)$", self.text, re.M)
        return found[1] if found else None


PROGRAMS = [Program(path) for suffix in ("py", "sh") for path in sorted(FOLDER.glob(f"*/*.{suffix}"))]


def written(*folders: str) -> str:
    """Everything that the programs of some doors say."""
    return "\n".join(program.text for program in PROGRAMS if program.path.parent.name in folders)


def public_names() -> Iterator[tuple[str, str, bool]]:
    """Everything public: what it is, how a program uses it, and whether one does."""
    yield from _methods(MemoryManager, "library")
    yield from _methods(ContextService, "context_service")
    yield from _commands()
    yield from _tools()
    yield from _routes()


def doors() -> set[str]:
    """The doors of the package."""
    folder = Path(next(iter(recollect.doors.__path__)))
    return {door.parent.name for door in folder.glob("*/__init__.py")}


def _methods(door: type, folder: str) -> Iterator[tuple[str, str, bool]]:
    said = written(folder)
    for name, _ in inspect.getmembers(door, callable):
        if not name.startswith("_"):
            yield f"{door.__name__}.{name}", f"{folder}/*.py: .{name}(...)", f".{name}(" in said


def _commands() -> Iterator[tuple[str, str, bool]]:
    """The pages' commands run as processes too."""
    said = written("cli", "serve", "mcp") + "\n".join(body for _, body in blocks("sh"))
    quoted = re.sub(r'["\',\[\]]', "", said)
    for name in _leaves(cli, "recollect"):
        yield f"`{name}`", f"cli/*.sh: {name}", re.search(rf"\b{name}\b", quoted) is not None


def _leaves(command: click.Command, name: str) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield name
        return
    for child, part in command.commands.items():
        yield from _leaves(part, f"{name} {child}")


def _tools() -> Iterator[tuple[str, str, bool]]:
    said = written("mcp")
    for tool in toolsets.definitions(toolsets.EVERY):
        name = tool.function.__name__
        yield f"the MCP tool {name}", f'mcp/*.py: call("{name}", ...)', f'("{name}"' in said


def _routes() -> Iterator[tuple[str, str, bool]]:
    said = written("rest", "gateway")
    for door in ROUTE_MODULES:
        for route in door.router.routes:
            for method in route.methods:
                path = route.path.replace(":path}", "}")
                asked = f'ask("{method}", "{path}"'
                used = asked in said or f'client.{method.lower()}("{path}"' in said
                yield f"{method} {path}", f"rest/*.py or gateway/*.py: {asked}, ...)", used
