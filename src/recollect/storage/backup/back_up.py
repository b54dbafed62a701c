"""Backs up every table of every namespace as they were at one moment, while others go on writing."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import asyncpg

from recollect import checks
from recollect.errors import NotFound, Unavailable
from recollect.storage import catalogue, migrate, statistics
from recollect.storage.backup.file import FORMAT, Counter, Manifest, TableWriter, writing
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

# A namespace with more rows than this in the largest table is copied by itself; smaller ones, this many per statement.
LARGE_NAMESPACE = 2_000
NAMESPACES_AT_ONCE = 100
_LARGEST_TABLE = "passage_words"

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
        large = None
        if not database.distributed:
            large = set(await statistics.frequent_values(database, _LARGEST_TABLE, "namespace", LARGE_NAMESPACE))
        async with database.alone() as connection, _snapshot(connection):
            await connection.execute(_PLAIN_TEXT)
            schema_version = await connection.fetchval("select max(version) from recollect_migrations")
            tables = await catalogue.tables(connection, distributed=database.distributed)
            # All of them first: from here on we hold locks that block no one, and need no others.
            namespaces = {table.name: await _namespaces(connection, table) for table in tables if table.guarded}
            total = sum(table.estimate for table in tables)
            entries = []
            for table in tables:
                with file.table(table.name) as rows:
                    await _copy(
                        connection, table, namespaces.get(table.name), large, _ProgressWriter(rows, progress, total)
                    )
                    entries.append(rows.entry(table.name, table.columns))
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


@asynccontextmanager
async def _snapshot(connection: Connection) -> AsyncIterator[None]:
    """What was committed at one moment. It ends with a rollback: nothing that is made meanwhile is to stay."""
    snapshot = connection.transaction(isolation="repeatable_read")
    await snapshot.start()
    try:
        yield
    finally:
        await snapshot.rollback()


@dataclass(frozen=True, slots=True)
class _ProgressWriter:
    """Takes rows as they come, and tells how many they were."""

    rows: TableWriter
    progress: Progress | None
    total: int

    async def __call__(self, data: bytes) -> None:
        written = self.rows.write(data)
        if self.progress is not None:
            self.progress(written, self.total)


async def _copy(
    connection: Connection,
    table: Table,
    namespaces: Sequence[str] | None,
    large: Set[str] | None,
    take: _ProgressWriter,
) -> None:
    """All rows at once where nothing hides them. Row-level security shows those of one namespace at a time.

    A function steps through many small namespaces: one round trip each would take minutes for a hundred thousand. What
    it returns is kept by the server until it is done, so large ones come by themselves; those of a cluster, too, whose
    workers hear of a namespace only by a statement.
    """
    if namespaces is None:
        await connection.copy_from_query(table.rows, output=take, timeout=TABLE_SECONDS)
        return
    together = [] if large is None else [name for name in namespaces if name not in large]
    for namespace in sorted({*namespaces} - {*together}):
        await set_local_namespace(connection, checks.namespace(namespace))
        query = f"{table.rows} where namespace = $1"
        await connection.copy_from_query(query, namespace, output=take, timeout=TABLE_SECONDS)
    if together:
        await connection.execute(table.create_reader)
    for first in range(0, len(together), NAMESPACES_AT_ONCE):
        some = together[first : first + NAMESPACES_AT_ONCE]
        await connection.copy_from_query(table.read_many, some, output=take, timeout=TABLE_SECONDS)
