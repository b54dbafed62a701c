"""Brings a database to the schema of this code: checks the server, then applies `migrations/*.sql` in order."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import asyncpg

from recollect.errors import Misconfigured
from recollect.storage.database import Connection, Database
from recollect.storage.sql import statements

MIN_POSTGRES = 15
MIN_PGVECTOR = (0, 7)

# Any number that nothing else in the database uses; processes that start at once queue up behind it.
_LOCK = 0x5265636F6C6C6563

# A step may take long on a large database, and so may waiting for another process that takes it.
MIGRATION_SECONDS = 24 * 3600.0

LEDGER = "recollect_migrations"
_CREATE_LEDGER = """
create table if not exists recollect_migrations (
    version integer primary key,
    name text not null,
    applied_at timestamptz not null default now()
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    version: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ServerVersions:
    """What runs on the other side."""

    postgres: str
    pgvector: str


@cache
def migrations() -> tuple[Migration, ...]:
    """Every step that this code knows, in order."""
    files = sorted(Path(__file__).with_name("migrations").glob("*.sql"))
    return tuple(Migration(int(f.stem[:4]), f.stem[5:], f.read_text(encoding="utf-8")) for f in files)


async def migrate(database: Database) -> ServerVersions:
    """Check the server and apply what is missing, each step in one transaction; safe to run from many processes."""
    versions = await prepare(database)
    for migration in await pending(database):
        async with database.unscoped() as connection:
            await take_turns(connection)
            try:
                if migration.version > await applied_version(connection):
                    await apply(connection, migration)
            except asyncpg.InsufficientPrivilegeError as problem:
                raise Misconfigured(
                    f"This role may not change the tables: {problem.args[0]}. Set RECOLLECT_DATABASE_OWNER_URL to the "
                    "address with the role that owns them, and run `recollect migrate`."
                ) from problem
    return versions


async def apply(connection: Connection, migration: Migration) -> None:
    """Take one step, within the connection's transaction."""
    for statement in statements(migration.text):
        await connection.execute(statement, timeout=MIGRATION_SECONDS)
    await connection.execute(
        "insert into recollect_migrations (version, name) values ($1, $2)", migration.version, migration.name
    )


async def prepare(database: Database) -> ServerVersions:
    """Check the server, and give the database the extension that the schema needs, or say who must run what."""
    async with database.unscoped() as connection:
        if not await connection.fetchval("select exists (select from pg_extension where extname = 'vector')"):
            name = await connection.fetchval("select current_database()")
            available = "select exists (select from pg_available_extensions where name = 'vector')"
            if not await connection.fetchval(available):
                raise Misconfigured(
                    "pgvector is not installed on the database server. Its administrator must install the package for "
                    f"this PostgreSQL version, then run in the database {name}: CREATE EXTENSION vector;"
                )
            await take_turns(connection)
            try:
                await connection.execute("create extension if not exists vector")
            except asyncpg.InsufficientPrivilegeError as problem:
                raise Misconfigured(
                    f"The database {name} does not have the extension pgvector, and this role may not create it. "
                    f"A superuser must run in {name}: CREATE EXTENSION vector;"
                ) from problem
    return await check_server(database)


async def check_server(database: Database) -> ServerVersions:
    """Ask the server what it is, and refuse one that is too old; changes nothing."""
    async with database.unscoped() as connection:
        row = await connection.fetchrow(
            """
            select current_setting('server_version') as postgres, current_setting('server_version_num')::int as number,
                   (select extversion from pg_extension where extname = 'vector') as pgvector
            """
        )
    assert row is not None
    if row["number"] < MIN_POSTGRES * 10_000:
        raise Misconfigured(
            f"The server runs PostgreSQL {row['postgres']}; Recollect needs {MIN_POSTGRES} or newer. "
            "Upgrade it, or unset RECOLLECT_DATABASE_URL to use the embedded server."
        )
    if row["pgvector"] is None:
        raise Misconfigured(
            "The database does not have the extension pgvector: run `recollect migrate` for instructions"
        )
    if tuple(map(int, re.findall(r"\d+", row["pgvector"])[:2])) < MIN_PGVECTOR:
        raise Misconfigured(
            f"The database has pgvector {row['pgvector']}, but Recollect needs {MIN_PGVECTOR[0]}.{MIN_PGVECTOR[1]}. "
            "Update the package on the server, then run, as the owner of the extension: ALTER EXTENSION vector UPDATE;"
        )
    return ServerVersions(row["postgres"].split(" ")[0], row["pgvector"])


async def take_turns(connection: Connection) -> None:
    """Wait for other processes that change the schema; the lock goes with the transaction."""
    await connection.execute("select pg_advisory_xact_lock($1)", _LOCK, timeout=MIGRATION_SECONDS)


async def pending(database: Database) -> tuple[Migration, ...]:
    """The steps that a database still lacks; one that is newer than the code is refused."""
    known = migrations()
    async with database.unscoped() as connection:
        if await connection.fetchval("select to_regclass('recollect_migrations')") is None:
            return known
        applied = await applied_version(connection)
    newest = known[-1].version
    if applied > newest:
        raise Misconfigured(
            f"The database has schema version {applied}, but this version of Recollect supports up to {newest}. "
            "Upgrade Recollect, or use another database."
        )
    return tuple(migration for migration in known if migration.version > applied)


async def applied_version(connection: Connection) -> int:
    """The last step that was taken; a ledger that is missing is made, and only then must the role be able to."""
    if await connection.fetchval("select to_regclass('recollect_migrations')") is None:
        await connection.execute(_CREATE_LEDGER)
    return int(await connection.fetchval("select coalesce(max(version), 0) from recollect_migrations"))
