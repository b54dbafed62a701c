"""Hybrid search over ten thousand insights, alone and beside many messages, and the writes of cognition."""

from collections import Counter
from itertools import count
from pathlib import Path

from benchmarks.recall import fill, question, sentence
from benchmarks.report import Report, percentiles
from benchmarks.sizes import sized
from recollect import Settings
from recollect.engine import Engine
from recollect.language import bm25
from recollect.memory.index.passages import Source, analyse
from recollect.memory.index.passages import _Sql as passages_sql
from recollect.storage.sql import Query

INSIGHTS = sized(10_000)
MESSAGES = sized(100_000)
CHUNK = 5_000
SEARCHES = sized(200, 5)
WRITES = sized(100, 5)

ADD_INSIGHTS = Query.named(
    "bench.insights",
    """
    insert into insights (namespace, content, source_ids, fidelity, metadata)
    select :namespace, content, '{1,2,3}', 0.7, '{}' from unnest(:contents::text[]) as content
    returning id, content, created_at
    """,
)


async def run(report: Report, home: Path) -> None:
    print("hybrid")
    engine = await Engine.open(Settings(data_dir=home, indexer=False))
    try:
        for namespace, messages in (("alone", 0), ("beside", MESSAGES)):
            await add_insights(engine, namespace)
            # Gives every passage of the namespace its vector, those of the insights, too.
            await fill(engine, namespace, {"somebody": messages})
            beside = f" beside {messages:,} messages" if messages else ""
            await searches(report, engine, namespace, f"over {INSIGHTS:,} insights{beside}")
        await writes(report, engine)
    finally:
        await engine.close()


async def add_insights(engine: Engine, namespace: str) -> None:
    counts: Counter[int] = Counter({bm25.ALL_PASSAGES: INSIGHTS})
    for _ in range(0, INSIGHTS, CHUNK):
        async with engine.database.transaction(namespace) as tx:
            rows = await tx.all(ADD_INSIGHTS, contents=[sentence(20) for _ in range(CHUNK)])
            sources = [Source("insight", str(row["id"]), analyse(row["content"]), row["created_at"]) for row in rows]
            await engine.capabilities.passages.add(tx, sources)
        counts.update(bm25.dimension(term) for source in sources for term in source.excerpts[0].terms)
    async with engine.database.transaction(namespace) as tx:
        await tx.all(passages_sql.count_terms, terms=list(counts), counts=list(counts.values()))


async def searches(report: Report, engine: Engine, namespace: str, where: str) -> None:
    async def search() -> None:
        found = await engine.cognition.hybrid_search(namespace, question())
        assert len(found.results) == 5

    await percentiles(search, 20)
    p50, p95 = await percentiles(search, SEARCHES)
    report.add(f"hybrid_search {where}", f"p50 {p50:.1f} ms, p95 {p95:.1f} ms", "p95 < 60 ms")
    embedder = engine.embedders.local
    assert embedder is not None
    embed50, embed95 = await percentiles(lambda: embedder.embed_query(question()), SEARCHES)
    report.add(f"  of which, {where}", f"query embedding p50 {embed50:.1f} ms, p95 {embed95:.1f} ms")


async def writes(report: Report, engine: Engine) -> None:
    cognition, number = engine.cognition, count()
    sources = [(await cognition.store_dialogue("writes", "talk", "user", sentence(20))).seq for _ in range(3)]
    calls = {
        "store_raw_dialogue": lambda: cognition.store_dialogue("writes", "talk", "user", sentence(20)),
        "compress_to_l2_insight, 3 sources": lambda: cognition.compress("writes", sentence(30), sources),
        "update_working_memory": lambda: cognition.update_working("writes", f"{next(number)} {sentence(10)}"),
        "store_episode": lambda: cognition.store_episode("writes", sentence(10), 0.5, sentence(20)),
    }
    for name, call in calls.items():
        p50, p95 = await percentiles(call, WRITES)
        report.add(name, f"p50 {p50:.1f} ms, p95 {p95:.1f} ms")
