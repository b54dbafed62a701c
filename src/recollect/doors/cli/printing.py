"""Output of commands: stored text without control characters, JSON for programs, a progress bar for long work."""

import json
from dataclasses import dataclass
from typing import Any

import click

from recollect.flows.indexing.indexer import Indexer
from recollect.inference.failures import FAILURES
from recollect.language import controls


@dataclass(frozen=True, slots=True)
class Styled:
    """A piece of a line in a colour, in bold or dimmed."""

    text: str
    fg: str | None = None
    bold: bool | None = None
    dim: bool | None = None


def echo(*pieces: object, err: bool = False, nl: bool = True) -> None:
    """Print a line. Whatever its pieces hold, a terminal obeys only the styles given here."""
    shown = (
        click.style(controls.shown(piece.text), fg=piece.fg, bold=piece.bold, dim=piece.dim)
        if isinstance(piece, Styled)
        else controls.shown(str(piece))
        for piece in pieces
    )
    click.echo("".join(shown), err=err, nl=nl)


def rewind(width: int) -> None:
    """Blank out what stands on the line of standard error, and begin it anew."""
    click.echo(f"\r{' ' * width}\r", err=True, nl=False)


def print_json(document: Any) -> None:
    """One document, readable in every language; times as ISO 8601."""
    click.echo(controls.escaped_json(json.dumps(document, ensure_ascii=False, indent=2, default=str)))


async def indexed(indexer: Indexer, namespace: str) -> None:
    """Embed what is waiting, with a progress bar on a terminal; print why if nothing can be embedded."""
    waiting = await indexer.waiting(namespace)
    with click.progressbar(length=waiting, label="Indexing", show_pos=True) as bar:
        degraded = await indexer.flush(namespace, lambda left: bar.update(max(0, waiting - left - bar.pos)))
    _tell(degraded)


async def embed_if_short(indexer: Indexer, namespace: str) -> None:
    """Embed what was just stored if that is quick. A failure is printed; what was stored stays stored."""
    try:
        _tell(await indexer.flush_if_short(namespace))
    except FAILURES as problem:
        echo(f"Stored, but only keyword search can find it for now: {problem}", err=True)


def _tell(degraded: str | None) -> None:
    if degraded is not None:
        echo(degraded, err=True)


def one_line(text: str) -> str:
    """A name in a list: line breaks in it could look like entries of their own."""
    return text.replace("\n", "\\n").replace("\t", "\\t")


def shortened(text: str, most: int) -> str:
    """A text on one line, cut where it is too long."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
