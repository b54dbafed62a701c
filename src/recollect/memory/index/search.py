"""Search: keyword and semantic search nominate items, and one statement scores every nominee by both."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, NamedTuple, Self, TypeVar

from recollect import trust
from recollect.language import bm25
from recollect.storage.database import Statements
from recollect.storage.sql import Queries, Query

# More speakers than this in one scope are too many to be people that a question calls by name.
MAX_SPEAKERS = 500
MAX_PENDING = 10_000

# Candidates that the rarest words may bring; more frequent words only add to their scores.
MAX_CANDIDATES = 20_000

# For each item wanted, so many passages are looked at first: to sort all of an owner's by item takes longer.
PASSAGES_EACH = 3

_TRUST_OF = json.dumps(trust.BY_KIND)

# What stands in the place of a model that is not there: Citus refuses an outer join on a null.
NO_MODEL = ""


class _Sql(Queries, file="search.sql"):
    frequencies: Query
    by_words: Query
    by_words_among: Query
    by_words_filtered: Query
    by_words_in_scope: Query
    by_meaning: Query
    by_meaning_among: Query
    by_meaning_filtered: Query
    by_meaning_in_scope: Query
    score: Query
    opening: Query
    is_filled: Query
    waiting_items: Query


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look, in one namespace; None means anywhere. Metadata is JSON text that passages must contain."""

    owner: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    kinds: tuple[str, ...] | None = None
    categories: tuple[str, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None
    metadata: str | None = None
    realm: str | None = None
    exclude_session: str | None = None
    roles: tuple[str, ...] | None = None
    as_of: datetime | None = None
    """What was in force then, past versions of memories included, and nothing that came later."""
    valid_at: datetime | None = None
    """What is true then in the world, as far as anybody said."""
    where: str | None = None
    """A JSON path that must hold for the metadata."""
    trusts: tuple[str, ...] | None = None
    """Only of these classes of trust."""

    def values(self) -> dict[str, object]:
        """Each of them by the name that a statement knows it by."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"trust_of": _TRUST_OF}

    def is_whole(self) -> bool:
        """Whether an index alone finds it: all of an owner or of the namespace, but for kinds."""
        return all(
            getattr(self, each.name) in (None, ()) for each in fields(self) if each.name not in ("owner", "kinds")
        )

    def is_small(self) -> bool:
        """Whether it can be scored whole: one session or one agent."""
        return self.session_id is not None or self.agent_id is not None

    def filters(self) -> dict[str, object]:
        """The values of a scope that is not small."""
        return {name: value for name, value in self.values().items() if name not in ("agent_id", "session_id")}


@dataclass(frozen=True, slots=True)
class Lexical:
    """A question's words: the vector that scores, and the keys that find."""

    vector: str
    keys: list[int]
    bound: float
    """The score of a passage that holds every word many times; 0 when the question has no words."""
    weights: Mapping[str, float]
    """How rare each word is, by every term under which the index may hold it."""
    rarest: float
    """The weight of a word that one passage has."""

    def matched_by(self, variants_of_words: Sequence[Sequence[str]]) -> Self:
        """The same where some of the words are enough for a whole match; the others only add to it."""
        bound = sum(self.weights[variants[0]] for variants in variants_of_words) * (bm25.K1 + 1)
        return replace(self, bound=bound) if bound else self


@dataclass(frozen=True, slots=True)
class Meaning:
    """A question's vector, in the text form of halfvec, and the model whose space it is in."""

    vector: str
    model: str


class Nominee(NamedTuple):
    """A passage with both of its scores; without a vector yet, it has no cosine."""

    id: int
    kind: str
    item_id: str
    part: int
    owner: str
    agent_id: str | None
    session_id: str | None
    position: int | None
    role: str | None
    speaker: str | None
    category: str | None
    metadata: str | None
    """JSON text: decoded for the few that are returned."""
    at: datetime
    text: str
    trust: str | None
    lexical: float
    cosine: float | None
    namespace: str = ""

    @property
    def key(self) -> tuple[str, int]:
        """Which passage it is: ids are unique in a namespace."""
        return self.namespace, self.id


class Around(NamedTuple):
    """A passage of a message next to a nominee."""

    kind: str
    part: int
    owner: str
    session_id: str
    position: int
    role: str | None
    ending: str
    """The last characters of the passage."""
    lexical: float
    cosine: float | None
    namespace: str = ""


# Which of the columns of a scored passage make a record; its two scores and its namespace follow.
_NOMINEE_COLUMNS = len(Nominee._fields) - 3
_AROUND_COLUMNS = ("kind", "part", "owner", "session_id", "position", "role", "text")


_Passage = TypeVar("_Passage", Nominee, Around)


def _rescaled(passage: _Passage, scale: Callable[[float], float]) -> _Passage:
    return passage if passage.cosine is None else passage._replace(cosine=scale(passage.cosine))


@dataclass(frozen=True, slots=True)
class Scored:
    """Nominees, and the passages of the messages before and after them."""

    nominees: list[Nominee]
    around: list[Around]

    def reweighed(self, factor: float) -> Self:
        """The same with other scores of keyword search."""
        return replace(
            self,
            nominees=[each._replace(lexical=each.lexical * factor) for each in self.nominees],
            around=[each._replace(lexical=each.lexical * factor) for each in self.around],
        )

    def rescaled(self, scale: Callable[[float], float]) -> Self:
        """The same with other cosines."""
        return replace(
            self,
            nominees=[_rescaled(each, scale) for each in self.nominees],
            around=[_rescaled(each, scale) for each in self.around],
        )


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The index of an owner's vectors, or of a namespace's: up to a watermark, in vectors of one size."""

    watermark: int
    name: str
    dimensions: int


@dataclass(frozen=True, slots=True)
class Opening:
    """What a recall reads before it looks for anything."""

    model: str | None
    """The recorded model of the namespace; None before its first vector."""
    index: VectorIndex | None
    frequencies: Mapping[int, int]
    speakers: frozenset[str]
    pending: int
    """Passages of the owner, or of the namespace, that are not embedded yet, up to a bound."""


class Search:
    """Reads passages; what a result is worth is decided by the flow."""

    async def lexical(self, db: Statements, owner: str | None, variants_of_words: Sequence[Sequence[str]]) -> Lexical:
        """A question's words, weighed by how rare they are in the namespace."""
        rows = await db.all(_Sql.frequencies, dimensions=_dimensions(variants_of_words))
        frequencies = {row["term"]: row["df"] for row in rows}
        return lexical_question(db.namespace, owner, variants_of_words, frequencies)

    async def is_filled(self, db: Statements) -> bool:
        """Whether the namespace has anything to find."""
        return bool((await db.one(_Sql.is_filled))["is_filled"])

    async def by_words(self, db: Statements, scope: Scope, question: Lexical, limit: int) -> list[int]:
        """So many items that share words with the question, the best first, each by its best passage."""
        if not question.keys:
            return []
        if scope.is_small():
            rows = await db.all(_Sql.by_words_in_scope, vector=question.vector, limit=limit, **scope.values())
            return _ids(rows)
        values = {"keys": question.keys, "vector": question.vector, "limit": limit}
        if not scope.is_whole():
            return _ids(await db.all(_Sql.by_words_filtered, **values, **scope.filters()))
        values |= {"kinds": scope.kinds, "owner": scope.owner}
        passages = PASSAGES_EACH * limit
        rows = await db.all(_Sql.by_words_among, **values, passages=passages)
        return _ids(rows if _enough(rows, limit, passages) else await db.all(_Sql.by_words, **values))

    async def by_meaning(self, db: Statements, scope: Scope, question: Meaning, limit: int) -> list[int]:
        """So many items nearest to the question's vector, the nearest first, each by its nearest passage."""
        values = {"vector": question.vector, "model": question.model, "limit": limit}
        if scope.is_small():
            return _ids(await db.all(_Sql.by_meaning_in_scope, **values, **scope.values()))
        if not scope.is_whole():
            return _ids(await db.all(_Sql.by_meaning_filtered, **values, **scope.filters()))
        values |= {"kinds": scope.kinds, "owner": scope.owner}
        passages = PASSAGES_EACH * limit
        rows = await db.all(_Sql.by_meaning_among, **values, passages=passages)
        return _ids(rows if _enough(rows, limit, passages) else await db.all(_Sql.by_meaning, **values))

    async def score(
        self, db: Statements, ids: Sequence[int], words: Lexical, meaning: Meaning | None, scope: Scope
    ) -> Scored:
        """Passages with both scores, and the messages around them that are no later than a scope allows."""
        vector, model = (None, NO_MODEL) if meaning is None else (meaning.vector, meaning.model)
        limits = {"until": scope.until, "as_of": scope.as_of}
        rows = await db.all(_Sql.score, ids=ids, words=words.vector, vector=vector, model=model, **limits)
        *passages, scores = rows
        lexical = dict(zip(scores["with_words"] or (), scores["lexical"] or (), strict=True))
        cosines = zip(scores["with_vector"] or (), scores["cosine"] or (), strict=True)
        # In the middle of a switch a passage has a vector of each model, and a cosine for one of them.
        cosine = {passage_id: each for passage_id, each in cosines if each is not None}
        nominees, around = [], []
        for row in passages:
            rest = lexical[row["id"]], cosine.get(row["id"]), db.namespace
            if row["item_id"] is not None:
                nominees.append(Nominee._make((*row[:_NOMINEE_COLUMNS], *rest)))
            else:
                around.append(Around._make((*(row[column] for column in _AROUND_COLUMNS), *rest)))
        return Scored(nominees, around)

    async def opening(
        self, db: Statements, owner: str | None, variants_of_words: Sequence[Sequence[str]], *, with_speakers: bool
    ) -> Opening:
        """The model, how rare the question's words are, what waits, and who spoke if that is asked for."""
        row = await db.one(
            _Sql.opening,
            owner=owner,
            dimensions=_dimensions(variants_of_words),
            with_speakers=with_speakers,
            max_speakers=MAX_SPEAKERS,
            max_pending=MAX_PENDING,
        )
        index = None
        if row["watermark"] is not None:
            index = VectorIndex(row["watermark"], row["index_name"], row["dimensions"])
        frequencies = dict(zip(row["terms"] or (), row["counts"] or (), strict=True))
        return Opening(row["active"], index, frequencies, frozenset(row["speakers"] or ()), row["pending"])

    async def waiting_items(self, db: Statements, kind: str) -> int:
        """How many items of a kind that has no owners are not embedded yet, up to a bound."""
        return int((await db.one(_Sql.waiting_items, kind=kind, max_pending=MAX_PENDING))["waiting"])


def _ids(rows: Sequence[Any]) -> list[int]:
    return [row["id"] for row in rows]


def _enough(rows: Sequence[Any], limit: int, passages: int) -> bool:
    """Whether so many passages had the items that are wanted: not if a few long items crowd out the others."""
    return len(rows) >= limit or not rows or rows[0]["passages"] < passages


def _dimensions(variants_of_words: Sequence[Sequence[str]]) -> list[int]:
    return [bm25.ALL_PASSAGES, *(bm25.dimension(variant) for group in variants_of_words for variant in group)]


def lexical_question(
    namespace: str, owner: str | None, variants_of_words: Sequence[Sequence[str]], frequencies: Mapping[int, int]
) -> Lexical:
    """Weigh a question's words by how rare they are, and find by the rarest until enough candidates may come."""
    total = frequencies.get(bm25.ALL_PASSAGES, 0)
    weights: dict[str, float] = {}
    bound = 0.0
    rarity: list[tuple[int, Sequence[str]]] = []
    for variants in variants_of_words:
        df = max(sum(frequencies.get(bm25.dimension(variant), 0) for variant in variants), 1)
        idf = bm25.idf(df, total)
        bound += idf * (bm25.K1 + 1)
        rarity.append((df, variants))
        weights.update((variant, idf) for variant in variants)
    keys: list[int] = []
    candidates = 0
    for df, variants in sorted(rarity, key=lambda entry: entry[0]):
        if keys and candidates + df > MAX_CANDIDATES:
            break
        candidates += df
        keys += [bm25.key(namespace, owner, variant) for variant in variants]
    return Lexical(bm25.sparse_text(weights), keys, bound, weights, bm25.idf(1, total))
