"""A hundred thousand namespaces: what the idle ones cost those that are in use."""

import asyncio
import itertools
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg

from benchmarks.recall import fill, question, resident_megabytes, sentence
from benchmarks.report import Report, percentiles
from benchmarks.sizes import sized
from recollect import Settings
from recollect.engine import Engine
from recollect.flows.remember import Turn
from recollect.memory.index.search import Scope
from recollect.memory.log import NewMessage
from recollect.storage import embedded
from recollect.storage.backup.back_up import back_up

ACTIVE = sized(1_000)
IDLE = sized(99_000)
MESSAGES = 20
GIANT = sized(100_000)
BACKLOG = sized(2_000)
AT_ONCE = 1_000
QUESTIONS = sized(200, 5)
TEMPLATE = "active-0"

# Every row of one namespace, for many others. Keys of words hold their namespace, so they differ in each.
_CLONE = """
select format(
    'insert into %1$s (%2$s) overriding system value select %3$s from %1$s t cross join unnest($1::text[]) as n (name) '
    || 'where t.namespace = $2',
    c.oid::regclass,
    string_agg(quote_ident(a.attname), ', ' order by a.attnum),
    string_agg(
        case a.attname when 'namespace' then 'n.name'
        when 'keys' then '(select array_agg(key # hashtextextended(n.name, 0)) from unnest(t.keys) as key)'
        else 't.' || quote_ident(a.attname) end, ', ' order by a.attnum
    )
) as clone
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
where c.relname = any(array['sessions', 'messages', 'passages', 'passage_words', 'passage_vectors', 'term_stats'])
group by c.oid, c.relname
order by array_position(array['sessions', 'messages', 'passages'], c.relname::text) nulls last
"""
_INDEX = "select pg_get_indexdef('passage_words_by_key'::regclass)"
_WITHOUT_INDEX = "drop index passage_words_by_key"


async def run(report: Report, home: Path) -> None:
    print("namespaces")
    with await asyncio.to_thread(embedded.start, home) as lease:
        engine = await Engine.open(Settings(data_dir=home, indexer=False))
        for number in range(ACTIVE):
            await _talk(engine, f"active-{number}", MESSAGES)
            await engine.indexer.flush(f"active-{number}")
        await fill(engine, "giant", {"owner-giant": GIANT})
        await engine.close()
        few = await _figures(home, f"{ACTIVE:,} namespaces and one of {GIANT:,} passages")
        await _add_idle(lease)
        many = await _figures(home, f"{ACTIVE + IDLE:,} namespaces")
    for name, figure in few.items():
        report.add(
            f"{name}, with {ACTIVE:,} namespaces and with {ACTIVE + IDLE:,}",
            f"{figure:,.1f} and {many[name]:,.1f}, {many[name] / figure:.2f} times",
        )


async def _talk(engine: Engine, namespace: str, messages: int) -> None:
    said = tuple(NewMessage("user", sentence(15)) for _ in range(messages))
    await engine.remember.turn(namespace, Turn("talk", said, owner_if_new="ann"))


async def _add_idle(lease: embedded.Lease) -> None:
    """As a superuser, whom row-level security does not bind."""
    names = [f"idle-{number}" for number in range(IDLE)]
    connection = await asyncpg.connect(**lease.superuser.target | {"database": lease.connection.database})
    clones = [row["clone"] for row in await connection.fetch(_CLONE)]
    index = await connection.fetchval(_INDEX)
    await connection.execute(_WITHOUT_INDEX)
    for first in range(0, IDLE, AT_ONCE):
        for clone in clones:
            await connection.execute(clone, names[first : first + AT_ONCE], TEMPLATE, timeout=3600)
        print(f"\r  adding idle namespaces: {first + AT_ONCE:,}", end="", flush=True)
    await connection.execute(index, timeout=3600)
    await connection.execute("vacuum analyze", timeout=3600)
    await connection.close()
    print()


async def _figures(home: Path, what: str) -> dict[str, float]:
    print(f"  with {what}", flush=True)
    figures = {}
    started = time.perf_counter()
    engine = await Engine.open(Settings(data_dir=home, indexer=False))
    figures["opening, ms"] = (time.perf_counter() - started) * 1000
    try:
        recall = _recalls(engine)
        await percentiles(recall, QUESTIONS // 4 + 2)
        figures["recall p50, ms"], figures["recall p95, ms"] = await percentiles(recall, QUESTIONS)
        figures["status p50, ms"], _ = await percentiles(lambda: engine.status.report("active-1"), QUESTIONS // 10 + 2)
        figures["memory of a process after a message and a recall in each active one, MB"] = await _memory(home)
        for number in range(ACTIVE):
            await engine.indexer.flush(f"active-{number}")
        started = time.perf_counter()
        manifest = await back_up(engine.database, home / "all.backup", overwrite=True)
        rows = sum(table.rows for table in manifest.tables)
        figures["backup, microseconds a row"] = (time.perf_counter() - started) * 1e6 / rows
    finally:
        await engine.close()
    figures["a message embedded beside a giant's backlog, s"] = await _fairness(home)
    return figures


async def _memory(home: Path) -> float:
    """Of a process of its own, which has done nothing else."""
    command = (sys.executable, "-m", "benchmarks.namespaces", str(home))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    printed, _ = await process.communicate()
    assert process.returncode == 0
    return float(printed)


async def use_each(home: Path) -> None:
    engine = await Engine.open(Settings(data_dir=home, indexer=False))
    for number in range(ACTIVE):
        await _talk(engine, f"active-{number}", 1)
        await engine.recall.recall(f"active-{number}", question(), Scope(owner="ann"))
    print(resident_megabytes())
    await engine.close()


def _recalls(engine: Engine) -> Callable[[], Awaitable[object]]:
    """A question to another active namespace each time."""
    numbers = itertools.cycle(range(ACTIVE))
    return lambda: engine.recall.recall(f"active-{next(numbers)}", question(), Scope(owner="ann"))


async def _fairness(home: Path) -> float:
    """How long one message waits for its vector when a giant has thousands that wait."""
    writer = await Engine.open(Settings(data_dir=home, indexer=False))
    await _talk(writer, "giant", BACKLOG)
    await _talk(writer, "active-2", 1)
    started = time.perf_counter()
    indexing = await Engine.open(Settings(data_dir=home))
    try:
        while await writer.indexer.waiting("active-2"):  # noqa: ASYNC110  # another process does the work
            await asyncio.sleep(0.01)
        elapsed = time.perf_counter() - started
        await writer.indexer.flush("giant")
    finally:
        await indexing.close()
        await writer.close()
    return elapsed


if __name__ == "__main__":
    asyncio.run(use_each(Path(sys.argv[1])))
