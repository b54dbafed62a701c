"""Brings a database to the schema of this code: checks the server, then applies `migrations/*.sql` in order."""

import re
from dataclasses import dataclass
from pathlib import Path

from recollect.errors import Misconfigured
from recollect.storage.database import Connection, Database

MIN_POSTGRES = 15
MIN_PGVECTOR = (0, 7)

# Any number that nothing else in the database uses; processes that start at once queue up behind it.
_LOCK = 0x5265636F6C6C6563

_LEDGER = """
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


def migrations() -> list[Migration]:
    """Every step that this code knows, in order."""
    files = sorted(Path(__file__).with_name("migrations").glob("*.sql"))
    return [Migration(int(f.stem[:4]), f.stem[5:], f.read_text(encoding="utf-8")) for f in files]


async def migrate(database: Database) -> ServerVersions:
    """Check the server and apply what is missing, each step in one transaction; safe to run from many processes."""
    versions = await check_server(database)
    known = migrations()
    for migration in await _pending(database, known):
        async with database.unscoped() as connection:
            await connection.execute("select pg_advisory_xact_lock($1)", _LOCK)
            if migration.version > await _applied_version(connection):
                await connection.execute(migration.text)
                await connection.execute(
                    "insert into recollect_migrations (version, name) values ($1, $2)",
                    migration.version,
                    migration.name,
                )
    return versions


async def check_server(database: Database) -> ServerVersions:
    """Refuse a server that is too old, and make sure of pgvector or say who must install it."""
    async with database.unscoped() as connection:
        postgres = str(await connection.fetchval("show server_version")).split(" ")[0]
        if int(postgres.split(".")[0]) < MIN_POSTGRES:
            raise Misconfigured(
                f"The server runs PostgreSQL {postgres}; Recollect needs {MIN_POSTGRES} or newer. "
                "Upgrade it, or unset RECOLLECT_DATABASE_URL to use the embedded server."
            )
        pgvector = await _pgvector_version(connection)
    if tuple(map(int, re.findall(r"\d+", pgvector)[:2])) < MIN_PGVECTOR:
        raise Misconfigured(
            f"The database has pgvector {pgvector}; Recollect needs {'.'.join(map(str, MIN_PGVECTOR))} or newer. "
            "Update the package on the server, then run, as the owner of the extension: ALTER EXTENSION vector UPDATE;"
        )
    return ServerVersions(postgres, pgvector)


async def _pgvector_version(connection: Connection) -> str:
    installed = await connection.fetchval("select extversion from pg_extension where extname = 'vector'")
    if installed is not None:
        return str(installed)
    row = await connection.fetchrow(
        """
        select current_database() as database, current_user as role, a.default_version, coalesce(v.trusted, false)
               and has_database_privilege(current_database(), 'create') or r.rolsuper as allowed
        from pg_roles r
        left join pg_available_extensions a on a.name = 'vector'
        left join pg_available_extension_versions v on v.name = a.name and v.version = a.default_version
        where r.rolname = current_user
        """
    )
    assert row is not None
    if row["default_version"] is None:
        raise Misconfigured(
            "pgvector is not installed on the database server. Its administrator must install the package for this "
            f"PostgreSQL version, then run in the database {row['database']}: CREATE EXTENSION vector;"
        )
    if not row["allowed"]:
        raise Misconfigured(
            f"The database {row['database']} lacks the extension pgvector and the role {row['role']} may not create "
            f"it. A superuser must run in {row['database']}: CREATE EXTENSION vector;"
        )
    await connection.execute("select pg_advisory_xact_lock($1)", _LOCK)
    await connection.execute("create extension if not exists vector")
    return str(await connection.fetchval("select extversion from pg_extension where extname = 'vector'"))


async def _pending(database: Database, known: list[Migration]) -> list[Migration]:
    async with database.unscoped() as connection:
        if await connection.fetchval("select to_regclass('recollect_migrations')") is None:
            await connection.execute("select pg_advisory_xact_lock($1)", _LOCK)
            await connection.execute(_LEDGER)
        applied = await _applied_version(connection)
    newest = known[-1].version
    if applied > newest:
        raise Misconfigured(
            f"The database is at schema version {applied}, newer than this Recollect, which knows {newest}. "
            "Upgrade Recollect here, or use another database."
        )
    return [migration for migration in known if migration.version > applied]


async def _applied_version(connection: Connection) -> int:
    return int(await connection.fetchval("select coalesce(max(version), 0) from recollect_migrations"))
