"""`recollect index`: embed the passages that are waiting."""

from recollect.doors.cli.one_command import command, opened_engine
from recollect.doors.cli.printing import echo, indexed


@command
async def run(wait: bool) -> None:
    """Print how many passages wait; with --wait, embed them."""
    async with opened_engine() as engine:
        namespace = engine.settings.namespace
        waiting = await engine.indexer.waiting(namespace)
        if not wait or not waiting:
            echo(f"{waiting:,} passage(s) waiting to be embedded in namespace {namespace!r}.")
            return
        await indexed(engine.indexer, namespace)
        echo(f"Done. {await engine.indexer.waiting(namespace):,} passage(s) waiting to be embedded.")
