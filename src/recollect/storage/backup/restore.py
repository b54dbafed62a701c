"""Restores a backup into an empty database: in one transaction, completely or not at all."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from recollect.errors import Conflict, Invalid, Misconfigured
from recollect.storage import catalogue, migrate
from recollect.storage.backup.back_up import TABLE_SECONDS, Progress
from recollect.storage.backup.file import BackupReader, Manifest, TableEntry, reading
from recollect.storage.database import Connection, Database


@dataclass(frozen=True, slots=True)
class Restored:
    """What is there now, and which namespaces have large owners whose vector indexes are still to be built."""

    manifest: Manifest
    with_giants: list[str]


async def restore(database: Database, path: Path, progress: Progress | None = None) -> Restored:
    """Fill an empty database from a backup, then bring it to the schema of this code."""
    if database.distributed:
        # Distributing also tells the workers which ids are taken.
        raise Conflict(
            "The tables of this database are distributed already: restore into one where they are not, then run "
            "`recollect migrate --distribute`"
        )
    with reading(path) as file:
        manifest = file.manifest
        known = migrate.migrations()
        if manifest.schema_version > known[-1].version:
            raise Misconfigured(
                f"{path} has schema version {manifest.schema_version}, but this version of Recollect supports up to "
                f"{known[-1].version}: upgrade Recollect"
            )
        await migrate.prepare(database)
        async with database.unscoped() as connection:
            await migrate.take_turns(connection)
            await connection.execute("set local statement_timeout = 0")
            await _make_room(connection, manifest.schema_version)
            await _bring_to(connection, manifest.schema_version)
            with_giants = await _fill(connection, path, file, progress)
            # Steps that change rows find them here, as they would have in the old place.
            await _bring_to(connection, known[-1].version)
    return Restored(manifest, with_giants)


async def _make_room(connection: Connection, version: int) -> None:
    """Refuse a database that holds anything; take away empty tables of a schema newer than the backup's."""
    present = await catalogue.tables(connection)
    for table in present:
        if table.guarded:
            await catalogue.lift(connection, table)
        if await connection.fetchval(table.has_rows):
            raise Conflict(
                f"The database is not empty: there are rows in {table.name}, and nothing was changed. Restore into a "
                "new one: set RECOLLECT_DATABASE_URL to an empty database, or RECOLLECT_DATA_DIR to a new folder."
            )
    if await migrate.applied_version(connection) > version:
        for table in reversed(present):
            await connection.execute(f"drop table {table.quoted}")
        await catalogue.drop_unlogged(connection)
        await connection.execute("delete from recollect_migrations")
        return
    for table in present:
        if table.guarded:
            await catalogue.force(connection, table)


async def _bring_to(connection: Connection, version: int) -> None:
    applied = await migrate.applied_version(connection)
    for migration in migrate.migrations():
        if applied < migration.version <= version:
            await migrate.apply(connection, migration)


async def _fill(connection: Connection, path: Path, file: BackupReader, progress: Progress | None) -> list[str]:
    tables = {table.name: table for table in await catalogue.tables(connection)}
    entries = {entry.name: entry for entry in file.manifest.tables}
    if entries.keys() != tables.keys() or any(set(e.columns) != set(tables[n].columns) for n, e in entries.items()):
        raise Invalid(f"{path} does not have the tables of schema version {file.manifest.schema_version}")
    # Rows cannot be copied in bulk past a policy. No one else sees these tables before the commit.
    for table in tables.values():
        if table.guarded:
            await catalogue.lift(connection, table)
    for name, table in tables.items():
        await _copy(connection, path, file, entries[name], progress)
        await connection.execute(f"analyze {table.quoted}", timeout=TABLE_SECONDS)
    # New ids go on where the old place stopped.
    for counter in file.manifest.counters:
        if counter.table not in tables or counter.column not in tables[counter.table].columns:
            raise Invalid(
                f"{path} has an id counter for {counter.table}.{counter.column}, which does not exist in its schema "
                "version: Recollect did not write this file"
            )
        continue_ids = "select setval(pg_get_serial_sequence($1, $2)::regclass, $3)"
        await connection.execute(continue_ids, tables[counter.table].quoted, counter.column, counter.last)
    with_giants = "select distinct namespace from giants order by namespace"
    giants = await connection.fetch(with_giants) if "giants" in tables else []
    for table in tables.values():
        if table.guarded:
            await catalogue.force(connection, table)
    return [row["namespace"] for row in giants]


async def _copy(
    connection: Connection, path: Path, file: BackupReader, entry: TableEntry, progress: Progress | None
) -> None:
    total = file.manifest.rows()

    async def told() -> AsyncIterator[bytes]:
        for data in file.rows(entry.name):
            yield data
            if progress is not None:
                progress(data.count(b"\n"), total)

    status = await connection.copy_to_table(entry.name, source=told(), columns=entry.columns, timeout=TABLE_SECONDS)
    if status != f"COPY {entry.rows}":
        raise Invalid(f"{path} should contain {entry.rows} rows of {entry.name}, but the database restored {status}")
