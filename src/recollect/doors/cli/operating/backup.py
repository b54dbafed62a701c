"""`recollect backup` and `recollect restore`: the whole database into one file, and out of it again."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from recollect import settings as environment
from recollect.doors.cli.one_command import told, with_engine
from recollect.doors.cli.printing import echo
from recollect.engine import Engine
from recollect.settings import Settings
from recollect.storage.backup import back_up as backup
from recollect.storage.backup import restore as restoring
from recollect.storage.backup.file import Manifest
from recollect.storage.backup.restore import Restored
from recollect.storage.opening import connected


def back_up(path: Path, overwrite: bool) -> None:
    """Write a backup and say what it holds."""
    settings = environment.load()
    manifest = told(settings, lambda: asyncio.run(_back_up(settings, path, overwrite)))
    kilobytes = path.stat().st_size / 1e3
    size = f"{kilobytes:,.0f} kB" if kilobytes < 1000 else f"{kilobytes / 1e3:,.1f} MB"
    echo(f"Wrote {_contents(manifest)} to {path}, {size}. Protect it like the database itself.")


def restore(path: Path) -> None:
    """Fill the database, and build the indexes that a backup does not hold."""
    settings = environment.load()
    restored = told(settings, lambda: asyncio.run(_restore(settings, path)))
    echo(f"Restored {_contents(restored.manifest)}, as of {restored.manifest.made_at:%Y-%m-%d %H:%M} UTC.")
    if restored.with_giants:
        echo("All data is restored. Building the indexes of large owners; until then their searches are slow.")
        built = with_engine(lambda engine: _rebuild(engine, restored.with_giants))
        echo(f"Built {built} index(es).")


async def _back_up(settings: Settings, path: Path, overwrite: bool) -> Manifest:
    async with connected(settings) as database:
        with _progress("Backing up") as progress:
            return await backup.back_up(database, path, overwrite=overwrite, progress=progress)


async def _restore(settings: Settings, path: Path) -> Restored:
    async with connected(settings) as database:
        with _progress("Restoring") as progress:
            return await restoring.restore(database, path, progress)


async def _rebuild(engine: Engine, namespaces: list[str]) -> int:
    return sum([len(await engine.indexes.rebuild(namespace)) for namespace in namespaces])


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
