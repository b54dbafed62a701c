"""`recollect index`: work off the queue of passages that wait for their meaning."""

import asyncio

import click

from recollect import settings as environment
from recollect.engine import Engine


def run(wait: bool) -> None:
    """Say how many passages wait; with --wait, index them."""
    asyncio.run(_index(wait))


async def _index(wait: bool) -> None:
    settings = environment.load().model_copy(update={"indexer": False})
    engine = await Engine.open(settings)
    try:
        waiting = await engine.indexer.waiting(settings.namespace)
        if not wait or not waiting:
            click.echo(f"{waiting:,} passage(s) of namespace {settings.namespace!r} wait to be indexed.")
            return
        with click.progressbar(length=waiting, label="Indexing", show_pos=True) as bar:
            done = 0

            def progress(left: int) -> None:
                nonlocal done
                bar.update(max(0, waiting - left - done))
                done = max(done, waiting - left)

            await engine.indexer.flush(settings.namespace, progress)
        click.echo(f"Indexed. {await engine.indexer.waiting(settings.namespace):,} passage(s) wait.")
    finally:
        await engine.close()
