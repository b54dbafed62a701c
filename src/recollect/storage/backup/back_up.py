"""Backs up every table of every namespace as they were at one moment, while others go on writing."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import asyncpg

from recollect import checks
from recollect.errors import NotFound, Unavailable
from recollect.storage import catalogue, migrate
from recollect.storage.backup.file import FORMAT, BackupWriter, Counter, Manifest, TableEntry, writing
from recollect.storage.catalogue import Table
from recollect.storage.database import Connection, Database, set_local_namespace

Progress = Callable[[int, int], None]
"""Hears how many rows were done since it was last told, and about how many there are in all."""

# Others wait behind us while we wait for a table, so the first attempts are short. An indexer with a long queue leaves
# no gap for those: it holds its tables for as long as a batch takes to embed, and begins the next.
LOCK_MILLISECONDS = (100,) * 20 + (1_000,) * 10 + (5_000,) * 5
LOCK_PAUSE_SECONDS = 0.5

# A table may be large, and asyncpg knows no "for ever".
TABLE_SECONDS = 7 * 24 * 3600.0

# What a value looks like as text must not depend on the server's or the role's settings.
_PLAIN_TEXT = """
set local datestyle = 'ISO, YMD'; set local intervalstyle = 'postgres'; set local timezone = 'UTC';
set local extra_float_digits = 3; set local bytea_output = 'hex'; set local statement_timeout = 0;
set local idle_in_transaction_session_timeout = 0
"""


async def back_up(
    database: Database, path: Path, *, overwrite: bool = False, progress: Progress | None = None
) -> Manifest:
    """Write a backup; it holds what was committed when it began."""
    if await migrate.pending(database) == migrate.migrations():
        raise NotFound("There is nothing to back up: this database has no Recollect tables")
    versions = await migrate.check_server(database)
    made_at = datetime.now(UTC)
    with writing(path, overwrite=overwrite) as file:
        async with database.alone() as connection, connection.transaction(isolation="repeatable_read"):
            await connection.execute(_PLAIN_TEXT)
            schema_version = await connection.fetchval("select max(version) from recollect_migrations")
            tables = await catalogue.tables(connection, distributed=database.distributed)
            # All of them first: from here on we hold locks that block no one, and need no others.
            namespaces = {table.name: await _namespaces(connection, table) for table in tables if table.guarded}
            total = sum(table.estimate for table in tables)
            entries = [
                await _copy(connection, file, table, namespaces.get(table.name), progress, total) for table in tables
            ]
            # Read last: an id may have been given out since, but none that is in the backup is higher.
            counters = await catalogue.counters(connection, tables)
        manifest = Manifest(
            format=FORMAT,
            recollect=version("recollect"),
            schema_version=schema_version,
            postgres=versions.postgres,
            pgvector=versions.pgvector,
            made_at=made_at,
            tables=entries,
            counters=[Counter(table=table, column=column, last=last) for table, column, last in counters],
        )
        file.finish(manifest)
    return manifest


async def _namespaces(connection: Connection, table: Table) -> list[str]:
    """Who has rows in a table. Its owner may look past row-level security for the moment that this takes.

    The change is rolled back at once and no one else ever sees it: the table is only locked for that moment.
    """
    for patience in LOCK_MILLISECONDS:
        moment = connection.transaction()
        await moment.start()
        try:
            await connection.execute(f"set local lock_timeout = {patience}")
            await catalogue.lift(connection, table)
            return [row["namespace"] for row in await connection.fetch(table.namespaces)]
        except asyncpg.LockNotAvailableError:
            pass
        finally:
            await moment.rollback()
        await asyncio.sleep(LOCK_PAUSE_SECONDS)
    raise Unavailable(
        f"The table {table.name} was locked the whole time, so its namespaces could not be listed: "
        "try again when no long statement, such as another backup, is running"
    )


async def _copy(
    connection: Connection,
    file: BackupWriter,
    table: Table,
    namespaces: list[str] | None,
    progress: Progress | None,
    total: int,
) -> TableEntry:
    with file.table(table.name) as rows:

        async def take(data: bytes) -> None:
            written = rows.write(data)
            if progress is not None:
                progress(written, total)

        if namespaces is None:
            await connection.copy_from_query(table.rows, output=take, timeout=TABLE_SECONDS)
        # Row-level security shows one namespace at a time.
        query = f"{table.rows} where namespace = $1"
        for namespace in namespaces or ():
            await set_local_namespace(connection, checks.namespace(namespace))
            await connection.copy_from_query(query, namespace, output=take, timeout=TABLE_SECONDS)
        return rows.entry(table.name, table.columns)
