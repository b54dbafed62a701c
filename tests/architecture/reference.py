"""Writes docs/cli.md and docs/settings.md from the commands and the settings: `make reference`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from recollect.doors.cli.main import cli
from recollect.settings import PREFIX, Settings

DOCS = Path(__file__).parents[2] / "docs"
WIDTH = 100

CLI_HEAD = """# The command line

Generated from the commands (`make reference`); `recollect COMMAND --help` prints the same. Every command reads the
[settings](settings.md) from the environment. Exit codes: 0 success, 1 failure, 2 usage error, 3 drift detected by
`recollect golden run`, 130 interrupted.
"""
SETTINGS_HEAD = f"""# Settings

Generated from the code (`make reference`). Each setting is an environment variable with the prefix `{PREFIX}`, read
once when a process starts. An empty value counts as not set; an unknown `{PREFIX}` variable is an error.

| variable | default | what it does |
|---|---|---|
"""


def pages() -> dict[str, str]:
    """Each page by its name, as it should be."""
    return {"cli.md": CLI_HEAD + "".join(sections(cli, "recollect")), "settings.md": SETTINGS_HEAD + "".join(rows())}


def sections(command: click.Command, path: str) -> Iterator[str]:
    context = click.Context(command, info_name=path, terminal_width=WIDTH, help_option_names=["-h", "--help"])
    yield f"\n## {path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from sections(command.commands[name], f"{path} {name}")


def rows() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        default = "" if field.default in (None, ()) else f"`{shown(field.default)}`"
        yield f"| `{PREFIX}{name.upper()}` | {default} | {field.description} |\n"


def shown(default: Any) -> str:
    if isinstance(default, tuple):
        return ",".join(default)
    return str(default).lower() if isinstance(default, bool) else str(default)


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text)
        print(f"docs/{name}")
