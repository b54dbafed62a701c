"""What the server knows of our tables without reading them: how large they are, and which values are frequent."""

from dataclasses import dataclass

from recollect.storage import citus
from recollect.storage.database import Database

# The statistics of the last ANALYZE, or what has been counted since, whichever is more.
_RELATIONS = """
select relname as name, greatest(reltuples, pg_stat_get_live_tuples(oid), 0)::bigint as rows,
       pg_total_relation_size(oid) as bytes
from pg_class
where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace
"""
_DATABASE = "select pg_database_size(current_database())"
_FREQUENT = """
select value
from pg_stats, unnest(most_common_vals::text::text[], most_common_freqs) as common (value, share)
where schemaname = current_schema() and tablename = $1 and attname = $2
  and share * (select reltuples from pg_class where oid = $1::text::regclass) > $3
order by share desc
"""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table over all namespaces: about how many rows, and its bytes with indexes and long values."""

    rows: int
    bytes: int


async def relations(database: Database) -> dict[str, Relation]:
    """Every table by its name."""
    async with database.unscoped() as connection:
        found = {row["name"]: Relation(row["rows"], row["bytes"]) for row in await connection.fetch(_RELATIONS)}
        if database.distributed:
            found |= {name: Relation(*size) for name, size in (await citus.sizes(connection)).items()}
        return found


async def database_bytes(database: Database) -> int:
    """The whole database on disk, on every worker that answers."""
    async with database.unscoped() as connection:
        on_workers = sum(size for _, size in (await citus.sizes(connection)).values()) if database.distributed else 0
        return int(await connection.fetchval(_DATABASE)) + on_workers


async def frequent_values(database: Database, table: str, column: str, more_than: int) -> list[str]:
    """Values that stand in more rows than so many, by the last sample: one that is just above may be missing."""
    async with database.unscoped() as connection:
        if database.distributed:
            return await citus.frequent_values(connection, table, column, more_than)
        return [row["value"] for row in await connection.fetch(_FREQUENT, table, column, more_than)]
