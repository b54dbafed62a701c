"""Citus: distributes our tables by namespace over the workers of a cluster, and asks workers what only they know."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.errors import Misconfigured, Unavailable
from recollect.storage import catalogue
from recollect.storage.catalogue import Table
from recollect.storage.database import Connection, Database
from recollect.storage.migrate import MIGRATION_SECONDS, take_turns
from recollect.storage.sql import statements

SHARDS = 32

# The others are kept where it is, so that all rows of a namespace are on one worker.
FIRST = "sessions"

# Stay on the coordinator, where keys and tokens can be looked up and made whichever worker is away.
ON_COORDINATOR = frozenset({"api_keys", "key_grants", "connections", "connection_tokens"})

# Each worker counts in a range of its own: its number, and so many bits.
RANGE_BITS = 48

# Runs whole on the worker of its namespace.
FUNCTION = "append_messages_on_worker"
_HELPER = "keep_shard_in_place"
_FUNCTION_TEXT = Path(__file__).with_name("append_on_worker.sql").read_text(encoding="utf-8")

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
_DISTRIBUTED = """
select logicalrelid::regclass::text as name, pg_relation_size(logicalrelid) as bytes from pg_dist_partition
"""
_INSTALLED = "select exists (select from pg_extension where extname = 'citus')"
_SHARDS = "select count(*) from pg_dist_shard where logicalrelid = $1::text::regclass"
_IS_INSTALLED = """
select count(*) = 2 and bool_or(o.distribution_argument_index is not null)
from pg_proc p
join pg_catalog.pg_dist_object o on o.classid = 'pg_proc'::regclass and o.objid = p.oid
where p.proname = any($1::text[]) and p.pronamespace = current_schema()::regnamespace and strpos($2, p.prosrc) > 0
"""
_UNSET = """
select name from unnest($1::text[], $2::text[]) as wanted (name, value)
where current_setting(name, true) is distinct from value
"""
_SETTING = "select format('alter role %I set %s = %L', current_user, $1::text, $2::text)"

# The highest ids in use, one of each range; the server writes the statements itself, and quotes the names.
_HIGHEST = """
select a.attname as name,
       format('select max(%1$I) as id from %2$s group by %1$I >> %3$s', a.attname, c.oid::regclass, $2::int) as highest
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attidentity <> ''
where c.relnamespace = current_schema()::regnamespace and c.relname = $1
"""

# Only the worker whose range an id is in has anything to do.
_MOVE_ON = """
select count(setval(s.seqrelid::regclass, taken.id))
from pg_sequence s
cross join unnest(%3$L::bigint[]) as taken (id)
where s.seqrelid = pg_get_serial_sequence(%1$L, %2$L)::regclass and taken.id between s.seqmin and s.seqmax
  and coalesce(pg_sequence_last_value(s.seqrelid::regclass), 0) < taken.id
"""

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
# One statement for all shards of a worker, which the server names; on each, a namespace is one index probe, as where
# nothing is distributed.
_NAMESPACES = """
(
    with recursive found (namespace) as (
        (select namespace from %1$s order by namespace limit 1)
        union all
        select (select t.namespace from %1$s t where t.namespace > found.namespace order by t.namespace limit 1)
        from found
        where found.namespace is not null
    )
    select namespace from found where namespace is not null
)
"""
_NAMESPACES_WITH_EXPIRED = """
(
    select distinct namespace from (
        select namespace from %1$s
        where expires_at <= now() and namespace <> all(%2$L::text[])
        order by expires_at
        limit %3$s
    ) as oldest
)
"""
_ASK_ABOUT_SHARDS = """
select answer.result
from (
    select array_agg(nodename) as names, array_agg(nodeport) as ports, array_agg(command) as commands
    from (
        select n.nodename, n.nodeport,
               'select coalesce(json_agg(namespace), ''[]'') from ('
               || string_agg(format($2, shard_name(s.logicalrelid, s.shardid), $3::text[], $4::int), ' union all ')
               || ') as found' as command
        from pg_dist_shard s
        join pg_dist_placement p on p.shardid = s.shardid
        join pg_dist_node n on n.groupid = p.groupid and n.noderole = 'primary'
        where s.logicalrelid = $1::text::regclass
        group by n.nodename, n.nodeport
    ) as of_workers
) as workers
cross join master_run_on_worker(names, ports, commands, true) as answer
where answer.success
"""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a cluster consists of and what it lacks: tables that are not distributed, settings of this role."""

    workers: list[str]
    unreachable: dict[str, str]
    """Why a worker does not answer."""
    shards: int
    undistributed: list[str]
    unset: list[str]
    leftovers: list[str]
    """Tables whose rows were moved and are still on the coordinator, too."""

    @property
    def is_distributed(self) -> bool:
        """Whether `distribute` has run; until then it is a database like any other."""
        return self.shards > 0


