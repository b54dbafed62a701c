"""The graph at earlier moments: what was there, as it was, and nothing of what was forgotten."""

import asyncio
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.engine import Engine
from recollect.errors import Invalid, NotFound
from recollect.flows.cognitive.graph import Neighborhood
from recollect.storage.sql import Query
from tests.memory.test_graph import connect, names, plain_distances

VERSIONS = {
    table: Query.named(f"test.{table}", f"select count(*) from {table} where namespace = :namespace")
    for table in ("graph_node_versions", "graph_edge_versions")
}

NAMES = "abcde"
PROPERTIES = st.dictionaries(st.sampled_from("xy"), st.integers(0, 2), max_size=2)
WEIGHTS = st.none() | st.sampled_from([0.25, 0.5, 1.0])
LABELS = st.none() | st.sampled_from(["Red", "Blue"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.sampled_from(NAMES), st.sampled_from(["Red", "Blue"]), PROPERTIES),
        st.tuples(
            st.just("edge"),
            st.sampled_from(NAMES),
            st.sampled_from(NAMES),
            st.sampled_from("RS"),
            LABELS,
            LABELS,
            WEIGHTS,
            PROPERTIES,
        ),
        st.tuples(st.just("forget"), st.sampled_from(NAMES)),
    ),
    min_size=1,
    max_size=14,
)


def now() -> datetime:
    return datetime.now(UTC)


async def versions(engine: Engine, namespace: str) -> tuple[int, ...]:
    async with engine.database.reading(namespace) as db:
        return tuple([(await db.one(query))[0] for query in VERSIONS.values()])


def weights(found: Neighborhood) -> dict[str, float]:
    return {neighbor.name: neighbor.weight for neighbor in found.neighbors}


async def test_an_edge_has_the_weight_and_properties_that_it_had_then(engine: Engine, namespace: str) -> None:
    before = now()
    await engine.graph.add_edge(namespace, "a", "b", "USES", weight=0.2, properties={"since": 1})
    first = now()
    await engine.graph.add_edge(namespace, "a", "b", "USES", weight=0.9)
    second = now()
    await engine.graph.add_edge(namespace, "a", "b", "USES", properties={"since": 2, "until": 3})
    seen = []
    for moment in (first, second, None):
        (neighbor,) = (await engine.graph.neighbors(namespace, "a", as_of=moment)).neighbors
        (relation,) = neighbor.relations
        seen.append((relation.weight, relation.properties))
    assert seen == [(0.2, {"since": 1}), (0.9, {"since": 1}), (0.9, {"since": 2, "until": 3})]
    with pytest.raises(NotFound, match=f"at {before.isoformat().replace('+', '.')} had no node named 'a'"):
        await engine.graph.neighbors(namespace, "a", as_of=before)


async def test_a_node_has_the_label_properties_and_insight_that_it_had_then(engine: Engine, namespace: str) -> None:
    await engine.graph.add_edge(namespace, "a", "b", "USES")
    bare = now()
    await engine.graph.add_edge(namespace, "b", "a", "MADE", source_label="Tool")
    labelled = now()
    said = await engine.cognition.store_dialogue(namespace, "s", "user", "The tool is sharp.")
    insight = (await engine.cognition.compress(namespace, "Sharp tool", [said.seq])).insight.id
    await engine.graph.add_node(namespace, "Other", "b", {"sharp": True}, insight)
    seen = []
    for moment in (bare, labelled, None):
        (node,) = (await engine.graph.neighbors(namespace, "a", as_of=moment)).neighbors
        seen.append((node.label, node.properties, node.vector_id, len(node.relations)))
    assert seen == [("Entity", {}, None, 1), ("Tool", {}, None, 2), ("Tool", {"sharp": True}, insight, 2)]
    path = (await engine.graph.find_path(namespace, "a", "b", as_of=bare)).path
    assert [node.label for node in path] == ["Entity", "Entity"]


async def test_a_path_is_the_one_that_there_was(engine: Engine, namespace: str) -> None:
    await connect(engine, namespace, "a b 0.1", "b c")
    then = now()
    await connect(engine, namespace, "a b 0.9", "a c", "c d")
    assert names(await engine.graph.find_path(namespace, "a", "c")) == ["a c"]
    found = await engine.graph.find_path(namespace, "a", "c", as_of=then)
    assert (names(found), found.path[0].weight_to_next) == (["a b c"], 0.1)
    assert weights(await engine.graph.neighbors(namespace, "a", depth=5, as_of=then)) == {"b": 0.1, "c": 1.0}
    with pytest.raises(NotFound, match="'d'"):
        await engine.graph.find_path(namespace, "a", "d", as_of=then)


