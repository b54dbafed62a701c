"""Keys that are limited to a user or an agent, below the doors: what is not known to keep within limits is refused."""

import asyncio
import importlib
import pkgutil
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID, uuid4

import pytest

import recollect.memory
from recollect.engine import Engine
from recollect.errors import Forbidden, Invalid, NotFound, RecollectError
from recollect.flows.long_term.memory_requests import Options
from recollect.flows.remember import Turn
from recollect.flows.sessions import Described
from recollect.memory.index.search import Scope
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from recollect.origin import Limits, acting, own_work
from recollect.settings import Settings
from recollect.storage.sql import Limit, Queries, Query
from tests.valkey import shared_url, with_redis


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


ANNA, BOB, CODER = MemoryScope("anna"), MemoryScope("bob"), MemoryScope("anna", "coder")


async def add(engine: Engine, namespace: str, text: str, scope: MemoryScope, options: Options | None = None) -> str:
    return str((await engine.memories.add(namespace, text, "fact", scope, options=options)).memory.id)


async def say(engine: Engine, namespace: str, session: str, text: str, user: str | None = "anonymous") -> str:
    (message,) = await engine.remember.turn(namespace, Turn(session, (NewMessage("user", text),), user))
    return str(message.id)


async def refused(work: Awaitable[object]) -> None:
    with pytest.raises((Forbidden, NotFound)):
        await work


async def test_a_recall_is_of_the_key_whatever_it_asks_for(engine: Engine, namespace: str) -> None:
    await add(engine, namespace, "The parrot of Anna is called Coco", ANNA)
    await add(engine, namespace, "The parrot of Bob is called Rio", BOB)
    await add(engine, namespace, "The parrot of the house is called Polly", MemoryScope(session_id="s"))
    await engine.remember.text(namespace, "A parrot lives for sixty years")
    await say(engine, namespace, "s", "My parrot is called Kiwi", "bob")
    await engine.indexer.flush(namespace)
    now = datetime.now(UTC)
    with acting("rest", "anna", limits=Limits("anna")):
        for scope in (Scope(), Scope(session_id="s"), Scope(as_of=now), Scope(kinds=("memory", "message", "document"))):
            found = await engine.recall.recall(namespace, "parrot", scope, explain=True, half_life_days=30)
            assert {memory.user_id for memory in found.memories} <= {"anna"}
        assert [memory.text for memory in (await engine.recall.recall(namespace, "parrot")).memories] == [
            "The parrot of Anna is called Coco"
        ]
        await refused(engine.recall.recall(namespace, "parrot", Scope(owner="bob")))
        await refused(engine.cognition.hybrid_search(namespace, "parrot"))


async def test_memories_of_others_cannot_be_named(engine: Engine, namespace: str) -> None:
    theirs = await add(engine, namespace, "The ferry leaves at nine", BOB)
    said = await say(engine, namespace, "s", "When does it leave?", "bob")
    with acting("rest", "anna", limits=Limits("anna")):
        await refused(add(engine, namespace, "The ferry leaves at ten", ANNA, Options(supersedes=(theirs,))))
        for source in (f"memory:{theirs}", f"message:{said}"):
            with pytest.raises(RecollectError, match=r"Unknown source|limited to user"):
                await add(engine, namespace, "The ferry leaves at ten", ANNA, Options(sources=(source,)))
        await refused(add(engine, namespace, "The ferry leaves at ten", MemoryScope("anna", session_id="s")))
        await refused(engine.memories.history(namespace, theirs))
        await refused(engine.memories.delete(namespace, theirs))
        await refused(engine.clearing.clear(namespace, BOB))
        await refused(engine.clearing.clear(namespace, MemoryScope(), everybody=True))
        with pytest.raises(Invalid):
            await engine.clearing.clear(namespace, MemoryScope())
        own = await add(engine, namespace, "The bus leaves at ten", MemoryScope())
        assert (await engine.memories.get(namespace, own)).user_id == "anna"
    assert (await engine.memories.get(namespace, theirs)).superseded_by is None


async def test_messages_land_in_no_session_of_others_even_if_it_begins_at_the_same_moment(
    engine: Engine, namespace: str
) -> None:
    async def limited(session: str) -> None:
        with acting("rest", "anna", limits=Limits("anna")):
            await say(engine, namespace, session, "I am Anna")

    async def free(session: str) -> None:
        await say(engine, namespace, session, "I am Bob", "bob")

    sessions = [f"s{number}" for number in range(20)]
    said = await asyncio.gather(
        *(work(session) for session in sessions for work in (free, limited)), return_exceptions=True
    )
    assert all(isinstance(each, RecollectError) for each in said if isinstance(each, BaseException))
    for session in sessions:
        owner = (await engine.sessions.get(namespace, session)).user_id
        messages = await engine.sessions.messages(namespace, session, 10)
        if owner == "bob":
            assert {message.content for message in messages} == {"I am Bob"}