async def inspect(database: Database) -> Cluster | None:
    """The cluster that a database is the coordinator of; None where the extension is missing."""
    async with database.unscoped() as connection:
        if not await connection.fetchval(_INSTALLED):
            return None
        workers = {f"{row['name']}:{row['port']}": row["active"] for row in await connection.fetch(_WORKERS)}
        tables = {row["name"]: row["bytes"] for row in await connection.fetch(_DISTRIBUTED)}
        ours = [table.name for table in await catalogue.tables(connection)]
        is_installed = await connection.fetchval(_IS_INSTALLED, [FUNCTION, _HELPER], _FUNCTION_TEXT)
        shards = await connection.fetchval(_SHARDS, FIRST) if FIRST in tables else 0
        unset = await _unset(connection)
        answers = await connection.fetch("select * from run_command_on_workers('select 1')") if workers else []
    undistributed = [name for name in ours if name not in tables]
    if not is_installed:
        undistributed.append(FUNCTION)
    unreachable = {worker: "it is disabled" for worker, active in workers.items() if not active}
    unreachable |= {f"{row['nodename']}:{row['nodeport']}": row["result"] for row in answers if not row["success"]}
    leftovers = [name for name in ours if name not in ON_COORDINATOR and tables.get(name)]
    return Cluster(list(workers), unreachable, shards, undistributed, unset, leftovers)


async def _unset(connection: Connection) -> list[str]:
    """The settings that the connection's role lacks."""
    rows = await connection.fetch(_UNSET, [*ROLE_SETTINGS], [*ROLE_SETTINGS.values()])
    return [row["name"] for row in rows]


async def unreachable(database: Database) -> list[str]:
    """The workers that do not answer, whose namespaces are unavailable and whose rows are in no figure."""
    cluster = await inspect(database) if database.distributed else None
    return [] if cluster is None else list(cluster.unreachable)


async def is_distributed(database: Database) -> bool:
    """Whether the tables are on workers."""
    async with database.unscoped() as connection:
        if not await connection.fetchval(_INSTALLED):
            return False
        return FIRST in {row["name"] for row in await connection.fetch(_DISTRIBUTED)}


async def finish(database: Database) -> None:
    """Refuse a role that would find nothing; distribute what a migration added, or what an interruption left."""
    for each in _roles(database):
        async with each.unscoped() as connection:
            for name in await _unset(connection):
                raise Misconfigured(
                    "The tables are distributed by Citus, but a role lacks a setting. Run this, then connect again: "
                    f"ALTER ROLE {await connection.fetchval('select quote_ident(current_user)')} "
                    f"SET {name} = '{ROLE_SETTINGS[name]}';"
                )
    cluster = await inspect(database.owner)
    if cluster is not None and (cluster.undistributed or cluster.leftovers):
        await _check_ownership(database.owner)
        await _distribute(database.owner, SHARDS, lambda table: None)


async def distribute(database: Database, shards: int, on_table: Callable[[str], None]) -> Cluster:
    """Distribute every table; may be repeated, and goes on where it was interrupted. `on_table` hears what is done."""
    await _usable(database.owner)
    for each in _roles(database):
        async with each.unscoped() as connection:
            await take_turns(connection)
            for name in await _unset(connection):
                await connection.execute(await connection.fetchval(_SETTING, name, ROLE_SETTINGS[name]))
    await _distribute(database.owner, shards, on_table)
    database.distributed = database.owner.distributed = True
    return await _usable(database.owner)


def _roles(database: Database) -> list[Database]:
    """The database with each of its roles; there may be one or two."""
    return [database] if database.owner is database else [database, database.owner]


async def _usable(database: Database) -> Cluster:
    cluster = await inspect(database)
    if cluster is None:
        raise Misconfigured(
            "The database does not have the Citus extension. A superuser must run: CREATE EXTENSION citus;"
        )
    if not cluster.workers:
        raise Misconfigured(
            "The cluster has no workers. A superuser must run, for each of them: SELECT citus_add_node('HOST', 5432);"
        )
    for worker, reason in cluster.unreachable.items():
        raise Misconfigured(f"Worker {worker} is not usable with this role: {reason}")
    await _check_ownership(database)
    return cluster


