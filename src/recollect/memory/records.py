"""Records: everything that is kept, row by row as it stands, to take it out of one database and into another.

The other capabilities each know one kind of memory; here all are alike. A row goes out as the database writes it in
JSON, and comes in through the same door, so that a column that is added later is taken along by itself.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from recollect.storage.database import Statements, Transaction
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="records.sql"):
    page_sessions: Query
    page_messages: Query
    page_summaries: Query
    page_documents: Query
    page_memories: Query
    page_memory_history: Query
    page_insights: Query
    page_working_items: Query
    page_stale_items: Query
    page_episodes: Query
    page_graph_nodes: Query
    page_graph_edges: Query
    page_resources: Query
    page_golden_queries: Query
    page_golden_runs: Query
    page_golden_results: Query
    page_golden_query_baselines: Query
    page_judgements: Query
    page_judge_scores: Query
    restore_sessions: Query
    restore_messages: Query
    restore_summaries: Query
    restore_documents: Query
    restore_memories: Query
    restore_memory_history: Query
    restore_insights: Query
    restore_working_items: Query
    restore_stale_items: Query
    restore_episodes: Query
    restore_graph_nodes: Query
    restore_graph_edges: Query
    restore_resources: Query
    restore_golden_queries: Query
    restore_golden_runs: Query
    restore_golden_results: Query
    restore_golden_query_baselines: Query
    restore_judgements: Query
    restore_judge_scores: Query


# Rows fetched at once. Whole texts may have 16 MB each; sessions are small, and each page of them is a sort of all.
PAGE = 100
PAGE_OF_TEXTS = 10
PAGE_OF_SESSIONS = 2000


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of record: its table, what names a row of it in its namespace, and how it is read and written."""

    name: str
    table: str
    key: tuple[str, ...]
    page: Query
    restore: Query
    page_size: int = PAGE

    def named(self, fields: Mapping[str, object]) -> tuple[str, ...]:
        """What names a record of this kind."""
        return tuple(str(fields[column]) for column in self.key)


class Outcome(Enum):
    """What became of a record."""

    ADDED = "added"
    SAME = "the same record is there"
    AKIN = "the record is there, and has changed since"
    DIFFERENT = "another record of its id is there"
    CLASH = "a record of another id is in its place"


MESSAGE = Kind("message", "messages", ("id",), _Sql.page_messages, _Sql.restore_messages)
DOCUMENT = Kind("document", "documents", ("id",), _Sql.page_documents, _Sql.restore_documents, PAGE_OF_TEXTS)
MEMORY = Kind("memory", "memories", ("id",), _Sql.page_memories, _Sql.restore_memories)
MEMORY_HISTORY = Kind(
    "memory_history",
    "memory_history",
    ("memory_id", "number"),
    _Sql.page_memory_history,
    _Sql.restore_memory_history,
)
INSIGHT = Kind("insight", "insights", ("id",), _Sql.page_insights, _Sql.restore_insights)
WORKING_ITEM = Kind("working_item", "working_items", ("id",), _Sql.page_working_items, _Sql.restore_working_items)
EPISODE = Kind("episode", "episodes", ("id",), _Sql.page_episodes, _Sql.restore_episodes)
RESOURCE = Kind("resource", "resources", ("id",), _Sql.page_resources, _Sql.restore_resources, PAGE_OF_TEXTS)

KINDS = (
    Kind("session", "sessions", ("id",), _Sql.page_sessions, _Sql.restore_sessions, PAGE_OF_SESSIONS),
    MESSAGE,
    Kind("summary", "summaries", ("session_id", "until"), _Sql.page_summaries, _Sql.restore_summaries),
    DOCUMENT,
    MEMORY,
    MEMORY_HISTORY,
    INSIGHT,
    WORKING_ITEM,
    Kind("stale_item", "stale_items", ("id",), _Sql.page_stale_items, _Sql.restore_stale_items),
    EPISODE,
    Kind("graph_node", "graph_nodes", ("id",), _Sql.page_graph_nodes, _Sql.restore_graph_nodes),
    Kind("graph_edge", "graph_edges", ("id",), _Sql.page_graph_edges, _Sql.restore_graph_edges),
    RESOURCE,
    Kind("golden_query", "golden_queries", ("id",), _Sql.page_golden_queries, _Sql.restore_golden_queries),
    Kind("golden_run", "golden_runs", ("day",), _Sql.page_golden_runs, _Sql.restore_golden_runs),
    Kind("golden_result", "golden_results", ("day", "query_id"), _Sql.page_golden_results, _Sql.restore_golden_results),
    Kind(
        "golden_query_baseline",
        "golden_query_baselines",
        ("query_id",),
        _Sql.page_golden_query_baselines,
        _Sql.restore_golden_query_baselines,
    ),
    Kind("judgement", "judgements", ("id",), _Sql.page_judgements, _Sql.restore_judgements),
    Kind(
        "judge_score",
        "judge_scores",
        ("judgement_id", "document_id"),
        _Sql.page_judge_scores,
        _Sql.restore_judge_scores,
    ),
)
"""Every kind, each behind those that it refers to."""

