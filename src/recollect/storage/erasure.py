"""Erasure: every row of a namespace, in every table that a migration has made, the next one included."""

from collections.abc import Callable
from dataclasses import dataclass

from recollect.storage import catalogue
from recollect.storage.database import Database
from recollect.storage.sql import Query

# Rows that leave in one transaction: it takes a fraction of a second, whatever the size of the namespace.
ERASED_AT_ONCE = 5_000

# Without a key a namespace is open to everyone on the machine, so keys go when there is nothing left to see.
_LAST = "api_keys"

# The server writes the statements itself, and quotes the names.
_STATEMENTS = """
select c.relname as name,
       format('select count(*) as size from %s where namespace = :namespace', c.oid::regclass) as size,
       format(
           'delete from %1$s where namespace = :namespace and (%2$s) in '
           || '(select %2$s from %1$s where namespace = :namespace limit :limit) returning 1',
           c.oid::regclass,
           (
               select string_agg(quote_ident(a.attname), ', ')
               from pg_index i
               join pg_attribute a on a.attrelid = c.oid and a.attnum = any(i.indkey)
               where i.indrelid = c.oid and i.indisprimary
           )
       ) as erase
from pg_class c
where c.oid = any($1::text[]::regclass[]::oid[])
"""


@dataclass(frozen=True, slots=True)
class _Table:
    """A table, and what to ask of it."""

    name: str
    size: Query
    erase: Query


async def sizes(database: Database, namespace: str) -> dict[str, int]:
    """How many rows of a namespace each table has; those without any are left out."""
    tables = await _tables(database)
    async with database.reading(namespace) as db:
        found = {table.name: (await db.one(table.size))["size"] for table in tables}
    return {name: size for name, size in found.items() if size}


async def erase(database: Database, namespace: str, gone: Callable[[str, int], None]) -> bool:
    """Go once through all tables; tells how many rows of a table went, after each commit. False if there were none.

    An interrupted call can be repeated. What others write meanwhile is left for the next time.
    """
    found = False
    for table in await _tables(database):
        erased = ERASED_AT_ONCE
        while erased == ERASED_AT_ONCE:
            # Planned for the very number of rows: a plan for any number may read the whole table for each batch.
            async with database.planned(namespace) as db:
                erased = len(await db.all(table.erase, limit=ERASED_AT_ONCE))
            gone(table.name, erased)
            found = found or erased > 0
    return found


async def _tables(database: Database) -> list[_Table]:
    """Every table of ours, each before those that it refers to."""
    async with database.unscoped() as connection:
        ours = await catalogue.tables(connection)
        rows = await connection.fetch(_STATEMENTS, [table.quoted for table in ours])
    statements = {
        row["name"]: _Table(
            row["name"],
            Query.named(f"erasure.size.{row['name']}", row["size"]),
            Query.named(f"erasure.{row['name']}", row["erase"]),
        )
        for row in rows
    }
    children_first = [statements[table.name] for table in reversed(ours)]
    return sorted(children_first, key=lambda table: table.name == _LAST)