async def _check_ownership(database: Database) -> None:
    async with database.unscoped() as connection:
        foreign = [table.name for table in await catalogue.tables(connection) if not table.owned]
    if foreign:
        raise Misconfigured(
            f"A part of the cluster is not up to date, and this role does not own the table {foreign[0]}: run "
            "`recollect migrate` with the address of the role that owns the tables in RECOLLECT_DATABASE_OWNER_URL"
        )


async def _distribute(database: Database, shards: int, on_table: Callable[[str], None]) -> None:
    """Each table in a transaction of its own, the first before the others, and parents before their children."""
    async with database.unscoped() as connection:
        tables = await catalogue.tables(connection)
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
            taken = {
                row["name"]: [each["id"] for each in await connection.fetch(row["highest"], timeout=MIGRATION_SECONDS)]
                for row in await connection.fetch(_HIGHEST, table.name, RANGE_BITS)
            }
            await connection.execute(*_statement(table, shards), timeout=MIGRATION_SECONDS)
            if table.forced:
                await catalogue.force(connection, table)
        for column, ids in taken.items():
            await move_on(database, table.name, column, ids)
        on_table(table.name)
    await _install_function(database)
    # What was moved is still on the coordinator, where nothing that is forgotten later would be found.
    for table in reversed(tables):
        if table.name not in ON_COORDINATOR:
            async with database.unscoped() as connection:
                query = "select truncate_local_data_after_distributing_table($1::text::regclass)"
                await connection.execute(query, table.quoted, timeout=MIGRATION_SECONDS)


async def _install_function(database: Database) -> None:
    async with database.unscoped() as connection:
        await take_turns(connection)
        if await connection.fetchval(_IS_INSTALLED, [FUNCTION, _HELPER], _FUNCTION_TEXT):
            return
        for statement in statements(_FUNCTION_TEXT):
            await connection.execute(statement)
        helper = "select create_distributed_function($1::text::regproc::regprocedure)"
        await connection.execute(helper, _HELPER, timeout=MIGRATION_SECONDS)
        query = """
        select create_distributed_function($1::text::regproc::regprocedure, 'in_namespace', colocate_with => $2)
        """
        await connection.execute(query, FUNCTION, FIRST, timeout=MIGRATION_SECONDS)


def _statement(table: Table, shards: int) -> tuple[Any, ...]:
    if table.name in ON_COORDINATOR:
        return "select citus_add_local_table_to_metadata($1::text::regclass)", table.quoted
    if table.name == FIRST:
        query = "select create_distributed_table($1::text::regclass, 'namespace', shard_count => $2::integer)"
        return query, table.quoted, shards
    query = "select create_distributed_table($1::text::regclass, 'namespace', colocate_with => $2)"
    return query, table.quoted, FIRST


async def move_on(database: Database, table: str, column: str, ids: Iterable[int]) -> None:
    """Let no worker give out one of these ids, which a worker of another cluster may have given out before."""
    highest: dict[int, int] = {}
    for number in ids:
        highest[number >> RANGE_BITS] = max(number, highest.get(number >> RANGE_BITS, 0))
    if not highest:
        return
    async with database.owner.unscoped() as connection:
        query = "select format($1, $2::text, $3::text, $4::bigint[])"
        command = await connection.fetchval(query, _MOVE_ON, table, column, [*highest.values()])
        rows = await connection.fetch("select * from run_command_on_workers($1)", command)
    if failed := [row["result"] for row in rows if not row["success"]]:
        raise Unavailable(f"A worker did not take the ids of {table}: {failed[0]}")


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
    """Who has rows in a table, on the workers that answer: those of a worker that is away wait for it."""
    return await _ask_about_shards(connection, table, _NAMESPACES)


async def namespaces_with_expired(connection: Connection, table: str, besides: Sequence[str], limit: int) -> list[str]:
    """Whose rows are over, besides some, among as many on each shard that have been so for longest."""
    return await _ask_about_shards(connection, table, _NAMESPACES_WITH_EXPIRED, besides, limit)


async def _ask_about_shards(
    connection: Connection, table: str, of_shard: str, besides: Sequence[str] = (), limit: int = 0
) -> list[str]:
    rows = await connection.fetch(_ASK_ABOUT_SHARDS, table, of_shard, list(besides), limit)
    return sorted(name for row in rows for name in json.loads(row["result"]))


async def _ask_workers(connection: Connection, command: str) -> list[Any]:
    rows = await connection.fetch("select result from run_command_on_workers($1) where success", command)
    return [json.loads(row["result"]) for row in rows]
