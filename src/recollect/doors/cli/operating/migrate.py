"""`recollect migrate`: apply pending migrations and print the versions."""

import asyncio

from recollect import settings as environment
from recollect.doors.cli.one_command import told
from recollect.doors.cli.printing import echo
from recollect.settings import Settings
from recollect.storage import migrate
from recollect.storage.opening import connected


def run() -> None:
    """Apply pending migrations."""
    settings = environment.load()
    told(settings, lambda: asyncio.run(_migrate(settings)))


async def _migrate(settings: Settings) -> None:
    async with connected(settings) as database:
        versions = await migrate.migrate(database)
    newest = migrate.migrations()[-1]
    echo(f"Schema version {newest.version} on PostgreSQL {versions.postgres} with pgvector {versions.pgvector}.")
