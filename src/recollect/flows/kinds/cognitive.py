"""Insights, working memory with what left it, episodes and the graph."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from recollect import checks, trust
from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.kinds import rules
from recollect.flows.kinds.kind import NUMBERS, Ids, Item, Kind, SessionOwners, as_json, in_feed
from recollect.flows.kinds.rules import Fields
from recollect.memory.cognitive import episodes, graph, insights, working
from recollect.memory.cognitive.entities import observations_in
from recollect.memory.index.passages import Source, analyse
from recollect.storage.database import Transaction

NODE = "node"
EDGE = "edge"


def insight_source(fields: Fields, _: SessionOwners) -> Source:
    """The text."""
    at = datetime.fromisoformat(fields["created_at"])
    return Source("insight", str(fields["id"]), analyse(fields["content"]), at, trust=fields.get("trust"))


def working_source(fields: Fields, _: SessionOwners) -> Source:
    """The text."""
    at = datetime.fromisoformat(fields["created_at"])
    return Source("working", str(fields["id"]), analyse(fields["content"]), at)


def episode_source(fields: Fields, _: SessionOwners) -> Source:
    """The query that led to the lesson; the lesson is shown with it."""
    lesson = {"reward": float(fields["reward"]), "reflection": fields["reflection"]}
    at = datetime.fromisoformat(fields["created_at"])
    return Source("episode", str(fields["id"]), analyse(fields["query"]), at, metadata=as_json(lesson))


def observed(
    node_id: int,
    name: str,
    label: str,
    properties: Mapping[str, Any],
    at: datetime,
    since: datetime | None = None,
) -> Source:
    """What is observed of a node, each observation with its name, which it leaves out; lists show the rest, too."""
    told = observations_in(properties.get("observations"))
    excerpts = tuple(excerpt for text in told for excerpt in analyse(f"{name}: {text}"))
    about = as_json({"name": name, "label": label})
    others = {key: value for key, value in properties.items() if key != "observations" or not told}
    return Source(
        NODE, str(node_id), excerpts, at, metadata=about, since=since, beside=as_json(others) if others else None
    )


def node_source(fields: Fields, _: SessionOwners) -> Source:
    """The observations."""
    at = datetime.fromisoformat(fields["created_at"])
    return observed(fields["id"], fields["name"], fields["label"], fields["properties"], at)


async def remove_insights(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> None:
    """Insights, what judges said of them, and the pointers of nodes."""
    if not ids:
        return
    gone = await memory.insights.remove(tx, ids)
    tally.add("insights", len(gone))
    tally.add("judge_scores", await memory.judging.remove_of_documents(tx, gone))
    await memory.graph.unlink(tx, gone)


async def remove_working(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> None:
    """What is in mind."""
    tally.add("working_items", sum([await memory.working.remove(tx, item_id) for item_id in ids]))


async def remove_stale(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> None:
    """What left working memory."""
    tally.add("stale_items", sum([await memory.working.remove_stale(tx, item_id) for item_id in ids]))


async def remove_episodes(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> None:
    """Lessons."""
    tally.add("episodes", sum([await memory.episodes.remove(tx, item_id) for item_id in ids]))


async def remove_nodes(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> Mapping[str, Ids]:
    """Nodes, the edges at them, and what both were before."""
    gone: list[int] = []
    for item_id in ids:
        removed = await memory.graph.remove(tx, item_id)
        tally.add("graph_nodes", removed.nodes)
        tally.add("graph_node_versions", removed.node_versions)
        tally.add("graph_edges", len(removed.edges))
        tally.add("graph_edge_versions", removed.edge_versions)
        gone += removed.edges
    return {EDGE: gone}


NODE_ITEM = Item(NODE, NUMBERS, remove_nodes, node_source)


INSIGHT = Kind(
    insights.RECORD,
    {
        "content": checks.text,
        "fidelity": rules.share,
        "metadata": rules.json_object,
        "trust": rules.one_of(*trust.CLASSES),
    },
    later=frozenset({"trust"}),
    references={"source_ids": ("message", "seq")},
    item=Item("insight", NUMBERS, remove_insights, insight_source),
    feed=in_feed("insight", insights.RECORD),
)
WORKING_ITEM = Kind(
    working.RECORD,
    {"content": checks.text, "importance": rules.share},
    item=Item("working", NUMBERS, remove_working, judged=working_source),
    feed=in_feed("working", working.RECORD),
    shown_as="working_memory",
    shown_with=("stale_items",),
)
STALE_ITEM = Kind(
    working.STALE_RECORD,
    {"original_content": checks.text, "importance": rules.share, "reason": rules.one_of(*working.REASONS)},
    later=frozenset({"item_id", "created_at", "last_accessed"}),
    item=Item("stale", NUMBERS, remove_stale),
)
EPISODE = Kind(
    episodes.RECORD,
    {"query": checks.text, "reward": rules.between(-1.0, 1.0), "reflection": checks.text},
    item=Item("episode", NUMBERS, remove_episodes, episode_source),
    feed=in_feed("episode", episodes.RECORD),
)
GRAPH_NODE = Kind(
    graph.NODE_RECORD,
    {"name": checks.short_name, "label": checks.short_name, "properties": rules.json_object},
    references={"vector_id": ("insight", "id")},
    item=NODE_ITEM,
    shown_with=("graph_node_versions",),
    feed=in_feed("node", graph.NODE_RECORD),
)
GRAPH_EDGE = Kind(
    graph.EDGE_RECORD,
    {"relation": checks.short_name, "weight": rules.share, "properties": rules.json_object},
    references={"source": ("graph_node", "id"), "target": ("graph_node", "id")},
    shown_with=("graph_edge_versions",),
    feed=in_feed("edge", graph.EDGE_RECORD),
)
GRAPH_NODE_VERSION = Kind(
    graph.NODE_VERSION_RECORD,
    {"number": rules.at_least(1), "label": checks.short_name, "properties": rules.json_object},
    references={"node_id": ("graph_node", "id"), "vector_id": ("insight", "id")},
)
GRAPH_EDGE_VERSION = Kind(
    graph.EDGE_VERSION_RECORD,
    {"number": rules.at_least(1), "weight": rules.share, "properties": rules.json_object},
    references={"edge_id": ("graph_edge", "id")},
)

COGNITIVE = (INSIGHT, WORKING_ITEM, STALE_ITEM, EPISODE, GRAPH_NODE, GRAPH_EDGE, GRAPH_NODE_VERSION, GRAPH_EDGE_VERSION)
