"""Recall among a million passages, writes with passages, and the indexer."""

import asyncio
import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

from benchmarks.costs import Server, cost
from benchmarks.report import Report, percentiles, spread
from benchmarks.sizes import sized
from recollect import Settings
from recollect.engine import Engine
from recollect.flows.remember import Remember, Turn
from recollect.identifiers import uuid7
from recollect.inference.embedding import wordpiece
from recollect.inference.embedding.embedder import as_text
from recollect.inference.embedding.local import LocalEmbedder
from recollect.language import bm25, words
from recollect.memory.index.passages import Source, analyse, keys_of
from recollect.memory.index.passages import _Sql as passages_sql
from recollect.memory.index.search import Meaning, Scope, Search
from recollect.memory.log import Destination, Entry, Log, Message, NewMessage, NewTurn, Words, _values
from recollect.memory.log import _Sql as log_sql
from recollect.storage.database import NEAR, Statements

TOTAL = int(os.environ.get("RECOLLECT_BENCH_PASSAGES") or sized(1_000_000))
OWNERS = {"owner-1k": sized(1_000), "owner-10k": sized(10_000), "owner-100k": sized(100_000)}
CROWD_SIZE = sized(1_000)
SESSION_LENGTH = 40
SPEAKERS = ("Anna", "Boris")
CHUNK = 5_000
VOCABULARY = 30_000
BEGINNING = datetime(2024, 1, 1, tzinfo=UTC)
QUESTIONS = sized(60, 5)
WRITERS = 16
ROUNDS = 3
MANY_WRITERS = 128
RAW_BATCH = WRITERS // 2
WRITES = sized(600, 32)

_chance = random.Random(7)
_words = [f"{_chance.choice('bcdfgklmnprst')}{_chance.choice('aeiou')}{n:x}" for n in range(VOCABULARY)]
_zipf = list(accumulate(1 / (rank + 3) for rank in range(VOCABULARY)))

VECTORS = """
insert into passage_vectors (namespace, id, kind, owner, model, embedding)
select namespace, id, kind, owner, $2,
       (select array_agg(random()::real - 0.5) from generate_series(1, 384) where passages.id > 0)::halfvec
from passages where namespace = $1
on conflict do nothing
"""


class NoPassages(Log):
    """What writing costs without the search index."""

    async def append(self, db: Statements, entries: Sequence[Entry], turns: Sequence[NewTurn]) -> list[Message]:
        return await super().append(db, [entry._replace(passages=()) for entry in entries], turns)


class NoChanges(Log):
    """What writing costs without the feed of changes."""

    async def append(self, db: Statements, entries: Sequence[Entry], turns: Sequence[NewTurn]) -> list[Message]:
        return await super().append(db, entries, ())


async def run(report: Report, home: Path) -> None:
    print("recall")
    engine = await Engine.open(Settings(data_dir=home, indexer=False))
    try:
        await writes(report, engine)
        await indexer(report, engine)
        await latency(report, engine)
    finally:
        await engine.close()


def sentence(count: int) -> str:
    return " ".join(_chance.choices(_words, cum_weights=_zipf, k=count))


def question() -> str:
    """Words that people ask for, not the most frequent ones, and the name of someone who may have said them."""
    about = " ".join(_chance.choices(_words[50:], cum_weights=_zipf[50:], k=5))
    return f"What did {_chance.choice(SPEAKERS)} say about {about}?"


