"""What may stand in the columns of our tables, and the ids that the database counts up by itself."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recollect.storage import citus
from recollect.storage.database import Database

# New ids start this far after imported ones, so that ids taken at this very moment do not collide with them.
MARGIN = 1000

# A thousand rows a second reach this in 35 years. Above it are ids of Citus, whose workers each count in a range of
# their own, and whatever a file says: the counter, which all namespaces share, does not follow those.
OWN_IDS = 2**40

_COLUMNS = """
select c.relname as on_table, a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
       not a.attnotnull as optional, a.attidentity <> '' as counted
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
where c.relnamespace = current_schema()::regnamespace and c.relname = any($1::text[]) and a.attname <> 'namespace'
order by c.relname, a.attnum
"""
_MOVE_ON = """
select setval(counter.name, $3::bigint + $4::bigint)
from (select pg_get_serial_sequence($1, $2)::regclass as name) as counter
where coalesce(pg_sequence_last_value(counter.name), 0) < $3
"""


@dataclass(frozen=True, slots=True)
class Column:
    """A column beside the namespace: its type as the database calls it; `counted` ones get a number by themselves."""

    name: str
    type: str
    optional: bool
    counted: bool


async def columns(database: Database, tables: Sequence[str]) -> dict[str, dict[str, Column]]:
    """The columns of some tables, by table and name."""
    async with database.unscoped() as connection:
        rows = await connection.fetch(_COLUMNS, list(tables))
    found: dict[str, dict[str, Column]] = {table: {} for table in tables}
    for row in rows:
        found[row["on_table"]][row["name"]] = Column(row["name"], row["type"], row["optional"], row["counted"])
    return found


async def move_on(database: Database, table: str, column: str, ids: Iterable[int]) -> None:
    """Let no new row take one of these ids, in any namespace: the counter is shared by all."""
    ids = list(ids)
    if database.distributed:
        await citus.move_on(database, table, column, (number for number in ids if number > OWN_IDS))
    highest = max((number for number in ids if number <= OWN_IDS), default=0)
    if highest:
        async with database.owner.unscoped() as connection:
            await connection.execute(_MOVE_ON, table, column, highest, MARGIN)
