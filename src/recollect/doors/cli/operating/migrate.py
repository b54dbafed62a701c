"""`recollect migrate`: apply pending migrations, distribute the tables if asked to, and print the versions."""

from recollect import settings as environment
from recollect.doors.cli.one_command import command, told
from recollect.doors.cli.printing import echo
from recollect.errors import Invalid
from recollect.storage import citus, migrate, roles
from recollect.storage.opening import connected, migrated, up_to_date


@command
async def run(distribute: bool, shards: int | None) -> None:
    """Apply pending migrations; with `distribute`, spread the tables over the workers of a Citus cluster."""
    if shards is not None and not distribute:
        raise Invalid("--shards needs --distribute")
    settings = environment.load()
    with told(settings):
        async with connected(settings) as database:
            if distribute:
                versions = await migrated(database)
                chosen = shards or citus.SHARDS
                cluster = await citus.distribute(database, chosen, lambda table: echo(f"Distributed {table}."))
                await roles.settle(database)
                echo(f"Distributed by namespace: {cluster.shards} shards on {len(cluster.workers)} worker(s).")
            else:
                versions = await up_to_date(database)
        newest = migrate.migrations()[-1]
        echo(f"Schema version {newest.version} on PostgreSQL {versions.postgres} with pgvector {versions.pgvector}.")
