"""Tables distributed over a Citus cluster; without one, only that it is asked for."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from recollect.engine import Engine
from recollect.errors import Misconfigured
from recollect.flows.long_term.memory_requests import Options
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from recollect.settings import Settings
from recollect.storage import citus, statistics
from recollect.storage.backup.back_up import back_up
from recollect.storage.backup.file import reading
from recollect.storage.columns import move_on
from recollect.storage.database import Connection
from recollect.storage.opening import connected

on_a_cluster = pytest.mark.skipif(
    "RECOLLECT_TEST_CITUS_URL" not in os.environ, reason="there is no Citus cluster (RECOLLECT_TEST_CITUS_URL)"
)

# With a policy, on the coordinator and on every shard.
CONTENT = ("sessions", "messages", "passages", "memories", "documents", "changes")


async def test_a_server_without_the_extension_is_told_how_to_get_it(server: object, settings: Settings) -> None:
    embedded = settings.model_copy(update={"database_url": None})
    async with connected(embedded) as database:
        assert await citus.inspect(database) is None
        with pytest.raises(Misconfigured, match="CREATE EXTENSION citus"):
            await citus.distribute(database, citus.SHARDS, lambda table: None)


@pytest.fixture
async def raw(engine: Engine) -> AsyncIterator[Connection]:
    async with engine.database.alone() as connection:
        yield connection


async def say(engine: Engine, namespace: str, text: str) -> None:
    await engine.remember.turn(namespace, Turn("talk", (NewMessage("user", text),), owner_if_new="ann"))


@on_a_cluster
async def test_every_table_is_distributed_and_nothing_stays_on_the_coordinator(engine: Engine, raw: Connection) -> None:
    cluster = await citus.inspect(engine.database)
    assert cluster is not None
    assert (cluster.undistributed, cluster.unset, cluster.leftovers, cluster.unreachable) == ([], [], [], {})
    assert cluster.shards == citus.SHARDS
    for table in CONTENT:
        assert await raw.fetchval("select pg_relation_size($1::text::regclass)", table) == 0, table


@on_a_cluster
async def test_distributing_again_changes_nothing(engine: Engine) -> None:
    told: list[str] = []
    await citus.distribute(engine.database, 4, told.append)
    assert told == []


@on_a_cluster
async def test_a_connection_without_the_setting_sees_nothing_anywhere(
    engine: Engine, namespace: str, raw: Connection
) -> None:
    await say(engine, namespace, "A secret of this namespace.")
    for table in CONTENT:
        assert await raw.fetchval(f"select count(*) from {table}") == 0, table
        rows = await raw.fetch(
            "select * from run_command_on_shards($1::text::regclass, 'select count(*) from %s')", table
        )
        assert {(row["success"], row["result"]) for row in rows} == {(True, "0")}, table
    async with engine.database.reading(namespace) as db:
        assert len(await engine.capabilities.log.recent(db, "talk", 10)) == 1


@on_a_cluster
@pytest.mark.unindexed("it counts what waits")
async def test_work_and_sizes_are_found_on_the_workers(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "Something to embed.")
    assert namespace in await engine.capabilities.passages.namespaces_with_work(engine.database)
    sizes = await statistics.relations(engine.database)
    assert sizes["messages"].bytes > 0
    await engine.indexer.flush(namespace)
    assert namespace not in await engine.capabilities.passages.namespaces_with_work(engine.database)


@on_a_cluster
@pytest.mark.unindexed("it counts what is left to maintenance")
async def test_what_has_expired_is_found_on_the_workers(engine: Engine, namespace: str, raw: Connection) -> None:
    soon = Options(expires_in=3600)
    await engine.memories.add(namespace, "The code is 4711.", "fact", MemoryScope("ann"), options=soon)
    look = engine.capabilities.passages.namespaces_with_expired
    assert namespace not in await look(engine.database, [], 100)
    await raw.execute("update passage_words set expires_at = now() where namespace = $1", namespace)
    assert namespace in await look(engine.database, ["it's another"], 100)
    assert namespace not in await look(engine.database, [namespace], 100)


@on_a_cluster
async def test_the_append_runs_on_the_worker_of_its_namespace(engine: Engine, raw: Connection) -> None:
    assert await raw.fetchval(citus._IS_INSTALLED, [citus.FUNCTION, citus._HELPER], citus._FUNCTION_TEXT)


@on_a_cluster
async def test_no_worker_gives_out_an_id_that_was_imported(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "First.")
    async with engine.database.reading(namespace) as db:
        (message,) = await engine.capabilities.log.recent(db, "talk", 1)
    taken = [message.seq + 5, 7, (99 << citus.RANGE_BITS) + 1]
    await move_on(engine.database, "messages", "seq", taken)
    await say(engine, namespace, "Second.")
    async with engine.database.reading(namespace) as db:
        *_, message = await engine.capabilities.log.recent(db, "talk", 2)
    assert message.seq > taken[0]


@on_a_cluster
async def test_a_backup_of_a_cluster_holds_every_namespace(engine: Engine, namespace: str, tmp_path: Path) -> None:
    await say(engine, namespace, "To be kept.")
    path = tmp_path / "memory.backup"
    await back_up(engine.database, path)
    with reading(path) as file:
        for table in ("sessions", "messages", "passages"):
            assert namespace.encode() in b"".join(file.rows(table)), table
