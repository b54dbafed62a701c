"""Every statement that shows what is stored says which items it shows, or is known to tell nobody by itself."""

import pytest

from recollect.engine import Engine
from recollect.flows.accounts.audit_trail import LINES, kinds
from tests.memory.statements import CONTENT, every_query

# What a writer locks or compares, and what is shown by the flow that chose from it.
SILENT = {
    "clients.find": "what a client of MCP calls itself, not memory",
    "documents.contents": "compared with what is to be stored",
    "documents.same": "compared with what is to be stored",
    "embedding_models.claim": "to be embedded",
    "entities.known": "judged and indexed",
    "entities.lock": "locked to be changed",
    "entities.relations": "edges between nodes that are told of",
    "episodes.find": "the flow tells which it shows",
    "golden.lock": "locked to be changed",
    "graph.lock_node": "locked to be changed",
    "graph.named": "the names that were asked for",
    "graph.parallel": "edges between nodes that are told of",
    "graph_pages.between": "edges between nodes that are told of",
    "graph_then.named": "the names that were asked for",
    "graph_then.parallel": "edges between nodes that are told of",
    "insights.find": "the flow tells which it shows",
    "memories.in_slot": "locked to be changed",
    "memories.lock": "locked to be changed",
    "memories.same": "compared with what is to be stored",
    "passages.parts": "compared with what is to be forgotten or cited",
    "passages.texts": "to be embedded",
    "search.score": "recall tells which it shows",
    "store_files.lock": "locked to be changed",
    "stores.lock": "locked to be changed",
    "traces.metadata": "of an item that is told of",
    "windows.start": "of a window that is to be compacted",
}


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_statement_that_shows_content_says_of_which_items(engine: Engine) -> None:
    silent = set()
    async with engine.database.unscoped() as connection:
        for query in every_query():
            if query.role != "write" and query.name.partition(".")[0] != "limited":
                shown = {each.name for each in (await connection.prepare(query.text)).get_attributes()}
                if query.audit is None and shown & CONTENT:
                    silent.add(query.name)
                elif query.audit is not None and query.audit.ids not in query.parameters:
                    assert query.audit.ids in shown, query.name
    assert silent == set(SILENT)


def test_every_kind_of_item_that_a_line_can_name_is_a_filter() -> None:
    named = {query.audit.kind for query in every_query() if query.audit is not None}
    assert named | {LINES} == set(kinds())