REFERENCES = {
    ("message", "session_id"): ("session", "id"),
    ("summary", "session_id"): ("session", "id"),
    ("memory_history", "memory_id"): ("memory", "id"),
    ("insight", "source_ids"): ("message", "seq"),
    ("graph_node", "vector_id"): ("insight", "id"),
    ("graph_edge", "source"): ("graph_node", "id"),
    ("graph_edge", "target"): ("graph_node", "id"),
    ("golden_query", "expected_ids"): ("insight", "id"),
    ("golden_result", "day"): ("golden_run", "day"),
    ("golden_result", "query_id"): ("golden_query", "id"),
    ("golden_result", "found_ids"): ("insight", "id"),
    ("golden_query_baseline", "query_id"): ("golden_query", "id"),
    ("golden_query_baseline", "expected_ids"): ("insight", "id"),
    ("judgement", "query_id"): ("golden_query", "id"),
    ("judge_score", "judgement_id"): ("judgement", "id"),
    ("judge_score", "document_id"): ("insight", "id"),
}
"""Which fields name other records, and by what: an id means something only among the records that it came with."""

LEFT_OUT = {
    "recollect_migrations": "the ledger of the schema, which is the other database's own",
    "passages": "made from the items when they are imported",
    "passage_words": "made from passages",
    "passage_vectors": "made from passages by the indexer, with the other place's model",
    "passage_queue": "what the indexer has to do is known from the passages that were made",
    "term_stats": "counted by the indexer",
    "giants": "names indexes of one database",
    "embedding_models": "which model gives meaning is the choice of the other place",
    "working_state": "a row to lock, made when it is needed",
    "api_keys": "who may come in elsewhere is not for a file to decide",
    "usage": "what was spent was spent here",
    "usage_days": "what was spent was spent here",
    "model_turns": "when a model may be asked next is a matter of the moment",
    "model_requests": "what is being asked is a matter of the moment",
}
"""The tables that hold no record, and why."""


class Records:
    """Reads and writes rows as they are. Nothing is checked here but by the database."""

    async def all(self, db: Statements, kind: Kind, user_id: str | None) -> AsyncIterator[str]:
        """Every record of a kind as JSON, in the order of its key; of one user, or of the whole namespace."""
        behind = [f"after_{column}" for column in kind.key]
        place: Mapping[str, object] = dict.fromkeys(behind)
        while True:
            rows = await db.all(kind.page, user_id=user_id, limit=kind.page_size, **place)
            for row in rows:
                yield row["record"]
            if len(rows) < kind.page_size:
                return
            place = dict(zip(behind, tuple(rows[-1])[1:], strict=True))

    async def restore(self, tx: Transaction, kind: Kind, records: Sequence[str]) -> dict[tuple[str, ...], Outcome]:
        """Add records, JSON objects with their columns alone, that are not there; tells of each, by its key."""
        here = json.dumps({"namespace": tx.namespace})[:-1]
        rows = await tx.all(kind.restore, records="[" + ",".join(f"{here},{record[1:]}" for record in records) + "]")
        return {
            kind.named({column: row[column] for column in kind.key}): _outcome(
                row["added"], row["same"], row.get("akin", False)
            )
            for row in rows
        }


def _outcome(added: bool, same: bool | None, akin: bool | None) -> Outcome:
    if added:
        return Outcome.ADDED
    if same is None:
        return Outcome.CLASH
    if same:
        return Outcome.SAME
    return Outcome.AKIN if akin else Outcome.DIFFERENT
