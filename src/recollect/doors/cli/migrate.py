"""`recollect migrate`: apply the schema and say what the server is."""

import asyncio

import click

from recollect import settings as environment
from recollect.engine import connected
from recollect.storage import migrate


def run() -> None:
    """Apply what is missing."""
    asyncio.run(_migrate())


async def _migrate() -> None:
    async with connected(environment.load()) as database:
        versions = await migrate.migrate(database)
    newest = migrate.migrations()[-1]
    click.echo(f"Schema version {newest.version} on PostgreSQL {versions.postgres} with pgvector {versions.pgvector}.")
