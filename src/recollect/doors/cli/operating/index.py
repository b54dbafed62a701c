"""`recollect index`: embed the passages that are waiting."""

from recollect.doors.cli.one_command import with_engine
from recollect.doors.cli.printing import echo, indexed
from recollect.engine import Engine


def run(wait: bool) -> None:
    """Print how many passages wait; with --wait, embed them."""
    with_engine(lambda engine: _index(engine, wait))


async def _index(engine: Engine, wait: bool) -> None:
    namespace = engine.settings.namespace
    waiting = await engine.indexer.waiting(namespace)
    if not wait or not waiting:
        echo(f"{waiting:,} passage(s) in namespace {namespace!r} wait to be embedded.")
        return
    await indexed(engine.indexer, namespace)
    echo(f"Done. {await engine.indexer.waiting(namespace):,} passage(s) wait to be embedded.")
