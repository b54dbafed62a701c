"""`recollect index`: work off the queue of passages that wait for their meaning."""

from recollect.doors.cli.one_command import with_engine
from recollect.doors.cli.printing import echo, indexed
from recollect.engine import Engine


def run(wait: bool) -> None:
    """Say how many passages wait; with --wait, index them."""
    with_engine(lambda engine: _index(engine, wait))


async def _index(engine: Engine, wait: bool) -> None:
    namespace = engine.settings.namespace
    waiting = await engine.indexer.waiting(namespace)
    if not wait or not waiting:
        echo(f"{waiting:,} passage(s) of namespace {namespace!r} wait to be indexed.")
        return
    await indexed(engine.indexer, namespace)
    echo(f"Indexed. {await engine.indexer.waiting(namespace):,} passage(s) wait.")
