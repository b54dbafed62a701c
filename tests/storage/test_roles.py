"""Two roles: one owns the tables, the other one only works with rows, and sees those of one namespace."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
from pydantic import SecretStr

from recollect.engine import Engine
from recollect.errors import Misconfigured
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from recollect.settings import Settings
from recollect.storage import vector_index
from recollect.storage.backup.back_up import back_up
from recollect.storage.backup.file import reading
from recollect.storage.embedded import Lease
from tests.commands import recollect
from tests.storage.databases import RawConnection, connect, empty_database, url

FORCED = "select relname from pg_class where relrowsecurity and relforcerowsecurity"
INSERT = "insert into sessions (namespace, id, user_id) values ($1, 's', 'u')"
SECURED = "select relname from pg_class where relrowsecurity"


@dataclass(frozen=True)
class Roles:
    """A new database, and settings for its owner alone, for the other role alone, and for both."""

    server: Lease
    database: str
    name: str
    settings: Settings

    def chosen(self, *, url_of: str | None, owner: str | None = None) -> Settings:
        def secret(user: str | None) -> SecretStr | None:
            return user and SecretStr(url(self.server.connection, self.database, user))  # type: ignore[return-value]

        return self.settings.model_copy(update={"database_url": secret(url_of), "database_owner_url": secret(owner)})

    @property
    def owner(self) -> Settings:
        return self.chosen(url_of=self.server.connection.user)

    @property
    def application(self) -> Settings:
        return self.chosen(url_of=self.name)

    @property
    def both(self) -> Settings:
        return self.chosen(url_of=self.name, owner=self.server.connection.user)

    async def raw(self, user: str | None = None) -> RawConnection:
        return await connect(self.server.connection, self.database, user)


@pytest.fixture
async def roles(server: Lease, settings: Settings) -> AsyncIterator[Roles]:
    name = f"application_{uuid4().hex}"
    admin = await connect(server.superuser)
    await admin.execute(f"create role {name} login")
    async with empty_database(server) as database:
        yield Roles(server, database, name, settings)
    await admin.execute(f"drop role {name}")
    await admin.close()


async def say(chosen: Settings, namespace: str, text: str) -> list[str]:
    """What a search finds after a message was stored."""
    engine = await Engine.open(chosen)
    try:
        await engine.remember.turn(namespace, Turn("talk", (NewMessage("user", text),), owner_if_new="ann"))
        found = await engine.recall.recall(namespace, text)
        return [item.text for item in found.memories]
    finally:
        await engine.close()


async def test_a_role_that_owns_nothing_stores_and_finds(roles: Roles, namespace: str) -> None:
    assert "the kettle is blue" in await say(roles.both, namespace, "the kettle is blue")
    # Whoever has no address of the owner can work as well, once the owner has been there.
    assert "the kettle is blue" in await say(roles.application, namespace, "the kettle is green")


async def test_the_application_sees_only_its_namespace_and_the_owner_sees_all(roles: Roles, namespace: str) -> None:
    await say(roles.both, namespace, "the kettle is blue")
    application = await roles.raw(roles.name)
    owner = await roles.raw()
    assert await owner.fetch(FORCED) == []
    assert await owner.fetchval("select count(*) from messages") == 1
    for setting in ("", "another"):
        await application.execute("select set_config('recollect.namespace', $1, false)", setting)
        for row in await owner.fetch(SECURED):
            assert await application.fetchval(f"select count(*) from {row['relname']}") == 0
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await application.execute(INSERT, namespace)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await application.execute("alter table messages disable row level security")
    await application.execute("select set_config('recollect.namespace', $1, false)", namespace)
    assert await application.fetchval("select count(*) from messages") == 1
    await application.close()
    await owner.close()


async def test_an_owner_that_works_alone_again_is_bound_again(roles: Roles, namespace: str) -> None:
    await say(roles.both, namespace, "the kettle is blue")
    await say(roles.owner, namespace, "the kettle is green")
    owner = await roles.raw()
    assert await owner.fetch(FORCED) == await owner.fetch(SECURED) != []
    assert await owner.fetchval("select count(*) from messages") == 0
    await owner.close()


async def test_a_role_without_tables_or_rights_is_told_who_must_do_what(roles: Roles, namespace: str) -> None:
    with pytest.raises(Misconfigured, match=r"may not change the tables.*RECOLLECT_DATABASE_OWNER_URL"):
        await Engine.open(roles.application)
    await say(roles.owner, namespace, "the kettle is blue")
    with pytest.raises(
        Misconfigured, match=r"run `recollect migrate` with the address of .* in RECOLLECT_DATABASE_OWNER_URL"
    ):
        await Engine.open(roles.application)


async def test_an_application_alone_is_not_kept_away_by_tables_that_bind_their_owner(
    roles: Roles, namespace: str
) -> None:
    await say(roles.both, namespace, "the kettle is blue")
    await say(roles.owner, namespace, "the kettle is green")
    assert "the kettle is blue" in await say(roles.application, namespace, "the kettle is red")


async def test_addresses_of_two_databases_are_refused(roles: Roles, settings: Settings) -> None:
    async with empty_database(roles.server) as another:
        elsewhere = SecretStr(url(roles.server.connection, another))
        with pytest.raises(Misconfigured, match="must name the same database and schema"):
            await Engine.open(roles.both.model_copy(update={"database_owner_url": elsewhere}))


async def test_a_role_without_a_right_to_the_schema_is_given_it(roles: Roles, namespace: str) -> None:
    admin = await connect(roles.server.superuser, roles.database)
    await admin.execute("revoke all on schema public from public")
    await admin.execute(f"alter schema public owner to {roles.server.connection.user}")
    await admin.close()
    assert "the kettle is blue" in await say(roles.both, namespace, "the kettle is blue")


async def test_an_owner_that_owns_nothing_is_refused(roles: Roles, namespace: str) -> None:
    await say(roles.owner, namespace, "the kettle is blue")
    mixed_up = roles.chosen(url_of=roles.server.connection.user, owner=roles.name)
    with pytest.raises(Misconfigured, match="RECOLLECT_DATABASE_OWNER_URL"):
        await Engine.open(mixed_up)


async def test_an_owner_needs_the_other_role(roles: Roles) -> None:
    with pytest.raises(Misconfigured, match="needs RECOLLECT_DATABASE_URL"):
        await Engine.open(roles.chosen(url_of=None, owner=roles.server.connection.user))


async def test_indexes_are_built_by_the_owner(roles: Roles, namespace: str) -> None:
    await say(roles.both, namespace, "the kettle is blue")
    name = vector_index.name_for(namespace, "some model", None, 1)
    engine = await Engine.open(roles.application)
    with pytest.raises(Misconfigured, match="RECOLLECT_DATABASE_OWNER_URL"):
        await vector_index.create(engine.database, name, namespace, "some model", 384, None, 1)
    await engine.close()
    engine = await Engine.open(roles.both)
    await vector_index.create(engine.database, name, namespace, "some model", 384, None, 1)
    assert await vector_index.exists(engine.database, name)
    await engine.close()


async def test_a_backup_by_the_owner_holds_every_namespace(roles: Roles, namespace: str, tmp_path: Path) -> None:
    await say(roles.both, namespace, "the kettle is blue")
    await say(roles.both, f"{namespace}-2", "the kettle is green")
    engine = await Engine.open(roles.both)
    await back_up(engine.database.owner, tmp_path / "all.backup")
    await engine.close()
    with reading(tmp_path / "all.backup") as file:
        (messages,) = [table for table in file.manifest.tables if table.name == "messages"]
    assert messages.rows == 2


async def test_a_restored_database_is_open_to_the_application(
    roles: Roles, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(roles.both, namespace, "the kettle is blue")
    engine = await Engine.open(roles.both)
    await back_up(engine.database.owner, tmp_path / "all.backup")
    await engine.close()
    async with empty_database(roles.server) as another:
        address, user = roles.server.connection, roles.server.connection.user
        monkeypatch.setenv("RECOLLECT_DATABASE_URL", url(address, another, roles.name))
        monkeypatch.setenv("RECOLLECT_DATABASE_OWNER_URL", url(address, another, user))
        done = await asyncio.to_thread(recollect, "restore", tmp_path / "all.backup")
        assert done.returncode == 0, done.stderr
        alone = roles.application.model_copy(update={"database_url": SecretStr(url(address, another, roles.name))})
        assert "the kettle is blue" in await say(alone, namespace, "the kettle is green")
