"""The graph: its nodes, what lies around one, how two are connected, and parts of it for the script that draws them."""

from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from typing import Any

from starlette.responses import Response

from recollect import checks
from recollect.doors.console import excerpts, rendering
from recollect.doors.console.rendering import pretty
from recollect.doors.console.visit import Visit, get, post
from recollect.errors import Invalid, LimitReached, NotFound
from recollect.flows.cognitive.graph import MAX_DEPTH, MAX_NEIGHBORS, MAX_PATH_DEPTH, PathNode, Paths
from recollect.flows.cognitive.graph_browsing import MAX_PART, Order, Part, PartNode
from recollect.memory.cognitive.entities import Relation
from recollect.memory.cognitive.graph_pages import Link, Place, ShownNode, Wanted

PAGE = "/console/graph"
ON_A_PAGE = 50
NEIGHBOURS_ON_A_PAGE = 40
EDITED_ON_A_PAGE = 6  # each with forms for its relations
MAX_PROPERTIES = 40
MAX_VALUES = 20
VALUE_CHARACTERS = 2_000
PROPERTY_BYTES = 20_000
DEFAULT_PART = 100
DEFAULT_STEPS = 5

# Numbers that JavaScript would round are sent as text.
LARGEST_EXACT = 2**53

DONE = {
    "node": "The node is stored.",
    "relation": "The relation is stored.",
    "relation_gone": "The relation is deleted.",
}


async def page(visit: Visit) -> Response:
    """Nodes to choose from, or the chosen one, and a path if one is asked for."""
    values: dict[str, object] = {"node": None, "found": None, "listing": None}
    if visit.asked("node"):
        values |= await node_values(visit)
    elif not visit.asked("from"):
        values |= await list_values(visit)
    moment = visit.moment_asked("as_of")
    return visit.page(
        "graph.html",
        200,
        brief=excerpts.brief,
        **(values | await path_values(visit)),
        as_of_local=moment.replace(tzinfo=None).isoformat() if moment else "",
        labels=await visit.engine.graph_browsing.labels(visit.namespace),
        label=visit.asked("label"),
        q=visit.asked("q"),
        order=order_asked(visit),
        done=done(visit.asked("done"), values["node"]),
        most=MAX_PART,
        deepest=MAX_DEPTH,
    )


def done(code: str, node: object) -> str | None:
    """What a form did."""
    if code == "known" and isinstance(node, ShownNode):
        name, label = (rendering.written_out(rendering.shortened(each, 80)) for each in (node.name, node.label))
        return f"{name} exists already, as {label}."
    return DONE.get(code)


async def list_values(visit: Visit) -> dict[str, object]:
    """A page of nodes."""
    wanted = Wanted(visit.asked("q") or None, visit.asked("label") or None, visit.moment_asked("as_of"))
    after = Place(*numbers(visit, "after")[:2]) if visit.asked("after") else None
    listing = await visit.engine.graph_browsing.nodes(visit.namespace, wanted, order_asked(visit), after, ON_A_PAGE)
    further = ".".join(str(each) for each in listing.after or () if each is not None)
    return {"listing": listing, "further": further}


def order_asked(visit: Visit) -> Order:
    """How nodes are listed."""
    return "busiest" if visit.asked("order") == "busiest" else "newest"


async def node_values(visit: Visit) -> dict[str, object]:
    """A node, and its neighbours."""
    moment = visit.moment_asked("as_of")
    depth = visit.number_asked("depth", 1, 1, MAX_DEPTH)
    skip = visit.number_asked("skip", 0, 0, MAX_NEIGHBORS)
    relation = visit.asked("relation")
    edits = bool(visit.asked("edit")) and moment is None and depth == 1
    on_a_page = EDITED_ON_A_PAGE if edits else NEIGHBOURS_ON_A_PAGE
    node = await visit.engine.graph_browsing.node(visit.namespace, numbers(visit, "node")[0], moment)
    around = await visit.engine.graph.neighbors(visit.namespace, node.name, relation or None, depth, moment)
    own = await visit.engine.graph_browsing.between(visit.namespace, [node.id], [node.id], moment)
    named = {*(link.relation for link in own), *(each.relation for n in around.neighbors for each in n.relations)}
    return {
        "node": node,
        "loops": [link for link in own if relation in ("", link.relation)][:NEIGHBOURS_ON_A_PAGE],
        "around": around,
        "shown": around.neighbors[skip : skip + on_a_page],
        "skip": skip,
        "on_a_page": on_a_page,
        "depth": depth,
        "relation": relation,
        "relations": sorted(named),
        "edits": edits,
        "properties": properties_of(node),
        "as_of": visit.asked("as_of"),
    }


def properties_of(node: ShownNode) -> list[tuple[str, list[excerpts.Excerpt], int]]:
    """The properties of a node as texts, each with its name and how many more it has; cut to what fits into a page."""
    values = {name: value if isinstance(value, list) else [value] for name, value in node.properties.items()}
    some = {name: each[:MAX_VALUES] for name, each in islice(values.items(), MAX_PROPERTIES)}
    texts = [value if isinstance(value, str) else pretty(value) for each in some.values() for value in each]
    shown = iter(excerpts.fitted([text[:VALUE_CHARACTERS] for text in texts], PROPERTY_BYTES))
    return [(name, list(islice(shown, len(each))), len(values[name]) - len(each)) for name, each in some.items()]


