"""A streaming standby answers searches, and never with less than was stored before."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import asyncpg
import pytest
from pydantic import SecretStr

from recollect.engine import Engine
from recollect.errors import Misconfigured
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from recollect.settings import Settings
from recollect.storage import embedded
from recollect.storage.embedded.account import account_for, clean_environment
from recollect.storage.embedded.cluster import installation
from recollect.storage.sql import Query
from tests.storage.databases import url
from tests.waiting import wait_until

PORT = 5433
ON_STANDBY = Query.named("test.on_standby", "select pg_is_in_recovery(), :namespace::text")


@dataclass(frozen=True)
class Pair:
    """A server of its own, and a standby of it."""

    primary: embedded.Lease
    process: "subprocess.Popen[bytes]"

    def address(self, port: int | None = None, user: str | None = None) -> str:
        place = self.primary.connection
        return url(replace(place, port=port or place.port), place.database, user)

    def settings(self, settings: Settings) -> Settings:
        addresses = {"database_url": self.address(), "database_read_url": self.address(PORT)}
        return settings.model_copy(update={name: SecretStr(each) for name, each in addresses.items()})

    async def on_standby(self, statement: str) -> None:
        connection = await asyncpg.connect(self.address(PORT, "postgres"))
        await connection.execute(statement)
        await connection.close()


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    home = Path(tempfile.mkdtemp(prefix="recollect-test-"))
    home.chmod(0o755)
    with embedded.start(home) as lease, _standby(home, lease) as process:
        yield Pair(lease, process)
    shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _standby(home: Path, lease: embedded.Lease) -> Iterator["subprocess.Popen[bytes]"]:
    account, programs, data = account_for(home), installation() / "bin", home / "standby"
    place = lease.superuser
    where = ("-h", str(place.socket_dir), "-p", str(place.port), "-U", place.user)
    copied = account.run(programs / "pg_basebackup", *where, "-D", data, "-R", "-c", "fast", "--no-sync")
    assert copied.returncode == 0, copied.stderr
    as_root = os.geteuid() == 0
    process = subprocess.Popen(
        [programs / "postgres", "-D", data, "-c", f"port={PORT}", "-c", "hot_standby_feedback=on"],
        user=account.uid if as_root else None,
        group=account.gid if as_root else None,
        extra_groups=[] if as_root else None,
        cwd="/",
        env=clean_environment(),
        stderr=subprocess.DEVNULL,
    )
    try:
        asking = (programs / "pg_isready", "-h", place.socket_dir, "-p", str(PORT))
        wait_until(lambda: account.run(*asking).returncode == 0 or process.poll() is not None, "the standby answers")
        assert process.poll() is None
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


@pytest.fixture
async def engine(pair: Pair, settings: Settings) -> AsyncIterator[Engine]:
    engine = await Engine.open(pair.settings(settings))
    yield engine
    await engine.close()


async def is_on_standby(engine: Engine, namespace: str) -> bool:
    async with engine.database.searching(namespace) as db:
        return bool((await db.one(ON_STANDBY))[0])


async def say(engine: Engine, namespace: str, text: str) -> None:
    await engine.remember.turn(namespace, Turn("talk", (NewMessage("user", text),), owner_if_new="ann"))


async def found(engine: Engine, namespace: str, text: str) -> list[str]:
    return [memory.text for memory in (await engine.recall.recall(namespace, text)).memories]


async def test_a_search_finds_what_was_stored_right_before_it(engine: Engine, namespace: str) -> None:
    places = set()
    for number in range(30):
        await say(engine, namespace, f"the kettle is number{number}")
        assert f"the kettle is number{number}" in await found(engine, namespace, f"number{number}")
        places.add(await is_on_standby(engine, namespace))
    assert True in places, "the standby never answered"


async def test_a_standby_that_lags_is_not_asked(pair: Pair, engine: Engine, namespace: str) -> None:
    await pair.on_standby("select pg_wal_replay_pause()")
    try:
        await say(engine, namespace, "the kettle is blue")
        assert not await is_on_standby(engine, namespace)
        assert await found(engine, namespace, "kettle") == ["the kettle is blue"]
    finally:
        await pair.on_standby("select pg_wal_replay_resume()")


async def test_a_standby_that_is_away_is_not_needed(
    pair: Pair, settings: Settings, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    nobody = SecretStr(pair.address(PORT + 1))
    engine = await Engine.open(pair.settings(settings).model_copy(update={"database_read_url": nobody}))
    await say(engine, namespace, "the kettle is blue")
    assert await found(engine, namespace, "kettle") == ["the kettle is blue"]
    await engine.close()
    assert [each.name for each in caplog.records if "The read replica does not answer" in each.message] != []


async def test_the_primary_is_no_standby(pair: Pair, settings: Settings) -> None:
    chosen = pair.settings(settings)
    with pytest.raises(Misconfigured, match="not the same database on a streaming standby"):
        await Engine.open(chosen.model_copy(update={"database_read_url": chosen.database_url}))


async def test_another_database_of_the_standby_is_refused(pair: Pair, settings: Settings) -> None:
    another = SecretStr(pair.address(PORT).replace(f"/{pair.primary.connection.database}?", "/postgres?"))
    with pytest.raises(Misconfigured, match="not the same database on a streaming standby"):
        await Engine.open(pair.settings(settings).model_copy(update={"database_read_url": another}))


async def test_a_frozen_standby_keeps_no_search_for_long(
    pair: Pair, engine: Engine, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    await say(engine, namespace, "the kettle is blue")
    await found(engine, namespace, "kettle")
    frozen = [int(pid) for pid in subprocess.check_output(["pgrep", "-P", str(pair.process.pid)], text=True).split()]
    for pid in (pair.process.pid, *frozen):
        os.kill(pid, signal.SIGSTOP)
    try:
        assert await found(engine, namespace, "kettle") == ["the kettle is blue"]
    finally:
        for pid in (pair.process.pid, *frozen):
            os.kill(pid, signal.SIGCONT)
    assert [each.name for each in caplog.records if "The read replica does not answer" in each.message] != []


async def test_a_malformed_address_is_refused_without_showing_its_password(pair: Pair, settings: Settings) -> None:
    malformed = SecretStr("postgresql://u:sec/ret@host/db")
    with pytest.raises(Misconfigured, match="RECOLLECT_DATABASE_READ_URL") as caught:
        await Engine.open(pair.settings(settings).model_copy(update={"database_read_url": malformed}))
    assert "sec" not in str(caught.value).replace("security", "")


async def test_a_standby_needs_its_primary(settings: Settings) -> None:
    chosen = {"database_url": None, "database_read_url": SecretStr("postgresql:///recollect")}
    with pytest.raises(Misconfigured, match="RECOLLECT_DATABASE_READ_URL needs RECOLLECT_DATABASE_URL"):
        await Engine.open(settings.model_copy(update=chosen))
