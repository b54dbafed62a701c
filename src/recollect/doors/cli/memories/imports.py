"""`recollect import`: an export of ours, or a file of another program, into a namespace."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

import click

from recollect.doors.cli.memories.export import STANDARD
from recollect.doors.cli.one_command import chosen_namespace, command, opened_engine
from recollect.doors.cli.printing import echo, embed_if_short
from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.transfer.import_report import Progress, Report


@command
async def run(path: Path, namespace: str | None, origin: str | None, user: str | None) -> bool:
    """Import a file and print a report; returns whether a record was rejected."""
    if user is not None and origin != "mem0":
        raise Invalid("--user is the owner for mem0 records without a user_id: use it with --from mem0")
    async with opened_engine() as engine:
        report = await _import(engine, path, namespace, origin, user)
        await embed_if_short(engine.indexer, report.namespace)
        # None of a short file, unless its model fails.
        waiting = await engine.indexer.waiting(report.namespace)
    for refusal in report.refusals:
        echo(f"{refusal.place}: {refusal.reason}", err=True)
    if report.refused > len(report.refusals):
        echo(f"... and {report.refused - len(report.refusals):,} more", err=True)
    for kind in sorted(report.added.keys() | report.known.keys()):
        echo(f"{report.added[kind]:>10,} imported  {report.known[kind]:>10,} already present  {kind}")
    echo(
        f"Namespace {report.namespace!r}: {report.added.total():,} imported, {report.known.total():,} already present, "
        f"{report.refused:,} rejected."
    )
    if waiting:
        echo("Keyword search works now; semantic search after indexing, by a server or `recollect index --wait`.")
    return report.refused > 0


async def _import(engine: Engine, path: Path, namespace: str | None, origin: str | None, user: str | None) -> Report:
    try:
        source: AbstractContextManager[BinaryIO] = (
            nullcontext(sys.stdin.buffer) if path == STANDARD else path.open("rb")
        )
    except OSError as problem:
        raise Invalid(f"{path} cannot be read: {problem.strerror or problem}") from problem
    with source as file, _progress(path) as progress:
        if origin == "memory-json":
            return await engine.adopting.memory_json(chosen_namespace(engine, namespace), file, progress)
        if origin == "mem0":
            return await engine.adopting.mem0(chosen_namespace(engine, namespace), file, user, progress)
        return await engine.importing.run(file, namespace, progress)


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
