"""`recollect import`: an export of ours, or files of another program, into a namespace."""

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

import click

from recollect.doors.cli.memories.export import STANDARD
from recollect.doors.cli.one_command import chosen_namespace, command, opened_engine
from recollect.doors.cli.printing import echo, embed_if_short, print_json
from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.transfer.foreign.foreign_files import ImportProgress, refuse_other_format
from recollect.flows.transfer.foreign.formats import FORMATS, MEM0
from recollect.flows.transfer.import_report import Progress, Report


@command
async def run(
    path: Path, *, namespace: str | None, origin: str | None, user: str | None, dry_run: bool, as_json: bool
) -> bool:
    """Import a file and print a report; returns whether a record was rejected."""
    if user is not None and origin not in (*FORMATS, MEM0):
        raise Invalid("--user needs --from, with a format other than memory-json: an export names its own users")
    if dry_run and origin not in FORMATS:
        raise Invalid(f"--dry-run needs --from with one of {', '.join(FORMATS)}")
    waiting = 0
    async with opened_engine() as engine:
        began = time.monotonic()
        report = await _import(engine, path, namespace, origin, user, dry_run)
        seconds = time.monotonic() - began
        if not dry_run:
            await embed_if_short(engine.indexer, report.namespace)
            # None of a short file, unless its model fails.
            waiting = await engine.indexer.waiting(report.namespace)
    if as_json:
        about = {"namespace": report.namespace, "dry_run": dry_run}
        print_json(about | report.document() | {"seconds": round(seconds, 1)})
    else:
        _print(report, seconds, dry_run)
        if waiting:
            echo("Keyword search works now; semantic search after indexing, by a server or `recollect index --wait`.")
    return report.refused > 0


async def _import(
    engine: Engine, path: Path, namespace: str | None, origin: str | None, user: str | None, dry_run: bool
) -> Report:
    if origin in FORMATS:
        if path == STANDARD:
            raise Invalid(f"--from {origin} reads a file or a folder, not standard input: name it")
        chosen = chosen_namespace(engine, namespace)
        try:
            with _progress_of_items(engine.foreign_files.size(path, origin)) as progress:
                return await engine.foreign_files.run(chosen, path, origin, user, dry_run=dry_run, progress=progress)
        except asyncio.CancelledError:
            echo("Interrupted. What was imported stays: run the same command again to continue.", err=True)
            raise
    if path != STANDARD:
        refuse_other_format(path, origin)
    with _opened(path) as file, _progress(path) as progress:
        if origin is None:
            return await engine.importing.run(file, namespace, progress)
        chosen = chosen_namespace(engine, namespace)
        if origin == MEM0:
            return await engine.adopting.mem0(chosen, file, user, progress)
        return await engine.adopting.memory_json(chosen, file, progress)


def _opened(path: Path) -> AbstractContextManager[BinaryIO]:
    try:
        return nullcontext(sys.stdin.buffer) if path == STANDARD else path.open("rb")
    except OSError as problem:
        raise Invalid(f"{path} cannot be read: {problem.strerror or problem}") from problem


def _print(report: Report, seconds: float, dry_run: bool) -> None:
    for refusal in report.refusals:
        echo(f"{refusal.place}: {refusal.reason}", err=True)
    if report.refused > len(report.refusals):
        echo(f"... and {report.refused - len(report.refusals):,} more", err=True)
    verb = "to import" if dry_run else "imported"
    for kind in sorted(report.added.keys() | report.known.keys()):
        changed = f"  {report.changed[kind]:>10,} replaced" if report.changed.total() else ""
        echo(f"{report.added[kind]:>10,} {verb}  {report.known[kind]:>10,} already present{changed}  {kind}")
    if report.left_out:
        echo("Left out:")
    for reason, count in report.left_out.most_common():
        echo(f"{count:>10,}  {reason} ({'; '.join(report.examples[reason])}{'; ...' if count > 3 else ''})")
    replaced = f"{report.changed.total():,} replaced, " if report.changed.total() else ""
    rate = _items(report) / seconds
    echo(
        f"Namespace {report.namespace!r}: {report.added.total():,} {verb}, {replaced}{report.known.total():,} "
        f"already present, {report.refused:,} rejected. {seconds:,.1f} s, {rate:,.0f} items a second."
    )


def _items(report: Report) -> int:
    return report.added.total() + report.known.total() + report.changed.total()


@contextmanager
def _progress(path: Path) -> Iterator[Progress | None]:
    """A bar on a terminal; the length of standard input is unknown."""
    if path == STANDARD or not sys.stderr.isatty():
        yield None
        return
    size = path.stat().st_size
    with click.progressbar(length=size, label="Importing", file=sys.stderr) as bar:
        yield bar.update
        bar.update(size - bar.pos)


@contextmanager
def _progress_of_items(size: int) -> Iterator[ImportProgress | None]:
    """A bar on a terminal, with the number of items and how many a second."""
    if not sys.stderr.isatty():
        yield None
        return
    began = time.monotonic()
    with click.progressbar(length=size, label="Importing", file=sys.stderr, item_show_func=lambda item: item) as bar:

        def advance(read: int, report: Report) -> None:
            items = _items(report)
            bar.update(read, f"{items:,} items, {items / max(time.monotonic() - began, 0.001):,.0f}/s")

        yield advance
        bar.update(size - bar.pos)
