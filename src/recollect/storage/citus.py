"""Citus: distributes our tables by namespace over the workers of a cluster, and asks workers what only they know."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recollect.errors import Misconfigured
from recollect.storage import catalogue
from recollect.storage.catalogue import Table
from recollect.storage.database import Connection, Database
from recollect.storage.migrate import MIGRATION_SECONDS, take_turns

SHARDS = 32

# The others are kept where it is, so that all rows of a namespace are on one worker.
FIRST = "sessions"

# Stays on the coordinator, where a key can be looked up and made whichever worker is away.
ON_COORDINATOR = "api_keys"

# Runs whole on the worker of its namespace.
FUNCTION = "append_messages"

ROLE_SETTINGS = {
    # Policies hold on the workers, which must be told the namespace.
    "citus.propagate_set_commands": "local",
    # Otherwise each new connection looks through the types of all shards, which takes seconds.
    "citus.override_table_visibility": "off",
}

_WORKERS = """
select nodename as name, nodeport as port, isactive as active
from pg_dist_node
where noderole = 'primary' and shouldhaveshards
order by nodename, nodeport
"""
_DISTRIBUTED = "select logicalrelid::regclass::text as name from pg_dist_partition"
_SHARDS = "select count(*) from pg_dist_shard where logicalrelid = $1::text::regclass"
_FUNCTION = """
select p.oid::regprocedure::text as signature, o.distribution_argument_index is not null as distributed
from pg_proc p
left join pg_catalog.pg_dist_object o on o.classid = 'pg_proc'::regclass and o.objid = p.oid
where p.proname = $1 and p.pronamespace = current_schema()::regnamespace
"""
_SETTING = "select format('alter role %I set %s = %L', current_user, $1::text, $2::text)"

# What a worker knows of the shards of our tables, by table.
_SIZES = """
select coalesce(json_object_agg(name, json_build_array(rows, bytes)), '{}')
from (
    select s.logicalrelid::regclass::text as name,
           sum(greatest(c.reltuples, pg_stat_get_live_tuples(c.oid), 0))::bigint as rows,
           sum(pg_total_relation_size(c.oid))::bigint as bytes
    from pg_dist_shard s
    join pg_class c on c.relname = shard_name(s.logicalrelid, s.shardid)
    group by s.logicalrelid
) as sizes
"""
_FREQUENT = """
select coalesce(json_agg(distinct value), '[]')
from pg_dist_shard s
join pg_class c on c.relname = shard_name(s.logicalrelid, s.shardid)
join pg_stats on pg_stats.tablename = c.relname
cross join unnest(most_common_vals::text::text[], most_common_freqs) as common (value, share)
where s.logicalrelid = %1$L::regclass and pg_stats.attname = %2$L and share * c.reltuples > %3$s
"""
# Of one shard at a time, which the server names; on a shard each is one index probe, as where nothing is distributed.
_NAMESPACES = """
with recursive found (namespace) as (
    (select namespace from %1$s order by namespace limit 1)
    union all
    select (select t.namespace from %1$s t where t.namespace > found.namespace order by t.namespace limit 1)
    from found
    where found.namespace is not null
)
select coalesce(json_agg(namespace), '[]') from found where namespace is not null
"""


@dataclass(frozen=True, slots=True)
class Worker:
    """A node that holds shards."""

    name: str
    port: int
    active: bool

    def __str__(self) -> str:
        return f"{self.name}:{self.port}"


@dataclass(frozen=True, slots=True)
class Cluster:
    """What there is of a cluster, and what is missing: tables that are not distributed, settings of the role."""

    workers: list[Worker]
    unreachable: dict[str, str]
    shards: int
    undistributed: list[str]
    unset: list[str]

    @property
    def is_distributed(self) -> bool:
        """Whether `distribute` has run; until then it is a database like any other."""
        return self.shards > 0


async def look(database: Database) -> Cluster | None:
    """The cluster that a database is the coordinator of; None where the extension is missing."""
    async with database.unscoped() as connection:
        if not await connection.fetchval("select exists (select from pg_extension where extname = 'citus')"):
            return None
        workers = [Worker(**row) for row in await connection.fetch(_WORKERS)]
        distributed = {row["name"] for row in await connection.fetch(_DISTRIBUTED)}
        undistributed = [table.name for table in await catalogue.tables(connection) if table.name not in distributed]
        shards = await connection.fetchval(_SHARDS, FIRST) if FIRST in distributed else 0
        unset = [
            name
            for name, value in ROLE_SETTINGS.items()
            if await connection.fetchval("select current_setting($1, true)", name) != value
        ]
    unreachable = {}
    if workers:
        async with database.alone() as connection:
            rows = await connection.fetch("select * from run_command_on_workers('select 1')")
        unreachable = {f"{row['nodename']}:{row['nodeport']}": row["result"] for row in rows if not row["success"]}
    return Cluster(workers, unreachable, shards, undistributed, unset)


async def require_ready(database: Database) -> None:
    """Refuse to work with distributed tables in a way that would find nothing; distribute what a migration added."""
    async with database.unscoped() as connection:
        if not await connection.fetchval("select exists (select from pg_extension where extname = 'citus')"):
            return
        distributed = {row["name"] for row in await connection.fetch(_DISTRIBUTED)}
        if FIRST not in distributed:
            return
        if database.pooling != "transaction":
            raise Misconfigured("The tables are distributed by Citus: set RECOLLECT_DATABASE_POOLING=transaction")
        for name, value in ROLE_SETTINGS.items():
            if await connection.fetchval("select current_setting($1, true)", name) != value:
                raise Misconfigured(
                    f"The tables are distributed by Citus, but this role lacks the setting {name} = {value}: "
                    "run `recollect migrate --distribute` as this role"
                )
        missing = [table for table in await catalogue.tables(connection) if table.name not in distributed]
    database.distributed = True
    if missing:
        await _distribute(database, missing, SHARDS, lambda table: None)


async def distribute(database: Database, shards: int, told: Callable[[str], None]) -> Cluster:
    """Distribute every table; may be repeated, and goes on where it was interrupted. `told` hears what is done."""
    cluster = await look(database)
    await _check(database, cluster)
    assert cluster is not None
    async with database.unscoped() as connection:
        await take_turns(connection)
        for name in cluster.unset:
            await connection.execute(await connection.fetchval(_SETTING, name, ROLE_SETTINGS[name]))
        tables = await catalogue.tables(connection)
    missing = [table for table in tables if table.name in cluster.undistributed]
    await _distribute(database, missing, shards, told)
    # What was moved is still on the coordinator, where nothing that is forgotten later would be found.
    for table in reversed(tables):
        if table.name != ON_COORDINATOR:
            async with database.unscoped() as connection:
                query = "select truncate_local_data_after_distributing_table($1::text::regclass)"
                await connection.execute(query, table.quoted, timeout=MIGRATION_SECONDS)
    found = await look(database)
    assert found is not None
    return found


async def _check(database: Database, cluster: Cluster | None) -> None:
    if cluster is None:
        raise Misconfigured(
            "The database does not have the extension Citus. A superuser must run: CREATE EXTENSION citus;"
        )
    if not cluster.workers:
        raise Misconfigured(
            "The cluster has no workers. A superuser must run, for each of them: SELECT citus_add_node('HOST', 5432);"
        )
    for worker, reason in cluster.unreachable.items():
        raise Misconfigured(f"The worker {worker} cannot be used by this role: {reason}")
    if database.pooling != "transaction":
        raise Misconfigured("Distributed tables need RECOLLECT_DATABASE_POOLING=transaction: set it, then try again")
    async with database.unscoped() as connection:
        foreign = [table.name for table in await catalogue.tables(connection) if not table.owned]
    if foreign:
        raise Misconfigured(f"This role does not own the table {foreign[0]}: use the role that owns the tables")


async def _distribute(database: Database, tables: list[Table], shards: int, told: Callable[[str], None]) -> None:
    """Each in a transaction of its own, the first before the others, and parents before their children."""
    for table in sorted(tables, key=lambda table: table.name != FIRST):
        async with database.unscoped() as connection:
            await take_turns(connection)
            if table.name in {row["name"] for row in await connection.fetch(_DISTRIBUTED)}:
                continue
            # One connection to a worker, or the changes below would wait for each other.
            await connection.execute("set local citus.multi_shard_modify_mode = 'sequential'")
            if table.forced:
                # Its rows are moved by its owner, whom the policy would show none.
                await catalogue.lift(connection, table)
            await connection.execute(*_statement(table, shards), timeout=MIGRATION_SECONDS)
            if table.forced:
                await catalogue.force(connection, table)
        told(table.name)
    async with database.unscoped() as connection:
        function = await connection.fetchrow(_FUNCTION, FUNCTION)
        if function is not None and not function["distributed"]:
            query = "select create_distributed_function($1::text::regprocedure, 'in_namespace', colocate_with => $2)"
            await connection.execute(query, function["signature"], FIRST, timeout=MIGRATION_SECONDS)


def _statement(table: Table, shards: int) -> tuple[Any, ...]:
    if table.name == ON_COORDINATOR:
        return "select citus_add_local_table_to_metadata($1::text::regclass)", table.quoted
    if table.name == FIRST:
        query = "select create_distributed_table($1::text::regclass, 'namespace', shard_count => $2::integer)"
        return query, table.quoted, shards
    query = "select create_distributed_table($1::text::regclass, 'namespace', colocate_with => $2)"
    return query, table.quoted, FIRST


async def sizes(connection: Connection) -> dict[str, tuple[int, int]]:
    """About how many rows and bytes each table has on the workers that answer."""
    found: dict[str, tuple[int, int]] = {}
    for answer in await _ask_workers(connection, _SIZES):
        for name, (rows, size) in answer.items():
            known = found.get(name, (0, 0))
            found[name] = (known[0] + rows, known[1] + size)
    return found


async def frequent_values(connection: Connection, table: str, column: str, more_than: int) -> list[str]:
    """Values that stand in more rows of a shard than so many, by the last sample of the workers that answer."""
    query = "select format($1, $2::text, $3::text, $4::bigint)"
    command = await connection.fetchval(query, _FREQUENT, table, column, more_than)
    return sorted({value for answer in await _ask_workers(connection, command) for value in answer})


async def namespaces(connection: Connection, table: str) -> list[str]:
    """Who has rows in a table, on the shards that answer: those of a worker that is away wait for it."""
    query = "select result from run_command_on_shards($1::text::regclass, $2) where success"
    return sorted(
        name for row in await connection.fetch(query, table, _NAMESPACES) for name in json.loads(row["result"])
    )


async def _ask_workers(connection: Connection, command: str) -> list[Any]:
    rows = await connection.fetch("select result from run_command_on_workers($1) where success", command)
    return [json.loads(row["result"]) for row in rows]
