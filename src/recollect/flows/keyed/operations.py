"""The operations on records that a batch consists of, checked before any of them is done."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from recollect import checks
from recollect.errors import Invalid
from recollect.flows.keyed.record_texts import spoken
from recollect.memory.keyed_records import Distance, NewRecord, OwnVector, Wanted, record_id

OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")
DISTANCES: tuple[Distance, ...] = ("cosine", "inner_product", "l2")

MAX_OPERATIONS = 1_000
MAX_LABELS = 64
# Of a path with its key and owner, which must fit into an entry of an index.
MAX_ADDRESS_BYTES = 2_000
MAX_FILTERS = 64
MAX_PATTERNS = 16
MAX_LIMIT = 10_000
MAX_OFFSET = 2**31 - 1
MAX_TEXTS = 1_000
MAX_TTL_MINUTES = 60 * 24 * 36_500


@dataclass(frozen=True, slots=True)
class GetRecord:
    """A record by its path and key; with `refresh`, being read lets it live on."""

    path: tuple[str, ...]
    key: str
    refresh: bool = True


@dataclass(frozen=True, slots=True)
class PutRecord:
    """A value to store under a path and key, in place of an earlier one.

    `texts` are what it is found by: all that the value says if None, and nothing if empty.
    """

    path: tuple[str, ...]
    key: str
    value: checks.Json
    texts: Sequence[str] | None = None
    vectors: Sequence[Sequence[float]] = ()
    ttl_minutes: float | None = None


@dataclass(frozen=True, slots=True)
class DeleteRecord:
    """A record that is to go."""

    path: tuple[str, ...]
    key: str


@dataclass(frozen=True, slots=True)
class SearchRecords:
    """Records under a path, by a question or a vector of the caller's own, or else the last changed first."""

    path: tuple[str, ...] = ()
    query: str | None = None
    vector: Sequence[float] | None = None
    distance: Distance = "cosine"
    filter: Mapping[str, Any] | None = None
    limit: int = 10
    offset: int = 0
    refresh: bool = True


@dataclass(frozen=True, slots=True)
class Pattern:
    """The beginning or the end of a path; `*` stands for any label."""

    match: Literal["prefix", "suffix"]
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListPaths:
    """The paths that have records and match every pattern, cut to a depth, in order."""

    patterns: tuple[Pattern, ...] = ()
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


Operation = GetRecord | PutRecord | DeleteRecord | SearchRecords | ListPaths


def address(user_id: str, operation: GetRecord | PutRecord | DeleteRecord) -> UUID:
    """The id of the record that an operation names."""
    path = _path(operation.path)
    if not path:
        raise Invalid("path is empty: it needs at least one label")
    checks.storable(operation.key, "key")
    if not operation.key:
        raise Invalid("key is empty: name the record")
    if len("".join((user_id, *path, operation.key)).encode()) > MAX_ADDRESS_BYTES:
        raise Invalid(f"path and key are longer than {MAX_ADDRESS_BYTES:,} bytes together: use shorter names")
    return record_id(user_id, path, operation.key)


def new_record(user_id: str, operation: PutRecord) -> NewRecord:
    """What is to be stored."""
    address(user_id, operation)
    value = checks.json_value(operation.value, "value")
    if operation.texts is not None and len(operation.texts) > MAX_TEXTS:
        raise Invalid(f"a record has at most {MAX_TEXTS:,} texts: join some of them")
    for text in operation.texts or ():
        checks.optional_text(text, "texts")
    texts = [spoken(operation.value)] if operation.texts is None else operation.texts
    if len(operation.vectors) > MAX_TEXTS:
        raise Invalid(f"a record has at most {MAX_TEXTS:,} vectors")
    if operation.ttl_minutes is not None:
        checks.positive_number(operation.ttl_minutes, MAX_TTL_MINUTES, "ttl_minutes")
    return NewRecord(
        user_id,
        operation.path,
        operation.key,
        value,
        tuple(text for text in texts if text.strip()),
        tuple(checks.own_vector(vector, "vectors") for vector in operation.vectors),
        operation.ttl_minutes,
        derives_texts=operation.texts is None,
    )


def wanted(user_id: str, operation: SearchRecords) -> Wanted:
    """Which records are searched."""
    _page(operation.limit, operation.offset)
    if operation.query is not None and operation.vector is None:
        checks.question(operation.query, "query", needs_words=False)
    return Wanted(user_id, _path(operation.path), _filters(operation.filter or {}), operation.limit, operation.offset)


def own_vector(operation: SearchRecords) -> OwnVector | None:
    """The vector of the caller's own that a search brings."""
    if operation.vector is None:
        return None
    checks.one_of(operation.distance, DISTANCES, "distance")
    return OwnVector(checks.own_vector(operation.vector, "vector"), operation.distance)


def patterns(operation: ListPaths) -> str:
    """The patterns as the database takes them."""
    _page(operation.limit, operation.offset)
    if operation.max_depth is not None:
        checks.between(operation.max_depth, 1, MAX_LABELS, "max_depth")
    if len(operation.patterns) > MAX_PATTERNS:
        raise Invalid(f"at most {MAX_PATTERNS} patterns can be given")
    for pattern in operation.patterns:
        checks.one_of(pattern.match, ("prefix", "suffix"), "match")
    return json.dumps([{"match": each.match, "path": _path(each.path)} for each in operation.patterns])


def _path(path: Sequence[str]) -> tuple[str, ...]:
    if len(path) > MAX_LABELS:
        raise Invalid(f"path has more than {MAX_LABELS} labels: make it less deep")
    for label in path:
        checks.storable(label, "a label of path")
        if not label:
            raise Invalid("a label of path is empty: leave it out, or name it")
    return tuple(path)


def _page(limit: int, offset: int) -> None:
    checks.between(limit, 1, MAX_LIMIT, "limit")
    checks.between(offset, 0, MAX_OFFSET, "offset")


def _filters(given: Mapping[str, Any]) -> str:
    """Each condition as a field, an operator and a value; a plain value means that the field has it."""
    conditions: list[tuple[str, str, Any]] = []
    for field, asked in given.items():
        if not isinstance(asked, Mapping) or not any(str(name).startswith("$") for name in asked):
            conditions.append((field, "$eq", asked))
            continue
        for operator, value in asked.items():
            checks.one_of(operator, OPERATORS, f"the operator of filter field {field}")
            conditions.append((field, operator, value))
    if len(conditions) > MAX_FILTERS:
        raise Invalid(f"filter has more than {MAX_FILTERS} conditions")
    return checks.json_value(conditions, "filter") if conditions else "[]"
