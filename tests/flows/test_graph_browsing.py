"""The graph as pages show it: lists in parts, a node now and then, and parts of the graph with all edges among them."""

from datetime import UTC, datetime

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid, NotFound
from recollect.flows.cognitive import graph_browsing
from recollect.flows.cognitive.graph_browsing import Listing, Order, Part
from recollect.memory.cognitive.graph_pages import Place, Wanted

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


async def relate(engine: Engine, namespace: str, *edges: str) -> None:
    """Edges as "source relation target", or with a weight behind."""
    for edge in edges:
        source, relation, target, *weight = edge.split()
        await engine.graph.add_edge(namespace, source, target, relation, weight=float(weight[0]) if weight else 1.0)


def names(listing: Listing | Part) -> list[str]:
    if isinstance(listing, Part):
        return [node.name for node in listing.nodes]
    return [node.name for node, _ in listing.nodes]


async def id_of(engine: Engine, namespace: str, name: str) -> int:
    listing = await engine.graph_browsing.nodes(namespace, Wanted(name))
    return listing.nodes[0][0].id


async def listed(engine: Engine, namespace: str, order: Order, wanted: Wanted) -> list[list[str]]:
    """Every page, of two nodes each."""
    pages: list[list[str]] = []
    after: Place | None = None
    while not pages or after is not None:
        listing = await engine.graph_browsing.nodes(namespace, wanted, order, after, limit=2)
        pages.append(names(listing))
        after = listing.after
    return pages


async def test_nodes_are_listed_in_pages_newest_or_busiest_first(engine: Engine, namespace: str) -> None:
    await relate(engine, namespace, "a KNOWS b", "b KNOWS c", "b SEES c", "d KNOWS d")
    await engine.graph.add_node(namespace, "City", "Berlin")
    assert await listed(engine, namespace, "newest", Wanted()) == [["Berlin", "d"], ["c", "b"], ["a"]]
    assert await listed(engine, namespace, "busiest", Wanted()) == [["b", "c"], ["d", "a"]]
    counts = (await engine.graph_browsing.nodes(namespace, Wanted())).nodes
    assert {node.name: edges for node, edges in counts} == {"Berlin": 0, "d": 1, "c": 2, "b": 3, "a": 1}
    assert await engine.graph_browsing.labels(namespace) == ["Entity", "City"]
    with pytest.raises(Invalid):
        await engine.graph_browsing.nodes(namespace, Wanted(), limit=0)


async def test_a_node_is_found_by_a_part_of_its_name_or_by_label(engine: Engine, namespace: str) -> None:
    for label, name in (("City", "Berlin"), ("Person", "berl"), ("Person", "Berlinde"), ("Person", "Anna")):
        await engine.graph.add_node(namespace, label, name)
    assert await listed(engine, namespace, "newest", Wanted("BERL")) == [["Berlinde", "berl"], ["Berlin"]]
    assert names(await engine.graph_browsing.nodes(namespace, Wanted("Berlin"))) == ["Berlin", "Berlinde"]
    assert names(await engine.graph_browsing.nodes(namespace, Wanted("Berlin", "Person"))) == ["Berlinde"]
    assert names(await engine.graph_browsing.nodes(namespace, Wanted(label="Person"))) == ["Anna", "Berlinde", "berl"]
    assert names(await engine.graph_browsing.nodes(namespace, Wanted("_er%"))) == []
    assert names(await engine.graph_browsing.nodes(f"{namespace}-other", Wanted("Berlin"))) == []


async def test_a_search_looks_at_some_nodes_and_tells_where_to_look_further(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_browsing, "LOOKED_AT", 2)
    for name in ("needle", "b", "c", "d"):
        await engine.graph.add_node(namespace, "Thing", name)
    assert await listed(engine, namespace, "newest", Wanted("eedl")) == [[], ["needle"], []]
    # One that is called exactly that needs no search.
    assert names(await engine.graph_browsing.nodes(namespace, Wanted("needle"))) == ["needle"]


async def test_what_is_called_exactly_what_is_looked_for_is_listed_once(engine: Engine, namespace: str) -> None:
    for name in ("ann", "annika", "joann", "annabel"):
        await engine.graph.add_node(namespace, "Person", name)
    assert await listed(engine, namespace, "newest", Wanted("ann")) == [["ann", "annabel", "joann"], ["annika"]]