async def test_a_taken_message_id_tells_nothing(engine: Engine, namespace: str) -> None:
    theirs = UUID(await say(engine, namespace, "s", "The code is 4711", "bob"))
    with acting("rest", "anna", limits=Limits("anna")):
        turn = Turn("own", (NewMessage("user", "The code is 4711", id=theirs),), "anna")
        with pytest.raises(RecollectError) as problem:
            await engine.remember.turn(namespace, turn)
        assert "4711" not in str(problem.value)
        await refused(engine.sessions.message(namespace, theirs))


async def test_a_key_for_an_agent_is_for_its_memories_and_sessions(engine: Engine, namespace: str) -> None:
    await add(engine, namespace, "The tests run on Monday", ANNA)
    kept = await add(engine, namespace, "The tests run with pytest", CODER)
    for session, agent in (("theirs", None), ("own", "coder")):
        await engine.sessions.create(namespace, session, Described("anna", agent))
        await say(engine, namespace, session, f"The tests of {session}")
    await engine.indexer.flush(namespace)
    with acting("mcp", "coder", limits=Limits(agent="coder")):
        found = await engine.recall.recall(namespace, "tests")
        assert [memory.id for memory in found.memories] == [kept]
        assert [session.id for session in await engine.sessions.page(namespace, None, None, 10, None)] == ["own"]
        assert len(await engine.sessions.messages(namespace, "own", 10)) == 1
        await refused(engine.sessions.messages(namespace, "theirs", 10))
        await refused(say(engine, namespace, "own", "What begins with a message has no agent"))
        await refused(engine.sessions.put(namespace, "own", Described("anna", "another")))
        added = await engine.memories.get(namespace, await add(engine, namespace, "Lint first", MemoryScope("bob")))
        assert (added.user_id, added.agent_id) == ("bob", "coder")


async def test_what_says_nothing_of_limits_is_refused(engine: Engine, namespace: str) -> None:
    with acting("rest", "anna", limits=Limits("anna")):
        async with engine.database.reading(namespace) as db:
            await refused(db.all(Query("tests.free", "select $1::text as namespace")))
            await refused(db.first(Query("tests.free", "select $1::text as namespace")))
        for connection in (engine.database.unscoped(), engine.database.alone()):
            with pytest.raises(Forbidden):
                await connection.__aenter__()
        with own_work():
            async with engine.database.reading(namespace) as db:
                assert await db.all(Query("tests.free", "select $1::text as namespace"))


@pytest.mark.parametrize("pooling", ["session", "transaction"])
async def test_a_statement_that_forgets_the_limits_still_sees_no_memories_of_others(
    engine: Engine, namespace: str
) -> None:
    for scope in (ANNA, BOB, CODER, MemoryScope(session_id="s")):
        await add(engine, namespace, f"A note of {scope.user_id} and {scope.agent_id}", scope)
    reading = (engine.database.reading, engine.database.searching, engine.database.transaction)
    text = "select user_id, agent_id from memories where namespace = $1 order by 1, 2 nulls first"
    careless = Query("tests.careless", text, limits=(Limit("none", ()),))
    for limits, seen in (
        (Limits("anna"), [("anna", None), ("anna", "coder")]),
        (Limits(None, "coder"), [("anna", "coder")]),
        (Limits("bob", "coder"), []),
    ):
        for open_one in reading:
            with acting("rest", "x", limits=limits):
                async with open_one(namespace) as db:
                    assert [tuple(row) for row in await db.all(careless)] == seen
            async with open_one(namespace) as db:
                assert len(await db.all(careless)) == 4
    foreign = Query("tests.foreign", "update memories set user_id = 'bob' where namespace = $1", (), "write")
    with acting("rest", "anna", limits=Limits("anna")), pytest.raises(RecollectError):
        async with engine.database.transaction(namespace) as tx:
            await tx.all(replace(foreign, limits=(Limit("none", ()),)))


@pytest.fixture
async def on_redis(settings: Settings) -> AsyncIterator[Engine]:
    engine = await Engine.open(with_redis(settings, shared_url()))
    yield engine
    await engine.close()


async def test_windows_in_redis_have_no_users_and_are_refused(on_redis: Engine, namespace: str) -> None:
    await on_redis.windows.add(namespace, "s", [NewMessage("user", "hello")])
    with acting("rest", "anna", limits=Limits("anna")):
        await refused(on_redis.windows.messages(namespace, "s"))
        await refused(on_redis.windows.add(namespace, str(uuid4()), [NewMessage("user", "hello")]))


def test_a_statement_tells_its_limits_by_its_own_values_and_columns() -> None:
    for module in pkgutil.walk_packages(recollect.memory.__path__, "recollect.memory."):
        importlib.import_module(module.name)
    queries = [value for each in Queries.__subclasses__() for value in vars(each).values() if isinstance(value, Query)]
    limited = [(query, limit) for query in queries for limit in query.limits]
    assert len(limited) > 50
    for query, (how, names) in limited:
        code = query.text.rpartition("-- ")[2].partition("\n")[2]
        known = query.parameters if how in ("given", "seen", "session", "memory") else code
        assert all(name in known for name in names if name != "-"), query.name
        assert bool(names) == (how != "none"), query.name
        if how == "given" and query.role == "read":
            numbers = [query.parameters.index(name) + 2 for name in names if name != "-"]
            assert all(f"= ${number}" in code for number in numbers), query.name
