"""Connections, transactions and the categories of database failures."""

import asyncio
from uuid import uuid4

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid, Unavailable
from recollect.flows.remember import Turn
from recollect.memory.log import NewMessage
from recollect.settings import Settings
from recollect.storage.embedded import Lease
from recollect.storage.sql import Query
from tests.storage.databases import connect

INSERT = Query.named("test.insert", "insert into sessions (namespace, id, user_id) values (:namespace, :id, :user_id)")
COUNT = Query.named("test.count", "select count(*) from sessions where namespace = :namespace")
SLOW = Query.named("test.slow", "select pg_sleep(30), :namespace::text")
BAD_NUMBER = Query.named("test.bad", "select 1 / :number::int, :namespace::text")


async def test_an_error_inside_a_transaction_undoes_all_of_it(engine: Engine, namespace: str) -> None:
    async def write_and_fail() -> None:
        async with engine.database.transaction(namespace) as tx:
            await tx.all(INSERT, id="s", user_id="u")
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await write_and_fail()
    async with engine.database.reading(namespace) as db:
        assert (await db.one(COUNT))[0] == 0


async def test_a_cancelled_transaction_is_undone_and_its_connection_is_usable_again(
    engine: Engine, namespace: str
) -> None:
    entered = asyncio.Event()

    async def write_and_wait() -> None:
        async with engine.database.transaction(namespace) as tx:
            await tx.all(INSERT, id="s", user_id="u")
            entered.set()
            await asyncio.Event().wait()

    for _ in range(25):
        entered.clear()
        task = asyncio.create_task(write_and_wait())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with engine.database.reading(namespace) as db:
        assert (await db.one(COUNT))[0] == 0


@pytest.mark.embedded("over TLS, asyncpg itself reports a caller that is cancelled while a connection is made for it")
async def test_a_caller_cancelled_at_any_moment_leaves_no_open_transaction_and_no_report(
    engine: Engine, namespace: str
) -> None:
    reports: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context["message"]))

    async def write() -> None:
        async with engine.database.transaction(namespace) as tx:
            await tx.all(INSERT, id=str(uuid4()), user_id="u")
            raise LookupError

    # Each turn is a moment later: in BEGIN, in the statement, in ROLLBACK, in the release.
    for turns in range(60):
        task = asyncio.create_task(write())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    async with engine.database.reading(namespace) as db:
        assert (await db.one(COUNT))[0] == 0
    assert reports == []


async def test_closing_does_not_wait_for_a_call_that_hangs(settings: Settings, namespace: str) -> None:
    engine = await Engine.open(settings)

    asked = asyncio.Event()

    async def hang() -> None:
        async with engine.database.reading(namespace) as db:
            asked.set()
            await db.all(SLOW)

    hanging = asyncio.create_task(hang())
    await asked.wait()
    await engine.close()
    with pytest.raises(Unavailable):
        await hanging


async def test_a_statement_that_takes_too_long_is_unavailable(settings: Settings, namespace: str) -> None:
    engine = await Engine.open(settings.model_copy(update={"database_timeout_seconds": 0.5}))
    with pytest.raises(Unavailable, match="in time"):
        async with engine.database.reading(namespace) as db:
            await db.all(SLOW)
    await engine.close()


async def test_an_error_of_the_data_is_invalid_and_its_note_names_the_statement(engine: Engine, namespace: str) -> None:
    with pytest.raises(Invalid, match=r"a value in the request: division by zero") as caught:
        async with engine.database.reading(namespace) as db:
            await db.all(BAD_NUMBER, number=0)
    assert caught.value.__notes__ == ["In the statement test.bad"]


async def test_connections_that_the_server_ended_are_replaced(server: Lease, engine: Engine, namespace: str) -> None:
    turn = Turn("session", (NewMessage("user", "hello"),), owner_if_new="user")
    await engine.remember.turn(namespace, turn)
    admin = await connect(server.superuser)
    async with engine.database.unscoped() as connection:
        own = await connection.fetchval("select pg_backend_pid()")
    await admin.execute("select pg_terminate_backend($1, 5000)", own)
    await admin.close()
    for _ in range(3):
        try:
            await engine.remember.turn(namespace, turn)
            break
        except Unavailable:
            continue
    async with engine.database.reading(namespace) as db:
        assert len(await engine.capabilities.log.recent(db, "session", 10)) == 2


async def test_a_namespace_that_is_no_plain_name_is_refused(engine: Engine) -> None:
    for bad in ("", "a b", "x'; drop table messages; --", "n" * 129, "-x", "\x00"):
        with pytest.raises(Invalid, match="namespace"):
            async with engine.database.transaction(bad):
                pass
