"""The graph in the console: found, read and changed without scripts; drawn, grown and walked with them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from playwright.async_api import Page, Route, expect

from recollect.engine import Engine
from recollect.storage.sql import Query
from tests import console_visits
from tests.browsers import Browser, inaccessible
from tests.rest_servers import listening
from tests.waiting import DEADLINE_SECONDS

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

HOSTILE = "\u202eAcme <script>alert(1)</script>"

NODES = Query.named(
    "test.many_nodes",
    "insert into graph_nodes (namespace, name, label, labelled) "
    "select :namespace, 'Node ' || number, 'Label ' || number % 11, true "
    "from generate_series(1, :count::int) as number returning id",
)
EDGES = Query.named(
    "test.many_edges",
    "insert into graph_edges (namespace, source, target, relation, weight) "
    "select :namespace, given.source, given.target, 'R' || given.step, (given.source % 10) / 10.0 "
    "from unnest(:sources::bigint[], :targets::bigint[], :steps::int[]) as given (source, target, step)",
)

# How often the picture is drawn while its nodes move.
COUNT_FRAMES = """() => {
    const draw = GraphCanvas.prototype.draw;
    window.movingFrames = 0;
    GraphCanvas.prototype.draw = function () {
        if (!this.model.layout.still) movingFrames++;
        draw.call(this);
    };
}"""


@dataclass(frozen=True)
class Office:
    """A small graph, by the ids of its nodes."""

    anna: int
    ben: int
    apollo: int
    postgres: int
    acme: int


@pytest.fixture
async def office(engine: Engine, namespace: str) -> Office:
    for label, name in (("Person", "Anna"), ("Person", "Ben"), ("Project", "Apollo"), ("Client", HOSTILE)):
        await engine.graph.add_node(namespace, label, name)
    edges = [
        await engine.graph.add_edge(namespace, source, target, relation, weight=weight)
        for source, relation, target, weight in (
            ("Anna", "WORKS_ON", "Apollo", 0.9),
            ("Ben", "LEADS", "Apollo", 0.6),
            ("Apollo", "USES", "PostgreSQL", 0.8),
            (HOSTILE, "ORDERED", "Apollo", 0.4),
        )
    ]
    anna, ben, apollo, acme = (edges[number].source_id for number in (0, 1, 2, 3))
    return Office(anna, ben, apollo, edges[2].target_id, acme)


@pytest.fixture
async def visitor(engine: Engine) -> AsyncIterator[console_visits.Browser]:
    async with console_visits.browsing(engine) as visitor:
        yield visitor


@pytest.fixture
async def page(engine: Engine, browser: Browser) -> AsyncIterator[Page]:
    async with listening(engine) as address, browser.visit(address) as page:
        yield page


async def still(page: Page, nodes: int) -> None:
    """Until the picture has so many nodes, and none of them moves."""
    await page.wait_for_selector(
        f'#picture[data-nodes="{nodes}"][data-layout="still"]', timeout=1000 * DEADLINE_SECONDS
    )


async def until(page: Page, condition: str) -> None:
    """Until an expression of the page holds; its policy lets Playwright wait for none itself."""
    look = f"const look = () => {condition} ? done() : requestAnimationFrame(look); look();"
    async with asyncio.timeout(DEADLINE_SECONDS):
        await page.evaluate(f"new Promise(done => {{ {look} }})")


async def place_of(page: Page, name: str) -> tuple[float, float]:
    """Where the picture has a node."""
    box = await page.locator("#graph-canvas").bounding_box()
    assert box is not None
    x, y = await page.evaluate(
        "name => { const node = graphPage.model.nodes.findIndex(each => each.name === name);"
        " return [graphPage.canvas.left(node), graphPage.canvas.top(node)]; }",
        name,
    )
    return box["x"] + x, box["y"] + y


async def click_on(page: Page, name: str, *, shift: bool = False) -> None:
    await page.locator("#graph-canvas").scroll_into_view_if_needed()
    if shift:
        await page.keyboard.down("Shift")
    await page.mouse.click(*await place_of(page, name))
    if shift:
        await page.keyboard.up("Shift")


async def test_nodes_are_listed_and_found_by_name_and_label(visitor: console_visits.Browser, office: Office) -> None:
    text = await visitor.text("/console/graph")
    assert "Acme &lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "\u202e" not in text.split('<section class="panel" id="node"')[1]
    assert all(f"/console/graph?node={each}" in text for each in (office.anna, office.apollo, office.postgres))
    found = await visitor.text("/console/graph?q=aPOL&order=busiest")
    assert f"node={office.apollo}" in found
    assert f"node={office.anna}" not in found
    people = await visitor.text("/console/graph?label=Person")
    assert f"node={office.anna}" in people
    assert f"node={office.apollo}" not in people
    assert "No node fits" in await visitor.text("/console/graph?q=nobody")


async def test_a_node_tells_its_properties_and_neighbours(
    visitor: console_visits.Browser, engine: Engine, namespace: str, office: Office
) -> None:
    moment = datetime.now(UTC).isoformat()
    await engine.graph.add_node(namespace, "Person", "Anna", {"observations": ["likes <b>tea</b>"], "age": 40})
    text = await visitor.text(f"/console/graph?node={office.anna}")
    assert "likes &lt;b&gt;tea&lt;/b&gt;" in text
    assert "WORKS_ON" in text
    assert "0.90" in text
    assert f"node={office.postgres}" not in text
    further = await visitor.text(f"/console/graph?node={office.anna}&depth=2")
    assert f"node={office.postgres}" in further
    before = await visitor.text(f"/console/graph/node?node={office.anna}&as_of={moment.replace('+', '%2B')}")
    assert "likes" not in before
    assert (await visitor.open(f"/console/graph?node={office.anna}&as_of=2001-01-01T00:00")).status_code == 404
    for wrong in ("as_of=tomorrow", "node=x", "after=1.x", "node=1&depth=9"):
        assert (await visitor.open(f"/console/graph?{wrong}")).status_code == 422, wrong


async def test_a_page_stays_small_whatever_a_node_holds(
    visitor: console_visits.Browser, engine: Engine, namespace: str
) -> None:
    unseen, marked = "\u202e" * 200, "<" * 200
    properties = {f"{number}{marked}": [unseen] * 50 for number in range(30)}
    node = await engine.graph.add_node(namespace, marked, "hub", properties)
    for number in range(60):
        await engine.graph.add_edge(namespace, "hub", f"{number}{unseen}", marked, target_label=f"{number}{marked}")
    for address in ("/console/graph", f"/console/graph?node={node.id}", f"/console/graph?node={node.id}&edit=1"):
        assert len((await visitor.text(address)).encode()) < 200_000, address


async def test_a_path_names_its_nodes_relations_and_weights(visitor: console_visits.Browser, office: Office) -> None:
    text = await visitor.text("/console/graph?from=Anna&to=PostgreSQL")
    assert "2 steps." in text
    assert all(part in text for part in ("WORKS_ON", "0.90", "USES", "0.80"))
    assert "No path of at most 1 step." in await visitor.text("/console/graph?from=Anna&to=PostgreSQL&steps=1")
    assert "no node named" in await visitor.text("/console/graph?from=Anna&to=Nobody")


async def test_the_script_is_given_parts_of_the_graph(visitor: console_visits.Browser, office: Office) -> None:
    async def part(path: str) -> Any:
        answer = await visitor.open(f"/console/graph/{path}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json"), answer.text
        return answer.json()

    around = await part(f"around?node={office.apollo}&limit=2")
    assert [name for _, name, _ in around["nodes"]] == ["Apollo", "Anna", "PostgreSQL"]
    assert (around["total"], around["truncated"], around["relations"]) == (5, True, ["WORKS_ON", "USES"])
    assert len((await part("around"))["links"]) == 4
    between = await part(f"between?ids={office.ben}&others={office.anna}.{office.apollo}")
    assert [link[:2] for link in between["links"]] == [[office.ben, office.apollo]]
    path = await part("path?from=Ben&to=Anna")
    assert [name for _, name, _ in path["nodes"]] == ["Ben", "Apollo", "Anna"]
    assert {tuple(link[:2]) for link in path["links"]} == {(office.ben, office.apollo), (office.anna, office.apollo)}


async def test_nothing_of_another_namespace_is_shown(
    visitor: console_visits.Browser, engine: Engine, namespace: str
) -> None:
    foreign = await engine.graph.add_edge(f"{namespace}-other", "Secret", "Hidden", "KNOWS")
    ids = f"{foreign.source_id}.{foreign.target_id}"
    assert (await visitor.open(f"/console/graph?node={foreign.source_id}")).status_code == 404
    assert (await visitor.open(f"/console/graph/around?node={foreign.source_id}")).status_code == 404
    for path in (f"/between?ids={ids}&others={ids}", "/around", "?q=Secret", "?order=busiest"):
        assert "Hidden" not in (text := await visitor.text(f"/console/graph{path}")), text
    assert "no node named" in await visitor.text("/console/graph?from=Secret&to=Hidden")


async def test_nodes_and_relations_are_added_and_deleted(
    visitor: console_visits.Browser, engine: Engine, namespace: str
) -> None:
    added = await visitor.send("/console/graph", "/console/graph/add-node", name="Anna", label="Person")
    assert (added.status_code, added.headers["location"].rpartition("&")[2]) == (303, "done=node")
    one = added.headers["location"].removesuffix("&done=node")
    edge = {"source": "Anna", "relation": "KNOWS", "target": "Ben", "weight": "0.5"}
    related = await visitor.send("/console/graph", "/console/graph/add-relation", **edge)
    assert "The relation is stored." in (text := await visitor.text(related.headers["location"]))
    assert "0.50" in text
    editing = f"{one}&edit=1"
    assert "delete-relation" in await visitor.text(editing)
    fields = edge | {"node": one.rpartition("=")[2]}
    unsure = await visitor.send(editing, "/console/graph/delete-relation", **fields)
    assert (unsure.status_code, "tick the box" in unsure.text) == (422, True)
    gone = await visitor.send(editing, "/console/graph/delete-relation", **fields, really="yes")
    text = await visitor.text(gone.headers["location"])
    assert "No neighbours." in text
    assert "Leave the relations as they are" in text, "the next one can be deleted"
    assert {entry.change.door for entry in (await engine.feed.page(namespace)).entries} == {"console"}
    wrong = await visitor.send("/console/graph", "/console/graph/add-relation", **edge | {"weight": "much"})
    assert wrong.status_code == 422
    for action in ("add-node", "add-relation", "delete-relation"):
        assert (await visitor.send("/console/graph", f"/console/graph/{action}", "0" * 64)).status_code == 403


async def test_a_node_that_exists_is_said_to_exist(visitor: console_visits.Browser) -> None:
    for label, sentence in (("City", "The node is stored."), ("Person", "Lisbon exists already, as City.")):
        added = await visitor.send("/console/graph", "/console/graph/add-node", name="Lisbon", label=label)
        assert sentence in await visitor.text(added.headers["location"])


async def test_a_relation_of_a_node_to_itself_is_listed_and_deleted(
    visitor: console_visits.Browser, engine: Engine, namespace: str
) -> None:
    edge = await engine.graph.add_edge(namespace, "Anna", "Anna", "TRUSTS", weight=0.5)
    await engine.graph.add_edge(namespace, "Anna", "Ben", "KNOWS")
    node = f"/console/graph?node={edge.source_id}"
    for address in (node, f"{node}&relation=TRUSTS"):
        text = await visitor.text(address)
        assert 'TRUSTS</span> <span class="quiet">weight 0.50' in text
    assert '<option value="TRUSTS">' in await visitor.text(node)
    assert "To itself" not in await visitor.text(f"{node}&relation=KNOWS")
    fields = {"node": str(edge.source_id), "source": "Anna", "relation": "TRUSTS", "target": "Anna", "really": "yes"}
    assert 'name="target" value="Anna"' in await visitor.text(f"{node}&edit=1")
    gone = await visitor.send(f"{node}&edit=1", "/console/graph/delete-relation", **fields)
    text = await visitor.text(gone.headers["location"])
    assert ("To itself" in text, "KNOWS" in text) == (False, True)


async def test_who_may_only_read_is_offered_no_changes(
    visitor: console_visits.Browser, engine: Engine, namespace: str, office: Office
) -> None:
    key = await engine.access.create_key(namespace, "reader", role="read")
    await visitor.sign_in(key.secret)
    text = await visitor.text(f"/console/graph?node={office.anna}&edit=1")
    assert "add-node" not in text
    assert "delete" not in text.lower()
    refused = await visitor.send("/console/graph", "/console/graph/add-node", name="Eve", label="Person")
    assert refused.status_code == 403


async def test_a_click_lets_the_neighbours_of_a_node_grow(page: Page, office: Office) -> None:
    await page.goto(f"/console/graph?node={office.anna}")
    await still(page, 2)
    await click_on(page, "Apollo")
    await still(page, 5)
    assert await page.get_by_role("status").inner_text() == "Apollo: 3 nodes and 3 relations added."
    await page.locator("#node h2", has_text="Apollo").wait_for()
    assert page.url.endswith(f"/console/graph?node={office.apollo}")
    buttons = page.get_by_role("list", name="Nodes in the picture").get_by_role("button")
    assert "[U+202E]" in " ".join(await buttons.all_inner_texts())
    assert await inaccessible(page) == []


async def test_a_second_node_shows_the_path(page: Page, office: Office) -> None:
    await page.goto("/console/graph")
    await still(page, 5)
    await click_on(page, "Anna")
    await page.locator("#node h2", has_text="Anna").wait_for()
    await click_on(page, "PostgreSQL", shift=True)
    await page.locator("#paths .outcome", has_text="2 steps.").wait_for()
    assert await page.evaluate("graphPage.canvas.onPath.size") == 2
    await page.get_by_role("list", name="Path 1").get_by_role("link", name="Apollo").click()
    await page.locator("#node h2", has_text="Apollo").wait_for()


async def test_all_of_it_can_be_done_with_the_keyboard(page: Page, office: Office) -> None:
    await page.goto("/console/graph")
    await still(page, 5)
    nodes = page.get_by_role("list", name="Nodes in the picture")
    await page.get_by_label("Nodes in the picture").first.fill("ann")
    await nodes.get_by_role("button", name="Anna").press("Enter")
    await page.locator("#node h2", has_text="Anna").wait_for()
    await expect(nodes.get_by_role("button", name="Anna", pressed=True)).to_be_focused()
    await page.get_by_role("button", name="Path from here").press("Enter")
    assert "choose the node where it ends" in await page.get_by_role("status").inner_text()
    await page.get_by_label("Nodes in the picture").first.fill("")
    await nodes.get_by_role("button", name="Ben").press("Space")
    await page.locator("#paths .outcome", has_text="2 steps.").wait_for()
    picture = page.get_by_role("group", name="Picture of the graph")
    zoom = await page.evaluate("graphPage.canvas.camera.zoom")
    await picture.press("+")
    await picture.press("ArrowLeft")
    assert await page.evaluate("graphPage.canvas.camera.zoom") > zoom
    await picture.press("0")
    assert await page.evaluate("graphPage.canvas.follows")


async def test_a_late_answer_does_not_hide_what_to_do_next(page: Page, office: Office) -> None:
    await page.goto("/console/graph")
    await still(page, 5)
    asked: list[Route] = []
    await page.route("**/graph/around?*", lambda route: asked.append(route))
    await page.get_by_role("list", name="Nodes in the picture").get_by_role("button", name="Anna").click()
    await page.get_by_role("button", name="Path from here").click()
    told = page.get_by_role("status")
    await expect(told).to_contain_text("choose the node where it ends")
    async with page.expect_response("**/graph/around?*"):
        await asked[0].continue_()
    await still(page, 5)
    await expect(told).to_contain_text("choose the node where it ends")


async def test_edges_are_hidden_by_relation_and_weight(page: Page, office: Office) -> None:
    await page.goto("/console/graph")
    await still(page, 5)
    shown = "graphPage.model.links.filter(link => graphPage.canvas.isShown(link)).map(link => link.relation).sort()"
    await page.get_by_label("Weight at least").fill("0.7")
    assert await page.evaluate(shown) == ["USES", "WORKS_ON"]
    await page.get_by_label("Relations shown").select_option("USES")
    assert await page.evaluate(shown) == ["USES"]


async def test_a_node_that_is_dragged_stays_where_it_was_put(page: Page, office: Office) -> None:
    await page.emulate_media(reduced_motion="no-preference")
    await page.goto("/console/graph")
    await still(page, 5)
    await page.locator("#graph-canvas").scroll_into_view_if_needed()
    x, y = await place_of(page, "Ben")
    await page.mouse.move(x, y)
    await page.mouse.down()
    await page.mouse.move(x + 40, y + 30, steps=4)
    await page.mouse.up()
    await still(page, 5)
    to_x, to_y = await place_of(page, "Ben")
    assert (round(to_x - x), round(to_y - y)) == (40, 30)


async def test_the_page_scrolls_past_the_picture_until_somebody_goes_into_it(page: Page, office: Office) -> None:
    await page.goto("/console/graph")
    await still(page, 5)
    zoom, place = "graphPage.canvas.camera.zoom", "Math.round(scrollY)"
    await page.locator("#graph-canvas").scroll_into_view_if_needed()
    box = await page.locator("#graph-canvas").bounding_box()
    assert box is not None
    x, y = box["x"] + 5, box["y"] + 5
    before = [await page.evaluate(each) for each in (zoom, place)]
    await page.mouse.move(x, y)
    await page.mouse.wheel(0, 120)
    await until(page, f"{place} > {before[1]}")
    assert await page.evaluate(zoom) == before[0]
    # One finger that moves up or down is the browser's: it scrolls.
    assert await page.evaluate("getComputedStyle(document.getElementById('graph-canvas')).touchAction") == "pan-y"
    # With Ctrl, or once it has the focus, the wheel is for the picture.
    await page.locator("#graph-frame").focus()
    await page.mouse.wheel(0, -120)
    await until(page, f"{zoom} > {before[0]}")


async def test_ids_are_asked_for_in_addresses_that_proxies_take_until_one_fails(
    engine: Engine, browser: Browser, office: Office
) -> None:
    async with listening(engine) as url, browser.visit(url, complaints=["422"]) as page:
        await page.goto("/console/graph")
        await still(page, 5)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        many = "Array.from({ length: 600 }, (_, i) => String(10n ** 18n + BigInt(i)))"
        assert await page.evaluate(f"graphPage.connect({many}, {many})") == {"links": 0, "problem": ""}
        assert len(asked) > 4
        assert max(map(len, asked)) < 8000
        asked.clear()
        failed = await page.evaluate("graphPage.connect(Array(600).fill('1'), ['x', ...Array(600).fill('1')])")
        assert "must be numbers" in failed["problem"]
        assert len(asked) == 1


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
async def test_five_thousand_nodes_are_drawn_and_come_to_rest(
    page: Page, engine: Engine, namespace: str, motion: Literal["reduce", "no-preference"]
) -> None:
    await page.emulate_media(reduced_motion=motion)
    async with engine.database.transaction(namespace) as tx:
        ids = [row["id"] for row in await tx.all(NODES, count=5000)]
        edges = [(ids[place], ids[place * 37 * step % 5000], step) for place in range(5000) for step in (1, 2)]
        sources, targets, steps = map(list, zip(*edges, strict=True))
        await tx.all(EDGES, sources=sources, targets=targets, steps=steps)
    await page.goto("/console/graph")
    await still(page, 100)
    await page.evaluate(COUNT_FRAMES)
    await page.get_by_label("Nodes at most").select_option("5000")
    await page.get_by_role("button", name="Load the busiest nodes").click()
    await still(page, 5000)
    assert await page.locator("#picture").get_attribute("data-links") == "10000"
    spread = "Math.max(...graphPage.model.layout.x) - Math.min(...graphPage.model.layout.x)"
    assert await page.evaluate(spread) > 1000
    moving = await page.evaluate("movingFrames")
    assert moving == 0 if motion == "reduce" else moving > 10
    assert await page.get_by_role("list", name="Nodes in the picture").get_by_role("button").count() == 100
