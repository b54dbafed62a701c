"""How commands show things: JSON for programs, and texts short enough for a line."""

import json
from typing import Any

import click


def print_json(document: Any) -> None:
    """One document, readable in every language; times as ISO 8601."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=2, default=str))


def shortened(text: str, most: int) -> str:
    """A text on one line, cut where it is too long."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
