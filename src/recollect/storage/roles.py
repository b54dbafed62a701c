"""One role for everything, or two: one that owns the tables, and one that works with rows and may do nothing else."""

import logging

from recollect.errors import Misconfigured
from recollect.storage import catalogue
from recollect.storage.database import Connection, Database
from recollect.storage.migrate import MIGRATION_SECONDS, take_turns

_log = logging.getLogger(__name__)

# Where a connection has come to: a role may have rights there that are meant for another database.
_PLACE = """
select system_identifier, current_database() as database, current_schema() as schema from pg_control_system()
"""
_OWNER = """
select pg_get_userbyid(relowner) as name, pg_has_role(relowner, 'usage') as is_ours,
       has_table_privilege(oid, 'select') as is_readable
from pg_class
where oid = to_regclass('recollect_migrations')
"""

# The workers of a cluster have counters of their own, which a grant on the coordinator does not reach.
_COUNTERS = """
select format(
           'select bool_and(has_sequence_privilege(%L, name, ''usage'')) from unnest(%L::text[]) as counter (name)',
           $2::text, array_agg(s.name)
       ) as asking,
       format('grant usage on sequence %s to %I', string_agg(s.name, ', '), $2) as granting
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attidentity <> ''
cross join pg_get_serial_sequence(c.oid::regclass::text, a.attname) as s (name)
where c.relnamespace = current_schema()::regnamespace and c.relname = any($1::text[])
"""

# What a role that owns nothing lacks, and whom the policies must bind; the server quotes the names.
_CHANGES = """
with ours as (
    select c.*, c.oid::regclass as quoted,
           case c.relname when 'recollect_migrations' then 'select' else 'select, insert, update, delete' end as rights
    from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relname = any($1::text[])
)
select format('grant usage on schema %I to %I', current_schema(), $2::text) as statement
where not has_schema_privilege($2, current_schema(), 'usage')
union all
select format('grant %s on %s to %I', rights, quoted, $2)
from ours
where exists (
    select from unnest(string_to_array(rights, ', ')) as needed (name)
    where not has_table_privilege($2, ours.oid, needed.name)
)
union all
select format('grant usage on sequence %s to %I', s.name, $2)
from ours
join pg_attribute a on a.attrelid = ours.oid and a.attidentity <> ''
cross join pg_get_serial_sequence(quoted::text, a.attname) as s (name)
where not has_sequence_privilege($2, s.name, 'usage')
union all
select format('alter table %s %s row level security', quoted, case when $3 then 'no force' else 'force' end)
from ours
where relrowsecurity and relforcerowsecurity = $3
"""


async def check(database: Database) -> None:
    """Refuse roles that cannot do their work; a database without tables is left to the migrations."""
    if database.owner is not database:
        async with database.unscoped() as connection, database.owner.unscoped() as of_owner:
            place, of_tables = await connection.fetchrow(_PLACE), await of_owner.fetchrow(_PLACE)
            assert place is not None
            assert of_tables is not None
            # A role without a right to the schema has none yet.
            if place[:2] != of_tables[:2] or place["schema"] not in (None, of_tables["schema"]):
                raise Misconfigured(
                    "RECOLLECT_DATABASE_OWNER_URL and RECOLLECT_DATABASE_URL must name the same database and schema, "
                    "with different roles"
                )
    async with database.owner.unscoped() as connection:
        owner = await connection.fetchrow(_OWNER)
        role = await connection.fetchval("select current_user")
    if owner is None or owner["is_ours"]:
        return
    if database.owner is not database:
        raise Misconfigured(f"RECOLLECT_DATABASE_OWNER_URL has the role {role}, but {owner['name']} owns the tables")
    if not owner["is_readable"]:
        raise _without_rights(role, owner["name"])


async def settle(database: Database) -> None:
    """Give the role that works with rows its rights, and bind it by row-level security.

    Where it owns the tables itself, they must force their policies on their owner. Where another role does, they do
    not: shards of a cluster are moved online by the owner, and only if it is not bound.
    """
    async with database.unscoped() as connection:
        role = await connection.fetchval("select current_user")
    async with database.owner.unscoped() as connection:
        owner = await connection.fetchrow(_OWNER)
        assert owner is not None
        is_separate = not await connection.fetchval(
            "select pg_has_role($1::text, $2::text, 'usage')", role, owner["name"]
        )
        changes = await _changes(connection, role, is_separate=is_separate)
        if not owner["is_ours"]:
            # Whom the policies bind besides is for the owner to change.
            if any(change.startswith("grant") for change in changes):
                raise _without_rights(role, owner["name"])
            return
        if changes:
            await _change(database, connection, role, is_separate=is_separate)
        if database.distributed and is_separate:
            await _grant_counters(connection, role)


async def _change(database: Database, connection: Connection, role: str, *, is_separate: bool) -> None:
    await take_turns(connection)
    if database.distributed:
        # One connection to a worker, or the changes would wait for each other.
        await connection.execute("set local citus.multi_shard_modify_mode = 'sequential'")
    # Asked again: another process may have made them while we waited.
    for statement in await _changes(connection, role, is_separate=is_separate):
        await connection.execute(statement, timeout=MIGRATION_SECONDS)


async def _grant_counters(connection: Connection, role: str) -> None:
    """On every worker that answers; one that is new has none of these rights yet."""
    counters = await connection.fetchrow(_COUNTERS, catalogue.names(), role)
    assert counters is not None
    ask = "select * from run_command_on_workers($1)"
    answers = await connection.fetch(ask, counters["asking"])
    if any(row["success"] and row["result"] != "t" for row in answers):
        await take_turns(connection)
        answers = await connection.fetch(ask, counters["granting"])
    for row in answers:
        if not row["success"]:
            worker = f"{row['nodename']}:{row['nodeport']}"
            _log.warning("The rights of %s on worker %s are not certain: %s", role, worker, row["result"])


def _without_rights(role: str, owner: str) -> Misconfigured:
    return Misconfigured(
        f"The role {role} may not use the tables of {owner}: "
        f"run `recollect migrate` with the address of {owner} in RECOLLECT_DATABASE_OWNER_URL"
    )


async def _changes(connection: Connection, role: str, *, is_separate: bool) -> list[str]:
    rows = await connection.fetch(_CHANGES, catalogue.names(), role, is_separate)
    return [row["statement"] for row in rows]