async def test_the_past_of_a_graph_that_has_grown_is_found_without_a_walk_through_all_that_came_since(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_browsing, "LOOKED_AT", 3)
    monkeypatch.setattr(graph_browsing, "NEWEST_EDGES", 2)
    monkeypatch.setattr(graph_browsing, "MAX_EDGES_LOOKED_AT", 2)
    await relate(engine, namespace, "old KNOWS hub")
    then = datetime.now(UTC)
    await relate(engine, namespace, *(f"new{number} KNOWS hub" for number in range(4)))
    # Edges of that time, though as many as are looked at have come since.
    assert await listed(engine, namespace, "busiest", Wanted(as_of=then)) == [["old", "hub"]]
    # Of nodes, so many are looked at for each page as for the present.
    first = await engine.graph_browsing.nodes(namespace, Wanted(as_of=then))
    assert (names(first), first.after is None) == ([], False)
    assert await listed(engine, namespace, "newest", Wanted(as_of=then)) == [[], ["old", "hub"], []]
    busiest = await engine.graph_browsing.nodes(namespace, Wanted(as_of=then), "busiest")
    old, hub = [node.id for node, _ in busiest.nodes]
    assert busiest.uncounted == {hub}, "it has more edges than are looked at"
    assert old not in busiest.uncounted


async def test_a_node_is_shown_as_it_is_or_was(engine: Engine, namespace: str) -> None:
    before = datetime.now(UTC)
    await relate(engine, namespace, "Anna KNOWS Ben 0.5")
    then = datetime.now(UTC)
    await relate(engine, namespace, "Anna KNOWS Ben 0.9", "Anna KNOWS Cid")
    await engine.graph.add_node(namespace, "Person", "Anna", {"age": 40})
    anna = await id_of(engine, namespace, "Anna")
    now, past = [await engine.graph_browsing.node(namespace, anna, at) for at in (None, then)]
    assert (now.label, now.properties) == ("Person", {"age": 40})
    assert (past.label, past.properties) == ("Entity", {})
    around = await engine.graph_browsing.around(namespace, anna, as_of=then)
    assert (names(around), [link.weight for link in around.links]) == (["Anna", "Ben"], [0.5])
    glance = await engine.graph_browsing.glance(namespace, as_of=then)
    assert sorted(names(glance)) == ["Anna", "Ben"]
    assert {node.label for node, _ in (await engine.graph_browsing.nodes(namespace, Wanted(as_of=then))).nodes} == {
        "Entity"
    }
    with pytest.raises(NotFound, match="had no node with the id"):
        await engine.graph_browsing.node(namespace, anna, before)
    with pytest.raises(NotFound, match="has no node with the id"):
        await engine.graph_browsing.node(f"{namespace}-other", anna)


async def test_a_part_has_every_edge_among_its_nodes(engine: Engine, namespace: str) -> None:
    await relate(engine, namespace, "a R b 0.9", "a R c 0.8", "a R d 0.7", "b S c", "c T b", "d R e", "a LOOP a 0.1")
    a, b, c, d, e = [await id_of(engine, namespace, name) for name in "abcde"]
    part = await engine.graph_browsing.around(namespace, a, limit=2)
    assert (names(part), part.total, part.truncated) == (["a", "b", "c"], 4, True)
    among = {(link.source, link.relation, link.target) for link in part.links}
    assert among == {(a, "R", b), (a, "R", c), (b, "S", c), (c, "T", b), (a, "LOOP", a)}
    whole = await engine.graph_browsing.around(namespace, a, depth=2)
    assert (names(whole), len(whole.links), whole.truncated) == (["a", "b", "c", "d", "e"], 7, False)
    only = await engine.graph_browsing.around(namespace, a, relation="LOOP")
    assert names(only) == ["a"]
    between = await engine.graph_browsing.between(namespace, [e, d], [a, b])
    assert [(link.source, link.relation, link.target) for link in between] == [(a, "R", d)]
    assert await engine.graph_browsing.between(f"{namespace}-other", [a], [b]) == []


async def test_at_a_glance_the_busiest_nodes_come_first_and_none_is_missing(engine: Engine, namespace: str) -> None:
    await relate(engine, namespace, "a R b", "b R c")
    await engine.graph.add_node(namespace, "Thing", "alone")
    part = await engine.graph_browsing.glance(namespace)
    assert (names(part)[0], sorted(names(part)), part.truncated) == ("b", ["a", "alone", "b", "c"], False)
    assert len(part.links) == 2
    some = await engine.graph_browsing.glance(namespace, limit=2)
    assert (len(some.nodes), some.truncated) == (2, True)
    assert (await engine.graph_browsing.glance(f"{namespace}-other")).nodes == []
