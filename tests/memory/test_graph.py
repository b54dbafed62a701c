"""The graph: what adding again means, what lies around a node, how nodes are connected, and what is refused."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from recollect.engine import Engine
from recollect.errors import Invalid, LimitReached, NotFound
from recollect.flows.cognitive import graph as flow
from recollect.flows.cognitive.graph import Neighborhood, Paths
from recollect.storage.sql import Query

COUNTS = {
    table: Query.named(f"test.{table}", f"select count(*) from {table} where namespace = :namespace")
    for table in ("graph_nodes", "graph_edges")
}
EDGE = Query.named("test.edge", "select weight, properties from graph_edges where namespace = :namespace")
INSIGHT = Query.named(
    "test.insight",
    "insert into insights (namespace, content, source_ids, fidelity, metadata) "
    "values (:namespace, 'a finding', '{}', 1, '{}') returning id",
)

# Edges of a small random graph over the nodes 0 to 9: source, target, relation.
EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from("RS")), min_size=1, max_size=25)


async def counts(engine: Engine, namespace: str) -> tuple[int, int]:
    async with engine.database.reading(namespace) as db:
        return tuple([(await db.one(query))[0] for query in COUNTS.values()])


async def stored_edge(engine: Engine, namespace: str) -> tuple[float, dict[str, Any]]:
    async with engine.database.reading(namespace) as db:
        row = await db.one(EDGE)
    return row["weight"], row["properties"]


async def connect(engine: Engine, namespace: str, *edges: str, relation: str = "KNOWS") -> None:
    """Edges as "source target" or "source target weight"."""
    for edge in edges:
        source, target, *weight = edge.split()
        await engine.graph.add_edge(namespace, source, target, relation, weight=float(weight[0]) if weight else 1.0)


async def label(engine: Engine, namespace: str, name: str) -> str:
    """What a node is called, seen from a node beside it."""
    await engine.graph.add_edge(namespace, "observer", name, "SEES")
    around = await engine.graph.neighbors(namespace, "observer")
    return next(neighbor.label for neighbor in around.neighbors if neighbor.name == name)


def distances(found: Neighborhood) -> dict[str, int]:
    return {neighbor.name: neighbor.distance for neighbor in found.neighbors}


def names(found: Paths) -> list[str]:
    return [" ".join(node.name for node in path) for path in found.paths]


def plain_distances(edges: Iterable[tuple[int, int]], start: int) -> dict[int, int]:
    """A reference that shares nothing with the product: breadth first, both ways along every edge."""
    beside: dict[int, set[int]] = defaultdict(set)
    for source, target in edges:
        beside[source].add(target)
        beside[target].add(source)
    found = {start: 0}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for other in beside[node] - found.keys():
            found[other] = found[node] + 1
            waiting.append(other)
    return found


async def test_a_node_is_created_once_and_found_again(engine: Engine, namespace: str) -> None:
    first = await engine.graph.add_node(namespace, "Project", "Recollect", {"status": "active"})
    again = await engine.graph.add_node(namespace, "Project", "Recollect")
    assert first.created
    assert not again.created
    assert again.id == first.id
    assert again.properties == {"status": "active"}
    assert await counts(engine, namespace) == (1, 0)


async def test_adding_a_node_again_merges_properties_and_keeps_its_label(engine: Engine, namespace: str) -> None:
    await engine.graph.add_node(namespace, "Project", "Recollect", {"status": "idea", "owner": "ann"})
    node = await engine.graph.add_node(namespace, "Tool", "Recollect", {"status": "active"})
    assert node.label == "Project"
    assert node.properties == {"status": "active", "owner": "ann"}


async def test_names_differ_by_case_and_are_kept_as_given(engine: Engine, namespace: str) -> None:
    for name in ("Ada", "ada", "Ада", " Ada "):
        assert (await engine.graph.add_node(namespace, "Person", name)).created
    assert await counts(engine, namespace) == (4, 0)


async def test_a_node_points_to_an_insight_until_it_is_given_another(engine: Engine, namespace: str) -> None:
    async with engine.database.transaction(namespace) as tx:
        first, second = [(await tx.one(INSIGHT))["id"] for _ in range(2)]
    assert (await engine.graph.add_node(namespace, "Idea", "x", vector_id=first)).vector_id == first
    assert (await engine.graph.add_node(namespace, "Idea", "x")).vector_id == first
    assert (await engine.graph.add_node(namespace, "Idea", "x", vector_id=second)).vector_id == second


async def test_an_insight_that_is_unknown_or_of_another_namespace_is_refused_by_its_id(
    engine: Engine, namespace: str
) -> None:
    async with engine.database.transaction(f"test-{uuid4()}") as tx:
        foreign = (await tx.one(INSIGHT))["id"]
    for insight in (foreign, 2**62):
        with pytest.raises(NotFound, match=str(insight)):
            await engine.graph.add_node(namespace, "Idea", "x", vector_id=insight)
    assert await counts(engine, namespace) == (0, 0)


async def test_an_edge_brings_its_ends_along(engine: Engine, namespace: str) -> None:
    await engine.graph.add_node(namespace, "Technology", "PostgreSQL")
    edge = await engine.graph.add_edge(namespace, "Recollect", "PostgreSQL", "USES", weight=0.9)
    assert (edge.source_created, edge.target_created) == (True, False)
    assert (edge.relation, edge.weight) == ("USES", 0.9)
    assert await counts(engine, namespace) == (2, 1)


async def test_adding_an_edge_again_takes_the_new_weight_and_merges_properties(engine: Engine, namespace: str) -> None:
    first = await engine.graph.add_edge(namespace, "a", "b", "USES", weight=0.4, properties={"since": 2020, "by": "x"})
    again = await engine.graph.add_edge(namespace, "a", "b", "USES", weight=0, properties={"by": "y"})
    assert again.id == first.id
    assert not again.source_created
    assert not again.target_created
    assert await stored_edge(engine, namespace) == (0.0, {"since": 2020, "by": "y"})


async def test_direction_and_relation_make_different_edges(engine: Engine, namespace: str) -> None:
    await connect(engine, namespace, "a b", "b a", relation="USES")
    await connect(engine, namespace, "a b", relation="LIKES")
    assert await counts(engine, namespace) == (2, 3)


async def test_an_end_without_a_label_is_an_entity_until_the_first_explicit_label(
    engine: Engine, namespace: str
) -> None:
    await engine.graph.add_edge(namespace, "a", "b", "USES")
    assert await label(engine, namespace, "a") == "Entity"
    await engine.graph.add_edge(namespace, "a", "b", "USES", source_label="Project")
    await engine.graph.add_edge(namespace, "a", "b", "USES", source_label="Other")
    assert await label(engine, namespace, "a") == "Project"
    assert (await engine.graph.add_node(namespace, "Technology", "b")).label == "Technology"
    assert (await engine.graph.add_node(namespace, "Other", "b")).label == "Technology"


async def test_an_edge_from_a_node_to_itself_makes_one_node_and_no_neighbour(engine: Engine, namespace: str) -> None:
    edge = await engine.graph.add_edge(namespace, "a", "a", "CALLS", target_label="Function")
    assert edge.source_id == edge.target_id
    assert await label(engine, namespace, "a") == "Function"
    assert distances(await engine.graph.neighbors(namespace, "a", "CALLS", depth=5)) == {}
    assert names(await engine.graph.find_path(namespace, "a", "a")) == ["a"]


async def test_neighbours_are_found_both_ways_and_say_in_which(engine: Engine, namespace: str) -> None:
    await connect(engine, namespace, "a b 0.5", "c a 0.7")
    found = await engine.graph.neighbors(namespace, "a")
    assert [(n.name, n.direction, n.weight, n.distance) for n in found.neighbors] == [
        ("c", "in", 0.7, 1),
        ("b", "out", 0.5, 1),
    ]
    assert (found.total, found.truncated, found.start_node, found.depth) == (2, False, "a", 1)


async def test_neighbours_come_by_distance_then_weight_then_name(engine: Engine, namespace: str) -> None:
    await connect(engine, namespace, "s b 0.1", "s d 0.5", "s c 0.5", "b z", "s Z 0.5", "c y 0.2", "z end")
    found = await engine.graph.neighbors(namespace, "s", depth=2)
    assert [n.name for n in found.neighbors] == ["Z", "c", "d", "b", "z", "y"]


async def test_a_neighbour_comes_once_by_its_strongest_edge(engine: Engine, namespace: str) -> None:
    await connect(engine, namespace, "a b 0.2", relation="KNOWS")
    await connect(engine, namespace, "a b 0.8", relation="USES")
    await connect(engine, namespace, "b a 0.9", relation="MADE")
    await connect(engine, namespace, "a c 0.1", "c b 1.0")
    found = await engine.graph.neighbors(namespace, "a", depth=3, limit=2)
    assert [(n.name, n.relation, n.direction, n.distance) for n in found.neighbors] == [
        ("b", "MADE", "in", 1),
        ("c", "KNOWS", "out", 1),
    ]


async def test_a_relation_holds_for_every_step(engine: Engine, namespace: str) -> None:
    await connect(engine, namespace, "a b", "b c", "x y", relation="USES")
    await connect(engine, namespace, "a x", "c d", relation="LIKES")
    assert distances(await engine.graph.neighbors(namespace, "a", "USES", depth=5)) == {"b": 1, "c": 2}
    assert distances(await engine.graph.neighbors(namespace, "a", "NO_SUCH", depth=5)) == {}


async def test_a_neighbour_tells_its_label_and_properties(engine: Engine, namespace: str) -> None:
    node = await engine.graph.add_node(namespace, "Technology", "PostgreSQL", {"version": "15+", "tags": ["db"]})
    await engine.graph.add_edge(namespace, "Recollect", "PostgreSQL", "USES")
    (neighbor,) = (await engine.graph.neighbors(namespace, "Recollect")).neighbors
    assert (neighbor.node_id, neighbor.label) == (node.id, "Technology")
    assert neighbor.properties == {"version": "15+", "tags": ["db"]}


async def test_a_crowd_of_neighbours_is_counted_whole_and_listed_in_part(engine: Engine, namespace: str) -> None:
    await connect(engine, namespace, "s a 0.5", "s b 0.9", *(f"b n{n} 0.{n}" for n in range(8)), "n7 far")
    found = await engine.graph.neighbors(namespace, "s", depth=5, limit=5)
    assert [n.name for n in found.neighbors] == ["b", "a", "n7", "n6", "n5"]
    assert found.truncated
    assert (found.total, found.searched_depth) == (10, 2)


async def test_a_list_that_is_just_full_says_whether_there_is_more(engine: Engine, namespace: str) -> None:
    await connect(engine, namespace, "a b", "b c", "c d")
    assert not (await engine.graph.neighbors(namespace, "a", depth=2, limit=2)).truncated
    found = await engine.graph.neighbors(namespace, "a", depth=3, limit=2)
    assert (found.truncated, found.total, list(distances(found))) == (True, 3, ["b", "c"])


async def test_a_path_names_its_steps_and_their_directions(engine: Engine, namespace: str) -> None:
    await engine.graph.add_edge(namespace, "Recollect", "PostgreSQL", "USES", "Project", "Technology")
    await engine.graph.add_edge(namespace, "Storage", "PostgreSQL", "SOLVED_BY", source_label="Problem", weight=0.3)
    found = await engine.graph.find_path(namespace, "Recollect", "Storage")
    assert [(n.label, n.name, n.relation_to_next, n.direction_to_next, n.weight_to_next) for n in found.path] == [
        ("Project", "Recollect", "USES", "out", 1.0),
        ("Technology", "PostgreSQL", "SOLVED_BY", "in", 0.3),
        ("Problem", "Storage", None, None, None),
    ]
    assert (found.found, found.length, found.searched_depth) == (True, 2, 2)


async def test_every_shortest_path_is_told_once_the_strongest_first(engine: Engine, namespace: str) -> None:
    await connect(engine, namespace, "s a 0.2", "a e 0.2", "s b 0.9", "e b 0.9", "s c", "c d", "d e")
    await connect(engine, namespace, "s a", "a s 0.1", relation="LIKES")
    assert names(await engine.graph.find_path(namespace, "s", "e")) == ["s b e", "s a e"]


async def test_no_more_than_ten_paths_are_told(engine: Engine, namespace: str) -> None:
    for layer in range(3):
        sources = ["s"] if layer == 0 else [f"{layer}{n}" for n in range(4)]
        targets = ["e"] if layer == 2 else [f"{layer + 1}{n}" for n in range(4)]
        await connect(engine, namespace, *(f"{source} {target}" for source in sources for target in targets))
    found = await engine.graph.find_path(namespace, "s", "e")
    assert found.length == 3
    assert len(set(names(found))) == 10


async def test_a_path_longer_than_the_depth_is_not_found(engine: Engine, namespace: str) -> None:
    await connect(engine, namespace, *(f"n{n} n{n + 1}" for n in range(11)))
    assert (await engine.graph.find_path(namespace, "n0", "n5")).length == 5
    too_far = await engine.graph.find_path(namespace, "n0", "n6")
    assert (too_far.found, too_far.path, too_far.length, too_far.searched_depth) == (False, [], 0, 5)
    assert (await engine.graph.find_path(namespace, "n10", "n0", max_depth=10)).length == 10
    assert not (await engine.graph.find_path(namespace, "n0", "n11", max_depth=10)).found


async def test_nodes_that_nothing_connects_have_no_path(engine: Engine, namespace: str) -> None:
    await connect(engine, namespace, "a b", "b c", "c a", "x y")
    await engine.graph.add_node(namespace, "Island", "alone")
    for end in ("x", "alone"):
        assert not (await engine.graph.find_path(namespace, "a", end, max_depth=10)).found


async def test_an_unknown_node_is_an_error_that_names_it(engine: Engine, namespace: str) -> None:
    await connect(engine, namespace, "a b")
    with pytest.raises(NotFound, match="'nobody'"):
        await engine.graph.neighbors(namespace, "nobody")
    for ends in (("nobody", "a"), ("a", "nobody"), ("nobody", "nobody")):
        with pytest.raises(NotFound, match="'nobody'"):
            await engine.graph.find_path(namespace, *ends)


async def test_a_walk_that_takes_too_long_is_stopped_with_a_sentence(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await connect(engine, namespace, "a b")
    with monkeypatch.context() as patched:
        patched.setattr(flow, "MAX_WALK_SECONDS", 0)
        with pytest.raises(LimitReached, match="after 0 seconds: use a smaller depth"):
            await engine.graph.find_path(namespace, "a", "b")
        with pytest.raises(LimitReached, match="after 0 seconds"):
            await engine.graph.neighbors(namespace, "a")
    assert (await engine.graph.find_path(namespace, "a", "b")).found


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(edges=[(0, 0, "R"), (0, 1, "R"), (1, 0, "S"), (1, 2, "S"), (2, 0, "R")], start=0, end=2, depth=5)
@given(edges=EDGES, start=st.integers(0, 9), end=st.integers(0, 9), depth=st.integers(1, 5))
async def test_distances_equal_a_plain_breadth_first_search(
    engine: Engine, edges: list[tuple[int, int, str]], start: int, end: int, depth: int
) -> None:
    namespace = f"test-{uuid4()}"
    for node in {start, end}:
        await engine.graph.add_node(namespace, "Number", str(node))
    for source, target, relation in edges:
        await engine.graph.add_edge(namespace, str(source), str(target), relation)
    for relation_type in (None, "R"):
        walked = {(s, t) for s, t, relation in edges if relation_type in (None, relation)}
        expected = {str(n): d for n, d in plain_distances(walked, start).items() if 0 < d <= depth}
        assert distances(await engine.graph.neighbors(namespace, str(start), relation_type, depth)) == expected
    steps = plain_distances({(s, t) for s, t, _ in edges}, start).get(end)
    found = await engine.graph.find_path(namespace, str(start), str(end), max_depth=depth)
    assert found.found == (steps is not None and steps <= depth)
    if found.found:
        assert found.length == steps
        assert_paths_are_real(found, edges)


def assert_paths_are_real(found: Paths, edges: list[tuple[int, int, str]]) -> None:
    assert len(set(names(found))) == len(found.paths)
    for path in found.paths:
        assert (path[0].name, path[-1].name, len(path)) == (found.start_node, found.end_node, found.length + 1)
        for here, there in pairwise(path):
            ends = (int(here.name), int(there.name))
            source, target = ends if here.direction_to_next == "out" else ends[::-1]
            assert (source, target, here.relation_to_next) in edges


async def test_fifty_callers_adding_one_edge_make_one_edge(engine: Engine, namespace: str) -> None:
    added = await asyncio.gather(
        *(engine.graph.add_edge(namespace, "a", "b", "USES", properties={str(n): n}) for n in range(50))
    )
    assert len({edge.id for edge in added}) == 1
    assert sum(edge.source_created for edge in added) == sum(edge.target_created for edge in added) == 1
    assert await counts(engine, namespace) == (2, 1)
    assert await stored_edge(engine, namespace) == (1.0, {str(n): n for n in range(50)})


async def test_callers_that_add_and_label_the_same_ends_crosswise_do_not_deadlock(
    engine: Engine, namespace: str
) -> None:
    for number in range(25):
        ends = (f"a{number}", f"b{number}")
        for labels in ((), ("Thing", "Thing")):
            await asyncio.gather(
                *(
                    engine.graph.add_edge(namespace, source, target, f"R{caller}", *labels)
                    for caller in range(4)
                    for source, target in (ends, ends[::-1])
                )
            )
    assert await counts(engine, namespace) == (50, 200)


async def test_of_many_callers_that_label_a_node_the_first_wins_for_all(engine: Engine, namespace: str) -> None:
    await engine.graph.add_edge(namespace, "a", "b", "USES")
    added = await asyncio.gather(*(engine.graph.add_node(namespace, f"Label {n}", "a") for n in range(20)))
    assert len({node.label for node in added}) == 1


async def test_namespaces_see_nothing_of_each_other(engine: Engine, namespace: str) -> None:
    other = f"test-{uuid4()}"
    await connect(engine, namespace, "a b", "b c")
    await connect(engine, other, "a z")
    assert distances(await engine.graph.neighbors(namespace, "a", depth=5)) == {"b": 1, "c": 2}
    assert distances(await engine.graph.neighbors(other, "a", depth=5)) == {"z": 1}
    with pytest.raises(NotFound, match="'b'"):
        await engine.graph.find_path(other, "a", "b")
    assert (await engine.graph.add_node(other, "Thing", "b")).created


@pytest.mark.parametrize("bad", ["", "  \n", "a\x00b", "\ud800", "x" * 256, 7, ["a"]])
@pytest.mark.parametrize("field", ["source_name", "target_name", "relation", "source_label", "target_label"])
async def test_an_edge_with_a_bad_name_is_refused(engine: Engine, namespace: str, field: str, bad: Any) -> None:
    arguments = {"source_name": "a", "target_name": "b", "relation": "USES", field: bad}
    with pytest.raises(Invalid, match=field):
        await engine.graph.add_edge(namespace, **arguments)
    assert await counts(engine, namespace) == (0, 0)


@pytest.mark.parametrize(
    ("method", "arguments", "named"),
    [
        ("add_node", {"label": "", "name": "a"}, "label is empty"),
        ("add_node", {"label": "L", "name": " "}, "name is empty"),
        ("add_node", {"label": "L", "name": "é" * 256}, "name is longer than 255"),
        ("add_node", {"label": "L", "name": "a", "properties": ["x"]}, "properties must be a JSON object"),
        ("add_node", {"label": "L", "name": "a", "properties": {"x": float("nan")}}, "properties is not JSON"),
        ("add_node", {"label": "L", "name": "a", "properties": {"x": "\x00"}}, "properties contains a NUL"),
        ("add_node", {"label": "L", "name": "a", "vector_id": 0}, "vector_id"),
        ("add_node", {"label": "L", "name": "a", "vector_id": 2**63}, "vector_id"),
        ("add_node", {"label": "L", "name": "a", "vector_id": True}, "vector_id"),
        ("add_node", {"label": "L", "name": "a", "vector_id": "1"}, "vector_id"),
        *(
            ("add_edge", {"source_name": "a", "target_name": "b", "relation": "R", "weight": weight}, "weight")
            for weight in (-0.1, 1.1, float("nan"), float("inf"), "1", True)
        ),
        ("add_edge", {"source_name": "a", "target_name": "b", "relation": "R", "properties": 1}, "properties"),
        ("neighbors", {"node_name": ""}, "node_name is empty"),
        ("neighbors", {"node_name": "a", "relation_type": ""}, "relation_type is empty"),
        *(("neighbors", {"node_name": "a", "depth": depth}, "depth") for depth in (0, 6, 1.5, True, "1", None)),
        ("find_path", {"start_node": "", "end_node": "a"}, "start_node is empty"),
        ("find_path", {"start_node": "a", "end_node": ""}, "end_node is empty"),
        *(
            ("find_path", {"start_node": "a", "end_node": "b", "max_depth": depth}, "max_depth")
            for depth in (0, 11, -1, 2.0, None)
        ),
    ],
)
async def test_bad_input_is_refused_with_a_sentence(
    engine: Engine, namespace: str, method: str, arguments: dict[str, Any], named: str
) -> None:
    with pytest.raises(Invalid, match=named):
        await getattr(engine.graph, method)(namespace, **arguments)
    assert await counts(engine, namespace) == (0, 0)


async def test_the_longest_names_are_stored_and_found(engine: Engine, namespace: str) -> None:
    here, there = "🌍" * 255, "🌎" * 255
    await engine.graph.add_edge(namespace, here, there, "🌏" * 255)
    assert names(await engine.graph.find_path(namespace, here, there)) == [f"{here} {there}"]