async def fill(
    engine: Engine,
    namespace: str,
    owners: dict[str, int],
    kind: str = "message",
    item_id: Callable[[int], str] = str,
) -> None:
    """Passages with real words and random vectors; embedding a million texts would take hours.

    As if they were stored through the engine: two people speak in turn in each session, and the model is recorded.
    """
    embedder = engine.embedders.local
    assert embedder is not None
    owner_of = [owner for owner, count in owners.items() for _ in range(count)]
    _chance.shuffle(owner_of)
    counts: Counter[int] = Counter()
    said: Counter[str] = Counter()
    for start in range(0, len(owner_of), CHUNK):
        sources = []
        for number, owner in enumerate(owner_of[start : start + CHUNK], start):
            session, position = divmod(said[owner], SESSION_LENGTH)
            speaker = SPEAKERS[position % 2] if kind == "message" else None
            excerpts = analyse(sentence(_chance.randrange(8, 20)), speaker)
            at = BEGINNING + timedelta(minutes=number)
            talk = f"{owner}-{session}"
            sources.append(Source(kind, item_id(number), excerpts, at, owner, None, talk, position, "user", speaker))
            said[owner] += 1
            counts.update(bm25.dimension(term) for term in excerpts[0].terms)
        async with engine.database.transaction(namespace) as tx:
            await engine.capabilities.passages.add(tx, sources)
        print(f"\r  filling {namespace}: {start + len(sources):,}", end="", flush=True)
    counts[bm25.ALL_PASSAGES] = len(owner_of)
    async with engine.database.transaction(namespace) as tx:
        await tx.all(passages_sql.count_terms, terms=list(counts), counts=list(counts.values()))
        await engine.capabilities.embedding_models.lock(tx, embedder.model_id)
    async with engine.database.alone() as connection:
        await connection.execute("select set_config('recollect.namespace', $1, false)", namespace)
        connection._con.namespace = namespace  # type: ignore[attr-defined]
        await connection.execute(VECTORS, namespace, embedder.model_id, timeout=3600)
        await connection.execute("delete from passage_queue where namespace = $1", namespace, timeout=600)
        for table in ("passages", "passage_words", "passage_vectors", "passage_queue", "term_stats"):
            await connection.execute(f"vacuum analyze {table}", timeout=3600)
    print()