async def test_adding_the_same_again_keeps_no_version(engine: Engine, namespace: str) -> None:
    for _ in range(3):
        await engine.graph.add_node(namespace, "Person", "a", {"born": 1990})
        await engine.graph.add_edge(namespace, "a", "b", "KNOWS", weight=0.5, properties={"since": 2001})
        await engine.graph.add_edge(namespace, "a", "b", "KNOWS")
    assert await versions(engine, namespace) == (0, 0)


async def test_writers_of_one_edge_at_once_lose_no_weight(engine: Engine, namespace: str) -> None:
    await asyncio.gather(
        *(engine.graph.add_edge(namespace, "a", "b", "R", properties={str(n): n}) for n in range(20)),
        *(engine.graph.add_node(namespace, "Thing", "a", {str(n): n}) for n in range(20)),
    )
    (around_b,) = (await engine.graph.neighbors(namespace, "b")).neighbors
    everything = {str(n): n for n in range(20)}
    assert (around_b.properties, around_b.relations[0].properties) == (everything, everything)
    # Versions only grow: at no moment is there something that a later one lacks.
    async with engine.database.reading(namespace) as db:
        for table in ("graph_node_versions", "graph_edge_versions"):
            rows = await db.all(
                Query.named(
                    "test.order", f"select properties from {table} where namespace = :namespace order by until_at"
                )
            )
            sizes = [len(row["properties"]) for row in rows]
            assert sizes == sorted(sizes)


async def test_what_was_forgotten_is_gone_at_every_time(engine: Engine, namespace: str) -> None:
    for weight in (0.1, 0.2):
        node = await engine.graph.add_node(namespace, "Secret", "b", {"weight": weight})
        await engine.graph.add_edge(namespace, "a", "b", "KEEPS", weight=weight)
    then = now()
    target = f"node:{node.id}"
    receipt = await engine.forget.item(namespace, target)
    assert receipt.rows == {
        "graph_edge_versions": 1,
        "graph_edges": 1,
        "graph_node_versions": 1,
        "graph_nodes": 1,
    }
    assert await versions(engine, namespace) == (0, 0)
    assert (await engine.graph.neighbors(namespace, "a", as_of=then)).neighbors == []
    await engine.graph.add_edge(namespace, "a", "b", "KEEPS")
    assert (await engine.graph.neighbors(namespace, "a", as_of=then)).neighbors == []


async def test_a_node_never_pointed_to_an_insight_that_is_forgotten(engine: Engine, namespace: str) -> None:
    said = await engine.cognition.store_dialogue(namespace, "s", "user", "The tool is sharp.")
    insights = [
        (await engine.cognition.compress(namespace, f"Sharp tool {n}", [said.seq])).insight.id for n in range(2)
    ]
    await engine.graph.add_edge(namespace, "a", "b", "USES", target_label="Tool")
    moments = [now()]
    for insight in insights:
        await engine.graph.add_node(namespace, "Tool", "b", vector_id=insight)
        moments.append(now())
    await engine.graph.add_node(namespace, "Tool", "b", {"x": 1})

    async def pointed() -> list[int | None]:
        found = [await engine.graph.neighbors(namespace, "a", as_of=moment) for moment in moments]
        return [each.neighbors[0].vector_id for each in found]

    assert await pointed() == [None, *insights]
    await engine.forget.item(namespace, f"insight:{insights[0]}")
    assert await pointed() == [None, None, insights[1]]
    await engine.forget.item(namespace, f"insight:{insights[1]}")
    assert await pointed() == [None, None, None]
    # One is left: without the property.
    assert await versions(engine, namespace) == (1, 0)
    assert (await engine.graph.neighbors(namespace, "a", as_of=moments[0])).neighbors[0].properties == {}


@pytest.mark.parametrize("moment", [now() + timedelta(days=1), "2024-01-01", 7])
async def test_a_moment_in_the_future_or_none_at_all_is_refused(engine: Engine, namespace: str, moment: Any) -> None:
    await connect(engine, namespace, "a b")
    with pytest.raises(Invalid, match=r"as_of .*in the future: pass a time in the past|as_of must be a datetime"):
        await engine.graph.neighbors(namespace, "a", as_of=moment)
    with pytest.raises(Invalid, match="as_of"):
        await engine.graph.find_path(namespace, "a", "b", as_of=moment)


