"""`recollect backup` and `recollect restore`: the whole database to one file and back."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from recollect import settings as environment
from recollect import tasks
from recollect.doors.cli.one_command import command, opened_engine, told
from recollect.doors.cli.printing import echo
from recollect.storage import roles
from recollect.storage.backup import back_up as backup
from recollect.storage.backup import restore as restoring
from recollect.storage.backup.file import Manifest
from recollect.storage.opening import connected


@command
async def back_up(path: Path, overwrite: bool) -> None:
    """Write a backup and say what it holds."""
    settings = environment.load()
    with told(settings):
        async with connected(settings) as database:
            await roles.check(database)
            with _progress("Backing up") as progress:
                manifest = await backup.back_up(database.owner, path, overwrite=overwrite, progress=progress)
    kilobytes = (await tasks.in_thread(path.stat)).st_size / 1e3
    size = f"{kilobytes:,.0f} kB" if kilobytes < 1000 else f"{kilobytes / 1e3:,.1f} MB"
    echo(f"Wrote {_contents(manifest)} to {path}, {size}. Protect it like the database itself.")


@command
async def restore(path: Path) -> None:
    """Fill the database, and build the indexes that a backup does not hold."""
    settings = environment.load()
    with told(settings):
        async with connected(settings) as database:
            await roles.check(database)
            with _progress("Restoring") as progress:
                restored = await restoring.restore(database.owner, path, progress)
            await roles.settle(database)
    echo(f"Restored {_contents(restored.manifest)}, as of {restored.manifest.made_at:%Y-%m-%d %H:%M} UTC.")
    if restored.with_giants:
        echo("All data is restored. Building the indexes of large owners; until then their searches are slow.")
        async with opened_engine() as engine:
            built = sum([len(await engine.indexes.rebuild(namespace)) for namespace in restored.with_giants])
        echo(f"Built {built} index(es).")


@contextmanager
def _progress(label: str) -> Iterator[backup.Progress]:
    """A bar on a terminal; nothing in a log."""
    with click.progressbar(length=1, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:

        def progress(rows: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(rows)

        yield progress


def _contents(manifest: Manifest) -> str:
    return f"{manifest.rows():,} rows from {len(manifest.tables)} tables"
