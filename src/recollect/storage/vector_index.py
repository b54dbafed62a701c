"""Partial HNSW indexes on passage vectors: built without blocking writers, each for one owner up to a watermark."""

import asyncio
import hashlib

import asyncpg

from recollect.errors import Misconfigured
from recollect.storage.database import Connection, Database

PREFIX = "giant_"

# Millions of vectors take long, and no caller waits; asyncpg knows no "for ever".
_BUILD_SECONDS = 7 * 24 * 3600.0

# Before a build that met another one is tried again, in seconds.
_PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)

# The server quotes the values itself: an index definition takes no parameters.
_DEFINITION = """
select format(
    'create index concurrently %I on passage_vectors using hnsw ((embedding::halfvec(%s)) halfvec_cosine_ops) '
    || 'where namespace = %L and model = %L and %s id <= %s',
    $1::text, $2::int, $3::text, $4::text, case when $5::text is null then '' else format('owner = %L and', $5) end,
    $6::bigint
)
"""
_DROP = "select format('drop index concurrently if exists %I', $1::text)"
_UNFINISHED = """
select relname from pg_index join pg_class on pg_class.oid = indexrelid
where not indisvalid and starts_with(relname, $1)
  and not exists (select from pg_stat_progress_create_index where index_relid = indexrelid)
"""
_EXISTS = """
select exists (
    select from pg_index join pg_class on pg_class.oid = indexrelid
    where indisvalid and relname = $1 and relnamespace = current_schema()::regnamespace
)
"""
_COUNT = "select count(*) from pg_class where relkind = 'i' and starts_with(relname, $1)"


def name_for(namespace: str, model: str, owner: str | None, watermark: int) -> str:
    """A name that says nothing about the owner."""
    described = "\x00".join((namespace, model, "all" if owner is None else f"owner:{owner}"))
    return f"{PREFIX}{hashlib.blake2b(described.encode(), digest_size=12).hexdigest()}_{watermark}"


async def create(
    database: Database, name: str, namespace: str, model: str, dimensions: int, owner: str | None, watermark: int
) -> None:
    """Build an index; takes minutes for millions of vectors, and no caller waits for it.

    Two builds on one table wait for each other, and PostgreSQL ends one of them as a deadlock: that one tries again.
    """
    async with database.owner.alone() as connection:
        statement = await connection.fetchval(_DEFINITION, name, dimensions, namespace, model, owner, watermark)
        for pause in _PAUSES:
            try:
                await _build(connection, statement)
                return
            except asyncpg.DeadlockDetectedError:
                await _build(connection, await connection.fetchval(_DROP, name))
                await asyncio.sleep(pause)
        await _build(connection, statement)


async def _build(connection: Connection, statement: str) -> None:
    try:
        await connection.execute(statement, timeout=_BUILD_SECONDS)
    except asyncpg.InsufficientPrivilegeError as problem:
        raise Misconfigured(
            f"A vector index cannot be built or dropped: {problem.args[0]}. Set RECOLLECT_DATABASE_OWNER_URL to the "
            "address with the role that owns the tables, at least in one process."
        ) from problem


async def drop(database: Database, name: str) -> None:
    """Remove an index that is no longer used."""
    async with database.owner.alone() as connection:
        await _build(connection, await connection.fetchval(_DROP, name))


async def drop_unfinished(database: Database) -> int:
    """Remove what builders that were killed left behind."""
    async with database.unscoped() as connection:
        names = [row["relname"] for row in await connection.fetch(_UNFINISHED, PREFIX)]
    for name in names:
        await drop(database, name)
    return len(names)


async def count(database: Database) -> int:
    """How many there are in the database."""
    async with database.unscoped() as connection:
        return int(await connection.fetchval(_COUNT, PREFIX))


async def exists(database: Database, name: str) -> bool:
    """Whether an index of this name is there and can be used."""
    async with database.unscoped() as connection:
        return bool(await connection.fetchval(_EXISTS, name))