@dataclass
class Thing:
    """A node of the reference; a name that was forgotten and given again is another thing."""

    name: str
    label: str
    labelled: bool
    properties: dict[str, int] = field(default_factory=dict)
    key: str = field(default_factory=lambda: str(uuid4()))


@dataclass
class Reference:
    """What a graph is: things, how they relate, and a copy of it all for every moment that is asked for."""

    things: dict[str, Thing] = field(default_factory=dict)
    edges: dict[tuple[str, str, str], tuple[float, dict[str, int]]] = field(default_factory=dict)
    past: list[tuple[datetime, dict[str, Thing], dict[Any, Any]]] = field(default_factory=list)

    def name(self, name: str, label: str | None, properties: dict[str, int] | None = None) -> Thing:
        thing = self.things.setdefault(name, Thing(name, label or "Entity", label is not None))
        if label is not None and not thing.labelled:
            thing.label, thing.labelled = label, True
        thing.properties |= properties or {}
        return thing

    def relate(self, source: str, target: str, relation: str, weight: float | None, properties: dict[str, int]) -> None:
        key = (self.things[source].key, self.things[target].key, relation)
        known, said = self.edges.get(key, (1.0, {}))
        self.edges[key] = (known if weight is None else weight, said | properties)

    def forget(self, name: str) -> None:
        gone = self.things[name].key
        for things, edges in [(self.things, self.edges), *((things, edges) for _, things, edges in self.past)]:
            for each in [thing for thing in things.values() if thing.key == gone]:
                del things[each.name]
            for edge in [edge for edge in edges if gone in edge[:2]]:
                del edges[edge]

    def remember(self, moment: datetime) -> None:
        self.past.append((moment, deepcopy(self.things), deepcopy(self.edges)))


def around(name: str, things: dict[str, Thing], edges: dict[Any, Any]) -> dict[str, Any]:
    """What lies one step from a thing, as the reference has it."""
    named = {thing.key: thing for thing in things.values()}
    start, found = things[name].key, dict[str, Any]()
    for (source, target, relation), (weight, properties) in edges.items():
        if source == target or start not in (source, target):
            continue
        other = named[target if source == start else source]
        direction = "out" if source == start else "in"
        _, _, relations = found.setdefault(other.name, (other.label, other.properties, []))
        relations.append((relation, weight, direction, properties))
    return found


def shown(found: Neighborhood) -> Iterator[tuple[str, Any]]:
    for each in found.neighbors:
        relations = [(one.relation, one.weight, one.direction, one.properties) for one in each.relations]
        yield each.name, (each.label, each.properties, relations)


def in_order(found: dict[str, Any]) -> dict[str, Any]:
    return {name: (*node, sorted(relations, key=str)) for name, (*node, relations) in found.items()}


async def take(engine: Engine, namespace: str, reference: Reference, step: Any) -> None:
    """One step in the engine and in the reference."""
    what, *values = step
    if what == "node":
        name, label, properties = values
        await engine.graph.add_node(namespace, label, name, properties)
        reference.name(name, label, properties)
    elif what == "edge":
        source, target, relation, source_label, target_label, weight, properties = values
        await engine.graph.add_edge(namespace, *values)
        reference.name(source, source_label or (target_label if source == target else None))
        reference.name(target, target_label)
        reference.relate(source, target, relation, weight, properties)
    elif values[0] in reference.things:
        node = await engine.graph.add_node(namespace, "Red", values[0])
        await engine.forget.item(namespace, f"node:{node.id}")
        reference.forget(values[0])


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_at_every_moment_the_graph_is_what_a_plain_copy_of_it_says(engine: Engine, steps: list[Any]) -> None:
    namespace = f"test-{uuid4()}"
    reference = Reference()
    for step in steps:
        await take(engine, namespace, reference, step)
        reference.remember(now())
    for moment, things, edges in reference.past:
        for name in NAMES:
            if name not in things:
                with pytest.raises(NotFound):
                    await engine.graph.neighbors(namespace, name, as_of=moment)
                continue
            found = await engine.graph.neighbors(namespace, name, as_of=moment)
            assert in_order(dict(shown(found))) == in_order(around(name, things, edges))
    moment, things, edges = reference.past[len(steps) // 2]
    numbers = {thing.key: number for number, thing in enumerate(things.values())}
    steps_between = {(numbers[source], numbers[target]) for source, target, _ in edges}
    for start, end in product(things, things):
        far = plain_distances(steps_between, numbers[things[start].key]).get(numbers[things[end].key])
        path = await engine.graph.find_path(namespace, start, end, as_of=moment)
        assert (path.length if path.found else None) == far
