"""Migrations: many processes at once, newer databases, servers that lack something."""

import asyncio
import subprocess
import sys

import pytest
from pydantic import SecretStr

from recollect.engine import Engine
from recollect.errors import Misconfigured
from recollect.settings import Settings
from recollect.storage.embedded import Lease
from recollect.storage.migrate import migrate, migrations
from recollect.storage.opening import connected
from tests.storage.databases import connect, empty_database, url

OPEN_AND_CLOSE = """
import asyncio
from recollect.engine import Engine

async def main():
    engine = await Engine.open()
    await engine.close()

asyncio.run(main())
"""


async def test_four_processes_that_start_at_once_on_an_empty_database_all_come_up(
    server: Lease, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with empty_database(server) as database:
        monkeypatch.setenv("RECOLLECT_DATABASE_URL", url(server.connection, database))
        starting = [
            subprocess.Popen([sys.executable, "-c", OPEN_AND_CLOSE], stderr=subprocess.PIPE, text=True)
            for _ in range(4)
        ]
        for process in starting:
            _, errors = await asyncio.to_thread(process.communicate, timeout=60)
            assert process.returncode == 0, errors
        connection = await connect(server.connection, database)
        versions = await connection.fetch("select version from recollect_migrations order by version")
        await connection.close()
    assert [row["version"] for row in versions] == [m.version for m in migrations()]


async def test_migrating_again_changes_nothing(server: Lease, settings: Settings) -> None:
    async with empty_database(server) as database:
        chosen = settings.model_copy(update={"database_url": SecretStr(url(server.connection, database))})
        async with connected(chosen) as opened:
            assert await migrate(opened) == await migrate(opened)


async def test_a_database_newer_than_the_code_is_refused(server: Lease, settings: Settings) -> None:
    async with empty_database(server) as database:
        chosen = settings.model_copy(update={"database_url": SecretStr(url(server.connection, database))})
        engine = await Engine.open(chosen)
        await engine.close()
        connection = await connect(server.connection, database)
        await connection.execute("insert into recollect_migrations (version, name) values (9999, 'from the future')")
        await connection.close()
        with pytest.raises(Misconfigured, match="schema version 9999, but this version of Recollect supports up to"):
            await Engine.open(chosen)


async def test_a_missing_extension_names_the_statement_and_who_must_run_it(server: Lease, settings: Settings) -> None:
    async with empty_database(server, extension=False) as database:
        chosen = settings.model_copy(update={"database_url": SecretStr(url(server.connection, database))})
        with pytest.raises(Misconfigured, match=rf"A superuser must run in {database}: CREATE EXTENSION vector;"):
            await Engine.open(chosen)


async def test_a_role_that_may_create_the_extension_creates_it(server: Lease, settings: Settings) -> None:
    async with empty_database(server, extension=False) as database:
        as_superuser = SecretStr(url(server.superuser, database))
        engine = await Engine.open(settings.model_copy(update={"database_url": as_superuser}))
        versions = await engine.health()
        await engine.close()
    assert versions.pgvector


async def test_a_step_that_fails_leaves_the_database_as_it_was(
    server: Lease, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recollect.storage import migrate as module

    broken = [*migrations(), module.Migration(9000, "broken", "create table half (x int); select no_such_column;")]
    monkeypatch.setattr(module, "migrations", lambda: broken)
    async with empty_database(server) as database:
        chosen = settings.model_copy(update={"database_url": SecretStr(url(server.connection, database))})
        with pytest.raises(Misconfigured, match="no_such_column"):
            await Engine.open(chosen)
        connection = await connect(server.connection, database)
        assert await connection.fetchval("select to_regclass('half')") is None
        assert await connection.fetchval("select max(version) from recollect_migrations") < 9000
        await connection.close()


def test_every_step_has_a_number_of_its_own() -> None:
    assert [step.version for step in migrations()] == list(range(1, len(migrations()) + 1))
