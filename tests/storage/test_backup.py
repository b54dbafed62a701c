"""Backup and restore, from one real database into another."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from recollect.engine import Engine
from recollect.errors import Conflict, Invalid, Misconfigured, NotFound, Unavailable
from recollect.flows.remember import Turn
from recollect.memory.accounts.connections import NewConnection
from recollect.memory.log import NewMessage
from recollect.settings import Settings
from recollect.storage import catalogue, migrate, vector_index
from recollect.storage.backup import back_up as backup
from recollect.storage.backup.back_up import back_up
from recollect.storage.backup.file import Counter, Manifest, reading, writing
from recollect.storage.backup.restore import restore
from recollect.storage.embedded import Lease
from recollect.storage.opening import connected
from tests.storage.databases import RawConnection, connect, empty_database, url
from tests.storage.test_isolation import fill

pytestmark = pytest.mark.unindexed("it compares the rows of two databases, which an indexer would change")

ONE_POOLING = pytest.mark.parametrize("pooling", ["session"], indirect=True)


@pytest.fixture
async def place(server: Lease, settings: Settings) -> AsyncIterator[Settings]:
    """The settings of a database that has nothing in it."""
    async with somewhere(server, settings) as chosen:
        yield chosen


@pytest.fixture
async def other_place(server: Lease, settings: Settings) -> AsyncIterator[Settings]:
    async with somewhere(server, settings) as chosen:
        yield chosen


@asynccontextmanager
async def somewhere(server: Lease, settings: Settings) -> AsyncIterator[Settings]:
    async with empty_database(server) as database:
        yield settings.model_copy(update={"database_url": SecretStr(url(server.connection, database))})


@asynccontextmanager
async def opened(place: Settings) -> AsyncIterator[Engine]:
    engine = await Engine.open(place)
    try:
        yield engine
    finally:
        await engine.close()


@asynccontextmanager
async def all_seeing(server: Lease, place: Settings) -> AsyncIterator[RawConnection]:
    """A connection that no policy binds."""
    assert place.database_url is not None
    database = place.database_url.get_secret_value().split("/")[3].split("?")[0]
    connection = await connect(server.superuser, database)
    try:
        yield connection
    finally:
        await connection.close()


async def contents(server: Lease, place: Settings) -> dict[str, list[str]]:
    """Every row of every table, as text; not of unlogged ones, whose rows are of the moment."""
    async with all_seeing(server, place) as raw:
        names = await raw.fetch(
            "select relname from pg_class where relkind = 'r' and relpersistence = 'p'"
            " and relnamespace = 'public'::regnamespace"
        )
        return {
            name: [row[0] for row in await raw.fetch(f"select t::text from {name} t order by 1")]
            for name in sorted(row["relname"] for row in names)
            if name != "recollect_migrations"
        }


async def say(engine: Engine, namespace: str, text: str) -> Any:
    (message,) = await engine.remember.turn(namespace, Turn("talk", (NewMessage("user", text),), owner_if_new="ann"))
    return message


async def store_and_back_up(place: Settings, namespace: str, path: Path) -> Manifest:
    async with opened(place) as engine:
        await say(engine, namespace, "The ferry to Naxos leaves at seven.")
        return await back_up(engine.database, path)


async def connect_client(engine: Engine, namespace: str, key_id: str) -> None:
    """A key that reads another namespace, and a client that uses it."""
    await engine.grants.grant(f"{namespace}-granted", namespace, key_id)
    client = f"oc_{namespace}"
    async with engine.database.shared_transaction() as tx:
        await engine.capabilities.clients.add(tx, client, "an agent", ["https://example.org/back"], b"hash")
    new = NewConnection(
        "one", key_id, client, "an agent", "https://example.org/back", "https://example.org/mcp", "challenge", "read"
    )
    async with engine.database.transaction(namespace) as tx:
        await engine.capabilities.connections.add(tx, new)
        await engine.capabilities.connections.add_token(tx, "one", namespace.encode(), "refresh", "read", 3600.0)


@pytest.mark.parametrize(("small_at_once", "large"), [(100, 2_000), (1, 2_000), (100, 0)])
async def test_every_row_of_every_table_and_namespace_comes_back(
    server: Lease,
    place: Settings,
    other_place: Settings,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    small_at_once: int,
    large: int,
) -> None:
    monkeypatch.setattr(backup, "NAMESPACES_AT_ONCE", small_at_once)
    monkeypatch.setattr(backup, "LARGE_NAMESPACE", large)
    path = tmp_path / "all.backup"
    async with opened(place) as engine:
        for name in (namespace, f"{namespace}-other"):
            await fill(engine, name)
            await connect_client(engine, name, (await engine.access.create_key(name)).id)
        # Seen by nothing but the table of sessions, and in a namespace of its own.
        await engine.remember.session(f"{namespace}-quiet", "empty", "ann", None, '{"tab": "\\t", "line": "a\\\\nb"}')
        await engine.remember.document(namespace, "tab\t newline\n \\N backslash\\ 名前", None, None)
        await engine.indexer.flush(namespace)
        async with all_seeing(server, place) as raw:
            await raw.execute("analyze")  # which namespaces are large is known from the last sample
        manifest = await back_up(engine.database, path)
    before = await contents(server, place)
    assert [name for name, rows in before.items() if not rows] == [], "a table is not filled by this test"
    assert {table.name: table.rows for table in manifest.tables} == {name: len(rows) for name, rows in before.items()}
    async with connected(other_place) as database:
        restored = await restore(database, path)
    assert restored.with_giants == [namespace, f"{namespace}-other"]
    assert await contents(server, other_place) == before


@ONE_POOLING
async def test_the_restored_database_is_used_as_if_nothing_had_happened(
    server: Lease, place: Settings, other_place: Settings, namespace: str, tmp_path: Path
) -> None:
    path = tmp_path / "all.backup"
    async with opened(place) as engine:
        first = await say(engine, namespace, "The ferry to Naxos leaves at seven.")
        await engine.indexer.flush(namespace)
        key = await engine.access.create_key(namespace)
        await back_up(engine.database, path)
    async with connected(other_place) as database:
        await restore(database, path)
    async with opened(other_place) as engine:
        found = await engine.recall.recall(namespace, "When does the ferry leave?")
        assert [memory.id for memory in found.memories] == [str(first.id)]
        assert found.pending == 0
        assert (await engine.recall.recall(f"{namespace}-other", "When does the ferry leave?")).memories == []
        second = await say(engine, namespace, "The bus to Halki leaves at nine.")
        assert (second.seq, second.position) == (first.seq + 1, first.position + 1)
        credential = await engine.access.credential(key.secret)
        assert credential is not None
        assert credential.namespace == namespace
    for where in (place, other_place):
        async with connected(where) as database, database.unscoped() as connection:
            tables = {table.name: table for table in await catalogue.tables(connection)}
            assert (tables["messages"].forced, tables["messages"].guarded) == (True, True)
            assert await connection.fetchval("select count(*) from messages") == 0


@ONE_POOLING
async def test_a_backup_is_of_one_moment_and_keeps_nobody_from_writing(
    place: Settings, namespace: str, tmp_path: Path
) -> None:
    async with opened(place) as engine:
        await say(engine, namespace, "before")
        writing_meanwhile: list[asyncio.Task[Any]] = []
        copied = asyncio.Event()

        def progress(rows: int, total: int) -> None:
            if not writing_meanwhile:
                writing_meanwhile.append(asyncio.create_task(say(engine, f"{namespace}-new", "meanwhile")))
                writing_meanwhile[0].add_done_callback(lambda _: copied.set())

        async with connected(place) as database:
            # The writer must come to its end while the backup holds its snapshot and its locks.
            original = catalogue.counters

            async def after_the_writer(*values: Any) -> Any:
                await asyncio.wait_for(copied.wait(), 30)
                return await original(*values)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(catalogue, "counters", after_the_writer)
                manifest = await back_up(database, tmp_path / "b", progress=progress)
        assert {table.name: table.rows for table in manifest.tables}["messages"] == 1
        async with engine.database.reading(f"{namespace}-new") as db:
            assert len(await engine.capabilities.log.recent(db, "talk", 10)) == 1


@ONE_POOLING
async def test_a_table_that_is_never_free_is_named_and_one_that_becomes_free_is_waited_for(
    place: Settings, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "LOCK_MILLISECONDS", (1,) * 3)
    monkeypatch.setattr(backup, "LOCK_PAUSE_SECONDS", 0.01)
    async with opened(place) as engine:
        await say(engine, namespace, "before")
        async with engine.database.transaction(namespace) as reader:
            await engine.capabilities.log.recent(reader, "talk", 1)
            with pytest.raises(Unavailable, match="table messages was locked"):
                await back_up(engine.database, tmp_path / "b")
            assert not list(tmp_path.iterdir())
            monkeypatch.setattr(backup, "LOCK_MILLISECONDS", (1,) * 1_000)
            waiting = asyncio.create_task(back_up(engine.database, tmp_path / "b"))
            await asyncio.wait({waiting}, timeout=0.1)
            assert not waiting.done()
        assert (await waiting).rows() > 0


@ONE_POOLING
async def test_a_database_that_is_not_empty_is_refused_and_stays_as_it_is(
    server: Lease, place: Settings, other_place: Settings, namespace: str, tmp_path: Path
) -> None:
    await store_and_back_up(place, namespace, tmp_path / "b")
    async with opened(other_place) as engine:
        await engine.remember.session(namespace, "somebody's", "ann")
        before = await contents(server, other_place)
        with pytest.raises(Conflict, match="not empty: there are rows in sessions"):
            await restore(engine.database, tmp_path / "b")
    assert await contents(server, other_place) == before


@ONE_POOLING
async def test_an_empty_database_with_the_schema_is_filled(
    server: Lease, place: Settings, other_place: Settings, namespace: str, tmp_path: Path
) -> None:
    await store_and_back_up(place, namespace, tmp_path / "b")
    async with opened(other_place) as engine:
        await restore(engine.database, tmp_path / "b")
        assert await contents(server, other_place) == await contents(server, place)
        assert (await engine.recall.recall(namespace, "When does the ferry leave?")).memories


@ONE_POOLING
@pytest.mark.parametrize("target_is", ["fresh", "newer"])
async def test_a_backup_of_an_older_schema_is_restored_and_then_migrated(
    server: Lease,
    place: Settings,
    other_place: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    target_is: str,
) -> None:
    """Version 12 gives each namespace the model that most of its vectors are of: only rows that are there can tell."""
    known = migrate.migrations()
    monkeypatch.setattr(migrate, "migrations", lambda: [step for step in known if step.version < 12])
    async with connected(place) as database:
        await migrate.migrate(database)
        async with database.unscoped() as connection:
            await connection.execute(
                "insert into passage_vectors values ('n', 1, 'message', 'ann', 'a model', '[1,2]'), "
                "('n', 2, 'message', 'ann', 'a model', '[1,2]')"
            )
        manifest = await back_up(database, tmp_path / "b")
    assert manifest.schema_version == 11
    assert "embedding_models" not in [table.name for table in manifest.tables]
    monkeypatch.undo()
    async with connected(other_place) as database:
        if target_is == "newer":
            await migrate.migrate(database)
        await restore(database, tmp_path / "b")
        assert await migrate.pending(database) == ()
    async with all_seeing(server, other_place) as raw:
        assert await raw.fetchval("select active from embedding_models where namespace = 'n'") == "a model"


@ONE_POOLING
async def test_a_whole_file_that_cannot_be_restored_is_refused_and_leaves_nothing_behind(
    server: Lease, place: Settings, other_place: Settings, namespace: str, tmp_path: Path
) -> None:
    manifest = await store_and_back_up(place, namespace, tmp_path / "b")
    rewrite(tmp_path / "b", tmp_path / "newer", schema_version=9000)
    rewrite(tmp_path / "b", tmp_path / "torn", without="sessions")
    rewrite(tmp_path / "b", tmp_path / "counts", counters=[Counter(table="nowhere", column="id", last=1)])
    with writing(tmp_path / "none", overwrite=False) as file:
        file.finish(manifest.model_copy(update={"tables": []}))
    async with connected(other_place) as database:
        with pytest.raises(Misconfigured, match="schema version 9000, but this version of Recollect supports up to"):
            await restore(database, tmp_path / "newer")
        with pytest.raises(Invalid, match="does not have the tables of schema version"):
            await restore(database, tmp_path / "none")
        with pytest.raises(Invalid, match=r"has an id counter for nowhere\.id, which does not exist"):
            await restore(database, tmp_path / "counts")
        # A message of a session that is not there.
        with pytest.raises(Conflict, match="refers to a record that does not exist"):
            await restore(database, tmp_path / "torn")
    assert await contents(server, other_place) == {}


def rewrite(path: Path, into: Path, without: str = "", **changes: Any) -> None:
    """Another file with the same rows, all but those of one table."""
    with reading(path) as file, writing(into, overwrite=False) as changed:
        entries = []
        for table in file.manifest.tables:
            with changed.table(table.name) as rows:
                for data in file.rows(table.name) if table.name != without else ():
                    rows.write(data)
                entries.append(rows.entry(table.name, table.columns))
        changed.finish(file.manifest.model_copy(update={"tables": entries, **changes}))


@ONE_POOLING
async def test_the_indexes_of_large_owners_are_built_again(
    server: Lease, place: Settings, other_place: Settings, namespace: str, tmp_path: Path
) -> None:
    async with opened(place) as engine:
        await fill(engine, namespace)
        await back_up(engine.database, tmp_path / "b")
    async with connected(other_place) as database:
        await restore(database, tmp_path / "b")
    async with opened(other_place) as engine:
        (built,) = await engine.indexes.rebuild(namespace)
        assert await vector_index.exists(engine.database, built.index_name)
        assert await engine.indexes.rebuild(namespace) == []


@ONE_POOLING
async def test_a_database_without_our_tables_has_nothing_to_back_up(place: Settings, tmp_path: Path) -> None:
    async with connected(place) as database:
        with pytest.raises(NotFound, match="nothing to back up"):
            await back_up(database, tmp_path / "b")
    assert not list(tmp_path.iterdir())


@ONE_POOLING
async def test_a_role_that_neither_owns_the_tables_nor_passes_their_policies_is_told_so(
    server: Lease, place: Settings, namespace: str, tmp_path: Path
) -> None:
    await store_and_back_up(place, namespace, tmp_path / "b")
    role = f"reader_{namespace.replace('-', '')}"
    assert place.database_url is not None
    async with all_seeing(server, place) as raw:
        await raw.execute(f"create role {role} login")
        await raw.execute(f"grant select, insert on all tables in schema public to {role}")
        try:
            theirs = place.database_url.get_secret_value().replace(f"//{server.connection.user}@", f"//{role}@")
            async with connected(place.model_copy(update={"database_url": SecretStr(theirs)})) as database:
                with pytest.raises(Misconfigured, match="does not own the table"):
                    await back_up(database, tmp_path / "c")
            await raw.execute(f"alter role {role} bypassrls; grant select on all sequences in schema public to {role}")
            async with connected(place.model_copy(update={"database_url": SecretStr(theirs)})) as database:
                manifest = await back_up(database, tmp_path / "c")
            assert {table.name: table.rows for table in manifest.tables}["messages"] == 1
        finally:
            await raw.execute(f"drop owned by {role}; drop role {role}")