async def latency(report: Report, engine: Engine) -> None:
    await fill(engine, "alone", {"owner-10k": OWNERS["owner-10k"]})
    await measure(report, engine, "alone", "owner-10k", "10k passages, alone in the table", "")
    crowd = {f"crowd-{n}": CROWD_SIZE for n in range((TOTAL - sum(OWNERS.values())) // CROWD_SIZE)}
    await fill(engine, "shared", OWNERS | crowd)
    for owner, bar in zip(OWNERS, ("40 ms", "50 ms", "120 ms"), strict=True):
        await measure(report, engine, "shared", owner, f"{owner[6:]} passages among {TOTAL:,}", f"p95 <= {bar}")
    await in_time(report, engine, "shared", "owner-10k")
    await build_indexes(report, engine)
    await measure(report, engine, "shared", "owner-100k", "100k passages with an index of their own", "p95 <= 120 ms")
    await recall_under_load(report, engine)


async def build_indexes(report: Report, engine: Engine) -> None:
    """The index of the one giant owner; one for the whole namespace would take as long as all the rest."""
    embedder = engine.embedders.local
    assert embedder is not None
    started = time.perf_counter()
    await engine.indexes.build("shared", "owner-100k", embedder.model_id, None)
    report.add("building the index of a giant with 100,000 passages", f"{time.perf_counter() - started:.0f} s")


async def measure(report: Report, engine: Engine, namespace: str, owner: str, what: str, bar: str) -> None:
    embedder = engine.embedders.local
    assert embedder is not None
    scope = Scope(owner=owner)
    await percentiles(lambda: engine.recall.recall(namespace, question(), scope), 10)
    p50, p95 = await percentiles(lambda: engine.recall.recall(namespace, question(), scope), QUESTIONS)
    report.add(f"recall, {what}", f"p50 {p50:.1f} ms, p95 {p95:.1f} ms", bar)
    spent = await cost(await Server.of(engine), lambda: engine.recall.recall(namespace, question(), scope), QUESTIONS)
    report.add(f"  a query's CPU (user and system) and socket sends, {what}", str(spent))
    embed = await percentiles(lambda: embedder.embed_query(question()), QUESTIONS)
    legs = {"words": by_words, "meaning": by_meaning}
    parts = [f"query embedding p95 {embed[1]:.1f} ms"]
    for name, leg in legs.items():
        leg50, leg95 = await percentiles(await leg(engine, namespace, owner), QUESTIONS)
        parts.append(f"raw {name} leg p50 {leg50:.1f} p95 {leg95:.1f} ms")
    report.add(f"  of which, {what}", ", ".join(parts))


async def in_time(report: Report, engine: Engine, namespace: str, owner: str) -> None:
    """Recall as of a moment against recall without one, in turn, so that both see the same load."""
    last = datetime.now(UTC)
    ways: dict[str, Callable[[], Scope]] = {
        "without": lambda: Scope(owner=owner),
        "now": lambda: Scope(owner=owner, as_of=last),
        "at random moments": lambda: Scope(owner=owner, as_of=BEGINNING + timedelta(minutes=_chance.randrange(TOTAL))),
    }
    took: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(QUESTIONS * ROUNDS):
        for way, scope in ways.items():
            asked, within = question(), scope()
            began = time.perf_counter()
            await engine.recall.recall(namespace, asked, within)
            took[way].append((time.perf_counter() - began) * 1000)
    plain50, plain95 = spread(took.pop("without"))
    for way, times in took.items():
        p50, p95 = spread(times)
        report.add(
            f"recall with as_of {way}, ratio to recall without it, {owner[6:]} passages among {TOTAL:,}",
            f"p50 {p50 / plain50:.2f}, p95 {p95 / plain95:.2f} ({plain50:.1f} and {plain95:.1f} ms without)",
            "<= 1.3",
        )


async def by_words(engine: Engine, namespace: str, owner: str) -> Callable[[], Awaitable[Any]]:
    search = Search()

    async def leg() -> None:
        variants = [term.variants for term in words.query_terms(question())]
        async with engine.database.searching(namespace) as db:
            lexical = await search.lexical(db, owner, variants)
            await search.by_words(db, Scope(owner=owner), lexical, 100)

    return leg


async def by_meaning(engine: Engine, namespace: str, owner: str) -> Callable[[], Awaitable[Any]]:
    embedder, search = engine.embedders.local, Search()
    assert embedder is not None
    meaning = Meaning(as_text(await embedder.embed_query(question())), embedder.model_id)

    async def leg() -> None:
        async with engine.database.searching(namespace) as db:
            giant = await engine.capabilities.giants.find(db, owner, meaning.model)
            if giant is not None:
                await engine.capabilities.giants.nearest(db, giant, meaning.vector, 100, NEAR)
            else:
                await search.by_meaning(db, Scope(owner=owner), meaning, 100)

    return leg


async def write_all(remember: Remember, namespace: str, texts: Sequence[str], writers: int = WRITERS) -> float:
    """Messages per second of many callers at once."""

    async def writer(number: int) -> None:
        for text in texts[number::writers]:
            await remember.turn(
                namespace, Turn(f"session-{number}", (NewMessage("user", text),), owner_if_new=f"user-{number}")
            )

    started = time.perf_counter()
    await asyncio.gather(*map(writer, range(writers)))
    return len(texts) / (time.perf_counter() - started)


async def write_raw(engine: Engine, namespace: str, texts: Sequence[str]) -> float:
    """The same rows by asyncpg alone: analysed beforehand, and in batches as large as ours, two at a time."""
    async with engine.database.transaction(namespace) as tx:
        await engine.capabilities.sessions.open(tx, {f"session-{n}": f"user-{n}" for n in range(WRITERS)})
    batches = []
    for start in range(0, len(texts), RAW_BATCH):
        entries = []
        for number, text in enumerate(texts[start : start + RAW_BATCH], start):
            owner = f"user-{number % WRITERS}"
            found = [Words(each.text, keys_of(namespace, owner, each), each.weights) for each in analyse(text)]
            session = Destination(f"session-{number % WRITERS}", owner, "", begins=False)
            entries.append(Entry(uuid7(), session, NewMessage("user", text), found))
        turns = [NewTurn(entry.destination, 1, None, "library") for entry in entries]
        batches.append(log_sql.append.values(_values(entries, turns)))
    waiting = iter(batches)

    async def connection() -> None:
        async with engine.database.calling(namespace) as db:
            for values in waiting:
                await db._connection.fetch(log_sql.append.text, namespace, *values)

    started = time.perf_counter()
    await asyncio.gather(connection(), connection())
    return len(texts) / (time.perf_counter() - started)


def with_log(engine: Engine, log: Log) -> Remember:
    """The engine's way to write, but for the log."""
    memory = engine.capabilities
    return Remember(
        engine.database, memory.sessions, log, memory.documents, memory.passages, memory.changes, lambda _: None
    )


async def writes(report: Report, engine: Engine) -> None:
    texts = [sentence(15) for _ in range(WRITERS * WRITES)]
    untold = with_log(engine, NoChanges())
    await write_all(engine.remember, "warm", texts[:1000])
    without = await write_all(with_log(engine, NoPassages()), "bare", texts)
    rounds = [
        (
            await write_raw(engine, f"raw-{turn}", texts),
            await write_all(engine.remember, f"writes-{turn}", texts),
            await write_all(untold, f"untold-{turn}", texts),
        )
        for turn in range(ROUNDS)
    ]
    pairs = [(theirs, ours) for theirs, ours, _ in rounds]
    raw, own, unrecorded = (statistics.median(figures) for figures in zip(*rounds, strict=True))
    report.add(
        f"{WRITERS} callers storing messages with passages",
        f"{own:,.0f} messages/s, {own / without:.2f} of the same without ({without:,.0f})",
        ">= 5,000 messages/s",
    )
    middle = statistics.median(ours / theirs for theirs, ours in pairs)
    report.add(f"{WRITERS} callers storing messages, ratio to raw asyncpg", f"{middle:.2f} ({raw:,.0f})", ">= 0.7")
    middle = statistics.median(ours / theirs for _, ours, theirs in rounds)
    report.add(
        f"{WRITERS} callers storing messages, ratio to the same without changes recorded",
        f"{middle:.2f} ({unrecorded:,.0f})",
        ">= 0.9",
    )
    many = await write_all(engine.remember, "many", texts, MANY_WRITERS)
    report.add(f"{MANY_WRITERS} callers storing messages with passages", f"{many:,.0f} messages/s")


async def recall_under_load(report: Report, engine: Engine) -> None:
    scope = Scope(owner="owner-10k")

    async def ask() -> None:
        await engine.recall.recall("shared", question(), scope)

    _, idle = await percentiles(ask, QUESTIONS)
    texts = [sentence(15) for _ in range(WRITERS * WRITES * 5)]
    load = asyncio.create_task(write_all(engine.remember, "load", texts))
    _, busy = await percentiles(ask, QUESTIONS)
    finished = load.done()
    rate = await load
    report.add(
        f"recall p95 while {WRITERS} callers write ({rate:,.0f} messages/s{', load ended early' if finished else ''})",
        f"{busy:.1f} ms, {busy / idle:.1f} times idle ({idle:.1f} ms)",
        "<= 3 times",
    )


async def indexer(report: Report, engine: Engine) -> None:
    text = "The quick river carries old letters to the harbour, where Anna reads them aloud to her brother. " * 4
    for threads in (1, 2):
        embedder = LocalEmbedder.locate(threads=threads)
        assert embedder is not None
        await embedder.load()
        texts = [f"{number} {text}" for number in range(128)]
        tokens = sum(len(wordpiece.encode(t)) for t in texts)
        started = time.perf_counter()
        await embedder.embed_documents(texts)
        report.add(f"embedding, {threads} thread(s)", f"{tokens / (time.perf_counter() - started):,.0f} tokens/s")
        embedder.close()
    report.add("memory of this process with the model loaded", f"{resident_megabytes():.0f} MB", "<= 450 MB")


def resident_megabytes() -> float:
    """What this process holds in memory now (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024
