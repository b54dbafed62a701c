"""How commands show things: JSON for programs, texts short enough for a line, a bar for long work."""

import json
from typing import Any

import click

from recollect.flows.indexing import Indexer
from recollect.inference.failures import FAILURES


def print_json(document: Any) -> None:
    """One document, readable in every language; times as ISO 8601."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=2, default=str))


async def indexed(indexer: Indexer, namespace: str) -> None:
    """Work off what waits, with a bar on a terminal; tell if nothing can be embedded."""
    waiting = await indexer.waiting(namespace)
    with click.progressbar(length=waiting, label="Indexing", show_pos=True) as bar:
        degraded = await indexer.flush(namespace, lambda left: bar.update(max(0, waiting - left - bar.pos)))
    _tell(degraded)


async def give_meaning(indexer: Indexer, namespace: str) -> None:
    """Index what was just stored, if that is soon done; what stands in the way is told, and takes nothing away."""
    try:
        _tell(await indexer.flush_if_short(namespace))
    except FAILURES as problem:
        click.echo(f"Stored, but found by its words only so far: {problem}", err=True)


def _tell(degraded: str | None) -> None:
    if degraded is not None:
        click.echo(degraded, err=True)


def shortened(text: str, most: int) -> str:
    """A text on one line, cut where it is too long."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
