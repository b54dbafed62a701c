"""`recollect migrate`: apply pending migrations and print the versions."""

from recollect import settings as environment
from recollect.doors.cli.one_command import command, told
from recollect.doors.cli.printing import echo
from recollect.storage import migrate
from recollect.storage.opening import connected


@command
async def run() -> None:
    """Apply pending migrations."""
    settings = environment.load()
    with told(settings):
        async with connected(settings) as database:
            versions = await migrate.migrate(database)
        newest = migrate.migrations()[-1]
        echo(f"Schema version {newest.version} on PostgreSQL {versions.postgres} with pgvector {versions.pgvector}.")
