"""What the database knows of our tables: their columns, their order, who sees their rows, which ids they gave out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter

from recollect.errors import Misconfigured
from recollect.storage.database import Connection
from recollect.storage.migrate import LEDGER, migrations

# Another program may keep tables beside ours, so ours are those that a migration makes.
_CREATED = re.compile(r"^create table (\w+)", re.M)

# What they hold is of the moment: it is not kept, and counts for nothing.
_UNLOGGED = re.compile(r"^create unlogged table (\w+)", re.M)

# The server writes the statements itself, and quotes the names. Generated columns are omitted: they cannot be written.
# Namespaces are found by steps from one to the next through the primary key, which leads with them.
_TABLES = """
select c.relname as name, c.oid::regclass::text as quoted,
       array_agg(a.attname::text order by a.attnum) as columns,
       format('select %s from %s', string_agg(quote_ident(a.attname), ', ' order by a.attnum), c.oid::regclass) as rows,
       format(
           'create function pg_temp.%1$I (namespaces text[]) returns setof %2$s language plpgsql as $$ '
           || 'declare each text; begin foreach each in array namespaces loop '
           || 'perform set_config(''recollect.namespace'', each, true); '
           || 'return query select * from %2$s where namespace = each; end loop; end $$',
           'rows_of_' || c.relname, c.oid::regclass
       ) as create_reader,
       format(
           'select %s from pg_temp.%I ($1)',
           string_agg(quote_ident(a.attname), ', ' order by a.attnum), 'rows_of_' || c.relname
       ) as read_many,
       format('select exists (select 1 from %s)', c.oid::regclass) as has_rows,
       case when $2 then format('select distinct namespace from %s', c.oid::regclass) else format(
           'with recursive names as ('
           || '(select namespace from %1$s order by namespace limit 1) union all '
           || 'select (select t.namespace from %1$s t where t.namespace > n.namespace order by t.namespace limit 1) '
           || 'from names n where n.namespace is not null'
           || ') select namespace from names where namespace is not null',
           c.oid::regclass
       ) end as namespaces,
       c.relforcerowsecurity as forced, row_security_active(c.oid) as guarded,
       pg_has_role(c.relowner, 'usage') as owned, greatest(c.reltuples, 0)::bigint as estimate
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
where c.relkind in ('r', 'p') and c.relnamespace = current_schema()::regnamespace and c.relname = any($1::text[])
group by c.oid
order by c.relname
"""
_REFERENCES = """
select distinct c.relname as child, p.relname as parent
from pg_constraint k
join pg_class c on c.oid = k.conrelid
join pg_class p on p.oid = k.confrelid
where k.contype = 'f' and k.conrelid <> k.confrelid and c.relnamespace = current_schema()::regnamespace
"""
_COUNTERS = """
select c.relname as on_table, a.attname as on_column,
       pg_sequence_last_value(pg_get_serial_sequence(c.oid::regclass::text, a.attname)::regclass) as last
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attidentity <> ''
where c.relnamespace = current_schema()::regnamespace and c.relname = any($1::text[])
order by c.relname
"""


@dataclass(frozen=True, slots=True)
class Table:
    """One of our tables, with statements that ask for its rows, whether it has any, and whose they are."""

    name: str
    quoted: str
    columns: list[str]
    rows: str
    create_reader: str
    """Makes a function, gone with the session, that reads several namespaces, one after the other."""
    read_many: str
    """Calls it."""
    has_rows: str
    namespaces: str
    forced: bool
    guarded: bool
    """Whether row-level security keeps rows from this role."""
    owned: bool
    estimate: int


async def tables(connection: Connection, *, distributed: bool = False) -> list[Table]:
    """Every table of ours that there is, each behind those that it refers to.

    Where they are distributed, no worker can step from one namespace to the next.
    """
    ours = sorted({name for migration in migrations() for name in _CREATED.findall(migration.text)})
    found = {row["name"]: Table(**row) for row in await connection.fetch(_TABLES, ours, distributed)}
    parents: dict[str, set[str]] = {name: set() for name in found}
    for row in await connection.fetch(_REFERENCES):
        if row["child"] in found and row["parent"] in found:
            parents[row["child"]].add(row["parent"])
    return [found[name] for name in TopologicalSorter(parents).static_order()]


@cache
def names() -> tuple[str, ...]:
    """Every table that a migration makes, and their ledger."""
    made = {
        name for migration in migrations() for kind in (_CREATED, _UNLOGGED) for name in kind.findall(migration.text)
    }
    return tuple(sorted({*made, LEDGER}))


async def drop_unlogged(connection: Connection) -> None:
    """Make room for the migrations that create these tables."""
    for migration in migrations():
        for name in _UNLOGGED.findall(migration.text):
            await connection.execute(f"drop table if exists {name}")


async def counters(connection: Connection, of: Sequence[Table]) -> list[tuple[str, str, int]]:
    """Table, column and the last id of every identity that was used."""
    rows = await connection.fetch(_COUNTERS, [table.name for table in of])
    return [(row["on_table"], row["on_column"], row["last"]) for row in rows if row["last"] is not None]


async def bypasses_row_security(connection: Connection) -> bool:
    """Whether policies do not bind this role."""
    return bool(await connection.fetchval("select rolsuper or rolbypassrls from pg_roles where rolname = current_user"))


async def lift(connection: Connection, table: Table) -> None:
    """Within this transaction, let the owner see all rows. Others wait for the table until the transaction ends."""
    if not table.owned:
        raise Misconfigured(
            f"This role does not own the table {table.name}, and row-level security hides rows from it: "
            "use the role that owns the tables, or one with BYPASSRLS"
        )
    await connection.execute(f"alter table {table.quoted} no force row level security")


async def force(connection: Connection, table: Table) -> None:
    """Bind the owner again."""
    await connection.execute(f"alter table {table.quoted} force row level security")
