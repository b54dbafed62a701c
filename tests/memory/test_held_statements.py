"""Every statement that shows a screened item leaves out what is held, or is known to show what its reader names."""

import re

import pytest

from recollect.engine import Engine
from recollect.flows.kinds import registry
from tests.memory.statements import CONTENT, every_query

ID = "the reader names the item"
HISTORY = "a conversation's own history and window have every message"
FEED = "the feed of changes shows what was changed"
EXPORT = "an export has everything, and an import screens it"
WRITER = "compared, changed or judged by who writes, and not shown"
FOUND = "what was found by its passages, which held items do not have"

SHOWN: dict[str, str] = {
    **dict.fromkeys(
        (
            "graph.described",
            "graph.named",
            "graph_pages.node",
            "graph_then.described",
            "graph_then.named",
            "keyed_records.find",
            "log.by_ids",
            "log.by_seq",
            "memories.find",
            "memories.find_as_of",
            "memories.history",
            "memories.replaced_by",
            "resources.find",
            "store_files.find",
            "store_files.version",
            "traces.versions",
        ),
        ID,
    ),
    **dict.fromkeys(
        (
            "log.first_between",
            "log.last_between",
            "log.lines_before",
            "log.lines_from",
            "log.recent",
            "log.recent_before",
            "log.recent_then",
            "windows.outline",
            "windows.read",
            "windows.read_then",
        ),
        HISTORY,
    ),
    **dict.fromkeys(
        (
            "documents.shown_documents",
            "episodes.shown_episodes",
            "graph.shown_graph_edges",
            "graph.shown_graph_nodes",
            "insights.shown_insights",
            "keyed_records.shown_records",
            "log.of_turns",
            "resources.shown_resources",
            "store_files.shown_store_files",
            "working.shown_working_items",
        ),
        FEED,
    ),
    **dict.fromkeys(
        (
            "documents.page_documents",
            "episodes.page_episodes",
            "graph.page_graph_node_versions",
            "graph.page_graph_nodes",
            "insights.page_insights",
            "keyed_records.page_records",
            "log.page_messages",
            "memories.page_memories",
            "memories.page_memory_history",
            "memories.page_memory_versions",
            "resources.page_resources",
            "store_files.page_store_files",
            "store_files.page_store_versions",
            "working.page_working_items",
        ),
        EXPORT,
    ),
    **dict.fromkeys(
        (
            "documents.contents",
            "documents.same",
            "entities.known",
            "entities.lock",
            "graph.lock_node",
            "memories.in_slot",
            "memories.lock",
            "memories.same",
            "store_files.lock",
        ),
        WRITER,
    ),
    **dict.fromkeys(
        ("episodes.find", "episodes.similar", "insights.find"),
        FOUND,
    ),
    "sessions.then": "it reads only when something was said",
}

SCREENED = {
    kind.record.table
    for kind in registry.KINDS
    if kind.item is not None and (kind.item.source is not None or kind.item.judged is not None)
} | {"memory_versions", "store_versions", "graph_node_versions"}
"""Where the items are that are judged, and what they were before."""

READS = re.compile(rf"\b(?:from|join) (?:{'|'.join(sorted(SCREENED))})\b")


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_statement_that_shows_screened_items_leaves_out_held_ones(engine: Engine) -> None:
    shown = set()
    async with engine.database.unscoped() as connection:
        for query in every_query():
            if query.role == "write" or not READS.search(query.text) or "'held'" in query.text:
                continue
            columns = {each.name for each in (await connection.prepare(query.text)).get_attributes()}
            if columns & CONTENT:
                shown.add(query.name)
    assert shown == set(SHOWN)
