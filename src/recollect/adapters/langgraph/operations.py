"""LangGraph's store operations as the REST door takes them, and its answers as LangGraph's items."""

from collections.abc import Iterator, Sequence
from typing import Any, TypedDict, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    ensure_embeddings,
    get_text_at_path,
)

# What one request takes.
MAX_OPERATIONS = 1_000

_WHOLE = "$"


class Index(TypedDict, total=False):
    """What of a value is searched, by paths such as `memory` or `notes[*].text`; everything if omitted.

    With `embed`, searches compare the vectors that it makes, by `distance_type`: cosine, inner_product or l2. Without,
    the server's own model and keyword search are combined.
    """

    fields: list[str] | None
    embed: Any
    dims: int
    distance_type: str


class Translator:
    """What a store's configuration makes of operations."""

    def __init__(self, index: Index | None) -> None:
        self._fields: Sequence[str] = list((index or {}).get("fields") or [_WHOLE])
        self._distance = (index or {}).get("distance_type", "cosine")
        embed = (index or {}).get("embed")
        self.embeddings: Embeddings | None = None if embed is None else ensure_embeddings(embed)

    def to_embed(self, ops: Sequence[Op]) -> list[str]:
        """The texts whose vectors the operations need, each once."""
        texts: dict[str, None] = {}
        for op in ops if self.embeddings is not None else ():
            if isinstance(op, SearchOp) and op.query:
                texts[op.query] = None
            elif isinstance(op, PutOp):
                texts |= dict.fromkeys(self._texts(op))
        return list(texts)

    def asked(self, op: Op, vectors: dict[str, list[float]]) -> dict[str, Any]:
        """An operation as the door takes it."""
        if isinstance(op, GetOp):
            return {"op": "get", "path": op.namespace, "key": op.key, "refresh": op.refresh_ttl}
        if isinstance(op, PutOp):
            return self._put(op, vectors)
        if isinstance(op, SearchOp):
            vector = vectors.get(op.query) if op.query else None
            asked = {"op": "search", "path": op.namespace_prefix, "query": op.query or None, "filter": op.filter}
            page = {"limit": op.limit, "offset": op.offset, "refresh": op.refresh_ttl}
            return asked | page | ({} if vector is None else {"vector": vector, "distance": self._distance})
        if isinstance(op, ListNamespacesOp):
            patterns = [{"match": each.match_type, "path": list(each.path)} for each in op.match_conditions or ()]
            cut = {"max_depth": op.max_depth, "limit": op.limit, "offset": op.offset}
            return {"op": "paths", "patterns": patterns, **cut}
        raise TypeError(f"A store takes no {type(op).__name__}")

    def _put(self, op: PutOp, vectors: dict[str, list[float]]) -> dict[str, Any]:
        named = {"path": op.namespace, "key": op.key}
        if op.value is None:
            return {"op": "delete", **named}
        texts = self._texts(op)
        return {
            "op": "put",
            **named,
            "value": dict(op.value),
            # A whole value reads better as the server writes it out than as JSON.
            "texts": None if self._paths(op) == [_WHOLE] else texts,
            "vectors": [vectors[text] for text in texts if text in vectors],
            "ttl_minutes": op.ttl,
        }

    def _paths(self, op: PutOp) -> Sequence[str]:
        if op.index is False:
            return []
        return self._fields if op.index is None else op.index

    def _texts(self, op: PutOp) -> list[str]:
        return (
            [] if op.value is None else [text for path in self._paths(op) for text in get_text_at_path(op.value, path)]
        )


def pages(ops: Sequence[Op]) -> Iterator[list[int]]:
    """The places of operations that go in one request: all of them, or else the reads before the writes."""
    if len(ops) <= MAX_OPERATIONS:
        yield list(range(len(ops)))
        return
    writes = [place for place, op in enumerate(ops) if isinstance(op, PutOp)]
    reads = [place for place, op in enumerate(ops) if not isinstance(op, PutOp)]
    for places in (reads, writes):
        for start in range(0, len(places), MAX_OPERATIONS):
            yield places[start : start + MAX_OPERATIONS]


def result(op: Op, answer: dict[str, Any]) -> Result:
    """What became of an operation, as LangGraph has it."""
    if isinstance(op, GetOp):
        return None if answer["record"] is None else Item(**_fields(answer["record"]))
    if isinstance(op, SearchOp):
        return [SearchItem(**_fields(record), score=record["score"]) for record in answer["records"]]
    if isinstance(op, ListNamespacesOp):
        return [tuple(path) for path in answer["paths"]]
    return None


def _fields(record: dict[str, Any]) -> dict[str, Any]:
    # Items take times as text, too.
    times = cast(dict[str, Any], {name: record[name] for name in ("created_at", "updated_at")})
    return {"value": record["value"], "key": record["key"], "namespace": tuple(record["path"]), **times}