async def path_values(visit: Visit) -> dict[str, object]:
    """How two nodes are connected; what keeps the question from being answered is a sentence."""
    start, end = visit.asked("from"), visit.asked("to")
    found, problem = None, ""
    if start and end:
        steps = visit.number_asked("steps", DEFAULT_STEPS, 1, MAX_PATH_DEPTH)
        try:
            found = await visit.engine.graph.find_path(visit.namespace, start, end, steps, visit.moment_asked("as_of"))
        except (NotFound, LimitReached, Invalid) as refusal:
            problem = str(refusal)
    return {
        "found": found,
        "problem": problem,
        "start": start,
        "end": end,
        "steps": visit.asked("steps") or DEFAULT_STEPS,
        "most_steps": MAX_PATH_DEPTH,
        "as_of": visit.asked("as_of"),
    }


async def node(visit: Visit) -> Response:
    """A node as a piece of the page."""
    return visit.page("graph_node.html", 200, brief=excerpts.brief, deepest=MAX_DEPTH, **await node_values(visit))


async def around(visit: Visit) -> Response:
    """What lies around a node, or, without one, the busiest nodes."""
    limit = visit.number_asked("limit", DEFAULT_PART, 1, MAX_PART)
    depth = visit.number_asked("depth", 1, 1, MAX_DEPTH)
    moment = visit.moment_asked("as_of")
    browsing = visit.engine.graph_browsing
    if not visit.asked("node"):
        return rendering.json_response(drawn(await browsing.glance(visit.namespace, limit, moment)))
    part = await browsing.around(
        visit.namespace, numbers(visit, "node")[0], depth, limit, visit.asked("relation") or None, moment
    )
    return rendering.json_response(drawn(part))


async def between(visit: Visit) -> Response:
    """The edges between nodes that are new in the picture and those that were there."""
    links = await visit.engine.graph_browsing.between(
        visit.namespace, numbers(visit, "ids"), numbers(visit, "others"), visit.moment_asked("as_of")
    )
    return rendering.json_response(drawn(Part([], links)))


async def path(visit: Visit) -> Response:
    """A path to draw, and as a piece of the page."""
    values = await path_values(visit)
    html = bytes(visit.page("graph_paths.html", 200, brief=excerpts.brief, **values).body).decode()
    found = values["found"]
    paths = found.paths if isinstance(found, Paths) else []
    return rendering.json_response(drawn(part_of(paths)) | {"html": html})


def part_of(paths: Iterable[Sequence[PathNode]]) -> Part:
    """The nodes and edges of paths."""
    nodes: dict[int, PartNode] = {}
    links: set[Link] = set()
    for steps in paths:
        nodes |= {each.node_id: PartNode(each.node_id, each.name, each.label) for each in steps}
        for here, there in pairwise(steps):
            ends = (here.node_id, there.node_id) if here.direction_to_next == "out" else (there.node_id, here.node_id)
            links.add(Link(*ends, here.relation_to_next or "", here.weight_to_next or 0.0))
    return Part(list(nodes.values()), list(links))


def drawn(part: Part) -> dict[str, Any]:
    """A part as the script reads it: labels and relations are numbered, since they repeat."""
    labels = {label: number for number, label in enumerate(dict.fromkeys(node.label for node in part.nodes))}
    relations = {name: number for number, name in enumerate(dict.fromkeys(link.relation for link in part.links))}
    return {
        "nodes": [[exact(node.id), node.name, labels[node.label]] for node in part.nodes],
        "labels": list(labels),
        "links": [
            [exact(link.source), exact(link.target), relations[link.relation], round(link.weight, 4)]
            for link in part.links
        ],
        "relations": list(relations),
        "total": part.total,
        "truncated": part.truncated,
    }


def exact(node_id: int) -> int | str:
    """An id that a script reads unchanged."""
    return node_id if node_id <= LARGEST_EXACT else str(node_id)


def numbers(visit: Visit, name: str) -> list[int]:
    """Ids of the address, with full stops between them."""
    texts = visit.asked(name).split(".")
    if not all(text.isascii() and text.isdigit() and len(text) < 20 for text in texts):
        raise Invalid(f"{name} must be numbers with full stops between them, such as 12.15")
    return [min(int(text), checks.LARGEST_ID) for text in texts]


async def add_node(visit: Visit) -> Response:
    """A new node, or another label or none for one that is there."""
    node = await visit.engine.graph.add_node(visit.namespace, visit.given("label").strip(), visit.given("name").strip())
    return visit.go(PAGE, node=str(node.id), done="node" if node.created else "known")


async def add_relation(visit: Visit) -> Response:
    """A new relation, and its ends where they are not there."""
    try:
        weight = float(visit.given("weight") or 1.0)
    except ValueError:
        raise Invalid("The weight must be a number from 0 to 1") from None
    source, relation, target = (visit.given(name).strip() for name in ("source", "relation", "target"))
    edge = await visit.engine.graph.add_edge(visit.namespace, source, target, relation, weight=weight)
    return visit.go(PAGE, node=str(edge.source_id), done="relation")


async def delete_relation(visit: Visit) -> Response:
    """A relation is deleted for good; the next one may be, too."""
    visit.require_sure()
    relation = Relation(*(visit.given(name) for name in ("source", "relation", "target")))
    await visit.engine.entities.unrelate(visit.namespace, [relation])
    return visit.go(PAGE, node=visit.given("node"), edit="1", done="relation_gone")


ROUTES = [
    get(PAGE, page),
    get(f"{PAGE}/node", node),
    get(f"{PAGE}/around", around),
    get(f"{PAGE}/between", between),
    get(f"{PAGE}/path", path),
    post(f"{PAGE}/add-node", add_node),
    post(f"{PAGE}/add-relation", add_relation),
    post(f"{PAGE}/delete-relation", delete_relation),
]
