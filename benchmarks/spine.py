"""The log against a raw asyncpg loop that runs the same SQL on the same pool."""

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.report import Report, percentiles, ratio
from benchmarks.sizes import sized
from recollect import MemoryManager, Settings
from recollect.engine import Engine
from recollect.identifiers import uuid7
from recollect.memory import log
from recollect.memory.index import passages
from recollect.memory.log import Destination, Entry, NewMessage, NewTurn, Words
from recollect.storage.sql import Query

CONVERSATIONS = sized(100, 4)
INTERACTIONS = sized(40, 4)
LONG_CONVERSATION = sized(1_000_000)
TEXT = "The user prefers a window judge and would rather fly in the morning than late at night."
OWNER = "bench"
(EXCERPT,) = passages.analyse(TEXT)
WORDS = Words(TEXT, passages.keys_of("default", OWNER, EXCERPT), EXCERPT.weights)


async def run(report: Report, home: Path) -> None:
    print("spine")
    settings = Settings(data_dir=home, indexer=False)
    async with MemoryManager(settings) as memory:
        engine = await memory._engine()
        await set_namespace_everywhere(engine)
        await messages_one_by_one(report, memory, engine)
        await history(report, memory, engine)
        await interactions_at_once(report, engine)
        await long_conversation(report, engine)


async def set_namespace_everywhere(engine: Engine) -> None:
    """Open every connection of the pool in the namespace, so that the raw loop may use any of them."""
    async with AsyncExitStack() as held:
        for _ in range(engine.settings.database_connections):
            await held.enter_async_context(engine.database.reading("default"))


async def messages_one_by_one(report: Report, memory: MemoryManager, engine: Engine) -> None:
    session = await memory.create_session(OWNER)
    await memory.store_message(session, "user", TEXT)

    async def ours() -> None:
        await memory.store_message(session, "user", TEXT)

    async def raw() -> None:
        async with engine.database._pool.acquire() as connection:
            await raw_append(connection, str(session), [("user", TEXT)])

    speed, theirs, own = await ratio(raw, ours, sized(200, 5))
    report.add(
        "store_message, ratio to raw asyncpg", f"{speed:.2f} ({own * 1e3:.2f} / {theirs * 1e3:.2f} ms)", ">= 0.6"
    )


async def history(report: Report, memory: MemoryManager, engine: Engine) -> None:
    session = uuid4()
    await asyncio.gather(*(memory.store_message(session, "user", TEXT) for _ in range(100)))

    async def ours() -> None:
        assert len(await memory.get_conversation_history(session, limit=20)) == 20

    async def raw() -> None:
        async with engine.database._pool.acquire() as connection:
            assert len(await ask(connection, log._Sql.recent, session_id=str(session), limit=20)) == 20

    speed, theirs, own = await ratio(raw, ours, sized(300, 5))
    report.add(
        "get_conversation_history(20), ratio to raw asyncpg",
        f"{speed:.2f} ({own * 1e3:.2f} / {theirs * 1e3:.2f} ms)",
        ">= 0.6",
    )


async def interactions_at_once(report: Report, engine: Engine) -> None:
    created = [await engine.conversations.create("default", OWNER, None) for _ in range(CONVERSATIONS)]
    ids = [conversation.id for conversation in created]

    async def ours(conversation: str) -> None:
        for _ in range(INTERACTIONS):
            await engine.conversations.record("default", conversation, TEXT, TEXT, None)

    async def raw(conversation: str) -> None:
        for _ in range(INTERACTIONS):
            async with engine.database._pool.acquire() as connection:
                await raw_append(connection, conversation, [("user", TEXT), ("assistant", TEXT)])

    async def messages_per_second(work: Any) -> float:
        started = time.perf_counter()
        await asyncio.gather(*map(work, ids))
        return 2 * CONVERSATIONS * INTERACTIONS / (time.perf_counter() - started)

    ceiling, own = await messages_per_second(raw), await messages_per_second(ours)
    report.add(
        f"record_interaction, {CONVERSATIONS} conversations at once",
        f"{own:,.0f} messages/s (raw asyncpg, one transaction each: {ceiling:,.0f})",
        ">= 1,000 messages/s",
    )


async def long_conversation(report: Report, engine: Engine) -> None:
    for count in (100, LONG_CONVERSATION):
        session = str(uuid4())
        async with engine.database.transaction("default") as tx:
            await engine.capabilities.sessions.open(tx, {session: OWNER})
            await tx._connection.execute(
                """
                insert into messages (namespace, id, session_id, position, role, content, created_at)
                select 'default', gen_random_uuid(), $1, n, 'user', $3, now() from generate_series(0, $2 - 1) n
                """,
                session,
                count,
                TEXT,
                timeout=600,
            )

        async def last_twenty(session: str = session) -> None:
            async with engine.database.reading("default") as db:
                assert len(await engine.capabilities.log.recent(db, session, 20)) == 20

        await percentiles(last_twenty, 100)
        p50, p95 = await percentiles(last_twenty, sized(1000))
        report.add(f"last 20 of {count:,} messages", f"p50 {p50:.2f} ms, p95 {p95:.2f} ms", "the same")


async def raw_append(connection: Any, session: str, lines: list[tuple[str, str]]) -> None:
    """What one append is in SQL, with nothing around it: the words of the text are worked out beforehand."""
    destination = Destination(session, OWNER, "", begins=False)
    entries = [Entry(uuid7(), destination, NewMessage(role, text), (WORDS,)) for role, text in lines]
    await ask(connection, log._Sql.append, **log._values(entries, [NewTurn(destination, len(lines), None, "library")]))


async def ask(connection: Any, query: Query, **values: object) -> Any:
    """A statement of ours, straight to asyncpg."""
    return await connection.fetch(query.text, "default", *query.values(values))
