"""`recollect embeddings`: the embedding model of a namespace, and the switch to another."""

import asyncio

import click

from recollect.doors.cli.one_command import command, opened_engine
from recollect.doors.cli.printing import echo
from recollect.engine import Engine
from recollect.errors import RecollectError


@command
async def switch(model: str) -> None:
    """Switch to a model, with a progress bar."""
    async with opened_engine() as engine:
        namespace = engine.settings.namespace
        try:
            moved = await _embed(engine, namespace, model)
        except RecollectError:
            state = await engine.embeddings.status(namespace)
            if state.next is not None:
                echo("Searches still use the old model. Run the same command again to continue.", err=True)
            raise
        state = await engine.embeddings.status(namespace)
        if not moved:
            echo(f"Namespace {namespace!r} already uses {state.active}.")
        else:
            await engine.indexer.flush(namespace)
            echo(f"Namespace {namespace!r} now uses {state.active}.")
        pause = await engine.embeddings.seconds_to_sweep(namespace)
        if pause is not None:
            echo(
                f"The old vectors are deleted in {pause:.0f} s, when no search can still use them. "
                "You can stop here (Ctrl-C): a server, or the next switch, deletes them as well."
            )
            await asyncio.sleep(pause)
            if await engine.embeddings.sweep(namespace):
                echo("Deleted the old vectors.")
        if model != engine.settings.embedding_model:
            echo(f"New namespaces still use {engine.settings.embedding_model}; RECOLLECT_EMBEDDING_MODEL changes that.")


@command
async def status() -> None:
    """Print the model of the namespace and its vectors."""
    async with opened_engine() as engine:
        namespace = engine.settings.namespace
        state = await engine.embeddings.status(namespace)
        echo(f"Namespace {namespace!r}: {state.active or 'no model, keyword search only'}.")
        if state.next is not None:
            echo(f"Switching to {state.next}: `recollect embeddings switch` continues.")
        for model, size in state.vectors.items():
            role = {state.active: "in use", state.next: "being built"}.get(model, "left over")
            echo(f"{size:>12,}  {model}  ({role})")
        if state.waiting:
            echo(f"{state.waiting:>12,}  passage(s) waiting to be embedded")


async def _embed(engine: Engine, namespace: str, model: str) -> bool:
    with click.progressbar(length=1, label="Embedding", show_pos=True) as bar:

        def progress(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        return await engine.embeddings.run(namespace, model, progress)
