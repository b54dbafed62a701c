"""Walks through graphs of 50,000 and 500,000 edges, each with a hub."""

import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.report import Report, percentiles
from benchmarks.sizes import sized
from recollect import Settings
from recollect.engine import Engine

SIZES = {sized(10_000): sized(50_000), sized(100_000): sized(500_000)}
HUB_EDGES = sized(10_000)
LEAVES = sized(400, 20)
WALKS = sized(200, 5)
STEPS = 5
HUB = "hub"

NODES = """
insert into graph_nodes (namespace, name, label, labelled, properties)
select $1, name, 'Thing', true, '{"kind": "benchmark"}'
from (
    select 'node-' || number as name from generate_series(0, $2::int - 1) as number
    union all
    select 'leaf-' || number from generate_series(0, $3::int - 1) as number
    union all
    select 'hub'
) as named
"""

# Ends are drawn by the names' numbers, which are looked up once in a temporary table.
NUMBERED = """
create temporary table numbered as
select id, split_part(name, '-', 1) as kind, nullif(split_part(name, '-', 2), '')::int as number
from graph_nodes where namespace = $1
"""

EDGES = """
insert into graph_edges (namespace, source, target, relation, weight)
select $1, source.id, target.id, 'R' || (drawn.place % 5), drawn.weight
from (
    select place, floor(random() * $2)::int as source, floor(random() * $2)::int as target, random() as weight
    from generate_series(1, $3::int) as place
) as drawn
join numbered source on source.kind = 'node' and source.number = drawn.source
join numbered target on target.kind = 'node' and target.number = drawn.target
on conflict do nothing
"""

# The hub knows a tenth of a large graph; of a small one it knows every second node, by two relations.
HUB_TO_NODES = """
insert into graph_edges (namespace, source, target, relation, weight)
select $1, hub.id, node.id, 'H' || relation, 1.0
from numbered hub
join numbered node on node.kind = 'node' and node.number % $2 = 0
cross join generate_series(1, $3::int) as relation
where hub.kind = 'hub'
"""

# Leaves hang on one node each, none of which knows the hub: from leaf to leaf it is far.
LEAVES_TO_NODES = """
insert into graph_edges (namespace, source, target, relation, weight)
select $1, leaf.id, node.id, 'R0', 1.0
from numbered leaf
join numbered node on node.kind = 'node' and node.number = leaf.number * 24 + 1
where leaf.kind = 'leaf'
"""

_chance = random.Random(11)


async def run(report: Report, home: Path) -> None:
    print("graph")
    engine = await Engine.open(Settings(data_dir=home, indexer=False))
    try:
        for nodes, edges in SIZES.items():
            await fill(engine, f"graph-{nodes}", nodes, edges)
        for nodes, edges in SIZES.items():
            await neighbours(report, engine, nodes, f"{nodes:,} nodes, {edges:,} edges")
            await paths(report, engine, nodes, f"{nodes:,} nodes, {edges:,} edges")
    finally:
        await engine.close()


async def fill(engine: Engine, namespace: str, nodes: int, edges: int) -> None:
    started = time.perf_counter()
    async with engine.database.alone() as connection:
        await connection.execute("select set_config('recollect.namespace', $1, false)", namespace)
        connection._con.namespace = namespace  # type: ignore[attr-defined]
        await connection.execute("select setseed(0.5)")
        await connection.execute(NODES, namespace, nodes, LEAVES, timeout=600)
        await connection.execute(NUMBERED.replace("$1", f"'{namespace}'"), timeout=600)
        await connection.execute("analyze numbered")
        await connection.execute(EDGES, namespace, nodes, edges, timeout=3600)
        step = beside_hub(nodes)
        await connection.execute(HUB_TO_NODES, namespace, step, HUB_EDGES * step // nodes, timeout=600)
        await connection.execute(LEAVES_TO_NODES, namespace, timeout=600)
        await connection.execute("drop table numbered")
        await connection.execute("vacuum analyze graph_nodes, graph_edges", timeout=600)
    print(f"  filled {namespace} in {time.perf_counter() - started:.0f} s")


def beside_hub(nodes: int) -> int:
    """Every which node knows the hub."""
    return max(nodes // HUB_EDGES, 2)


def any_node(nodes: int) -> str:
    return f"node-{_chance.randrange(nodes)}"


async def measure(report: Report, what: str, bar: str, call: Callable[[], Awaitable[object]]) -> None:
    await percentiles(call, 10)
    p50, p95 = await percentiles(call, WALKS)
    report.add(what, f"p50 {p50:.1f} ms, p95 {p95:.1f} ms", bar)


async def neighbours(report: Report, engine: Engine, nodes: int, size: str) -> None:
    namespace = f"graph-{nodes}"
    step = beside_hub(nodes)
    starts = {
        "any node": lambda: any_node(nodes),
        "the hub": lambda: HUB,
        "a node beside the hub": lambda: f"node-{_chance.randrange(nodes // step) * step}",
    }
    for depth, bar in ((1, "p95 < 50 ms"), (3, "p95 < 100 ms"), (5, "")):
        for start, name in starts.items():
            await measure(
                report,
                f"depth {depth} from {start}, {size}",
                bar,
                lambda name=name, depth=depth: engine.graph.neighbors(namespace, name(), depth=depth),  # type: ignore[misc]
            )
    await measure(
        report,
        f"depth 3 by one relation, {size}",
        "p95 < 100 ms",
        lambda: engine.graph.neighbors(namespace, any_node(nodes), "R1", depth=3),
    )


async def paths(report: Report, engine: Engine, nodes: int, size: str) -> None:
    namespace = f"graph-{nodes}"

    far: list[tuple[str, str]] = []
    while len(far) < WALKS // 4:
        first, second = _chance.sample(range(LEAVES), 2)
        ends = (f"leaf-{first}", f"leaf-{second}")
        if (await engine.graph.find_path(namespace, *ends)).length == STEPS:
            far.append(ends)
    await measure(
        report,
        f"path of {STEPS} steps, {size}",
        "p95 < 200 ms",
        lambda: engine.graph.find_path(namespace, *_chance.choice(far)),
    )
    await measure(
        report,
        f"path between any two nodes, {size}",
        "p95 < 200 ms",
        lambda: engine.graph.find_path(namespace, any_node(nodes), any_node(nodes)),
    )
