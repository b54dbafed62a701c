"""Recall as every door offers it: reads its filters, asks the engine, and shapes the answer that is ours."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from operator import not_
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from recollect import checks, trust
from recollect.doors.memories import PinnedRecords
from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.search import recollection, relevance
from recollect.flows.search.ranking import Parts
from recollect.flows.search.relevance import Floor
from recollect.memory.index.search import Scope
from recollect.memory.memories import MemoryScope

DEFAULT_TOP_K = 10


@dataclass(frozen=True, slots=True)
class Recollection(recollection.Recollection):
    """What was recalled, and beside it what is pinned in the scope, if that was asked for."""

    pinned: PinnedRecords | None = None


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was recalled, and the ranking that it is taken from."""

    found: Recollection
    candidates: list[recollection.Candidate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with its filters, as a door received them. None leaves a filter out."""

    query: str
    user_id: str | None = None
    agent_id: str | None = None
    session_id: UUID | str | None = None
    exclude_session: UUID | str | None = None
    roles: Sequence[str] | None = None
    kinds: Sequence[str] | None = None
    categories: Sequence[str] | None = None
    since: datetime | str | None = None
    until: datetime | str | None = None
    as_of: datetime | str | None = None
    valid_at: datetime | str | None = None
    metadata: Mapping[str, Any] | None = None
    min_relevance: float | str | None = None
    top_k: int = DEFAULT_TOP_K
    token_budget: int | None = None
    explain: bool = False
    include_pinned: bool = False
    now: datetime | str | None = None
    half_life_days: float | None = None
    min_trust: str | None = None
    namespaces: Sequence[str] | None = None

    def scope(self, metadata_name: str = "metadata") -> Scope:
        """Where to search."""
        return Scope(
            owner=self.user_id,
            agent_id=self.agent_id,
            session_id=_session(self.session_id),
            exclude_session=_session(self.exclude_session),
            roles=_words(self.roles, "roles"),
            kinds=_words(self.kinds, "kinds"),
            categories=_words(self.categories, "categories"),
            since=checks.optional_utc(moment(self.since, "since"), "since"),
            until=checks.optional_utc(moment(self.until, "until"), "until"),
            as_of=checks.as_of(moment(self.as_of, "as_of")),
            valid_at=checks.optional_utc(moment(self.valid_at, "valid_at"), "valid_at"),
            metadata=checks.metadata_filter(self.metadata, metadata_name),
            trusts=None if self.min_trust is None else trust.at_least(self.min_trust),
        )

    async def recall(self, engine: Engine, namespace: str, metadata_name: str = "metadata") -> Recollection:
        """What answers the question, and what is pinned."""
        pinned, options = await self._prepared(engine, namespace, metadata_name)
        found = await engine.recall.recall(namespace, self.query, explain=self.explain, **options)
        return _beside(pinned, found)

    async def inspect(self, engine: Engine, namespace: str) -> Inspection:
        """The same, with the ranking that the answer is taken from."""
        pinned, options = await self._prepared(engine, namespace, "metadata")
        inspection = await engine.recall.inspect(namespace, self.query, **options)
        return Inspection(_beside(pinned, inspection.found), inspection.candidates)

    async def _prepared(
        self, engine: Engine, namespace: str, metadata_name: str
    ) -> tuple[PinnedRecords | None, dict[str, Any]]:
        """What is pinned, and what the engine is asked for besides."""
        scope, pinned, budget = self.scope(metadata_name), None, self.token_budget
        options = {
            "scope": scope,
            "top_k": self.top_k,
            "min_relevance": floor(self.min_relevance),
            "now": moment(self.now, "now"),
            "half_life_days": self.half_life_days,
            "namespaces": _words(self.namespaces, "namespaces"),
        }
        if self.include_pinned:
            whose = MemoryScope(scope.owner, scope.agent_id, scope.session_id)
            shown = await engine.pinned.beside_recall(
                namespace, whose, budget, as_of=scope.as_of, valid_at=scope.valid_at
            )
            pinned, budget = PinnedRecords.of(shown), shown.left_of(budget)
        return pinned, options | {"token_budget": budget}


def _beside(pinned: PinnedRecords | None, found: recollection.Recollection) -> Recollection:
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    return Recollection(**values, pinned=pinned)


def floor(given: float | str | None) -> Floor | None:
    """The least relevance that a caller wants."""
    if given == relevance.DEFAULT:
        return relevance.DEFAULT
    usable = isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= 1
    if given is not None and not usable:
        raise Invalid(f'min_relevance must be a number between 0 and 1, or "{relevance.DEFAULT}", not {given!r}')
    return None if given is None else float(given)


def floor_of_text(text: str | None) -> Floor | None:
    """The same, where everything is text: on the command line, and in a header."""
    given: float | str | None = text
    with suppress(ValueError):
        given = None if text is None else float(text)
    return floor(given)


def metadata_of_text(text: str, name: str = "metadata") -> dict[str, Any]:
    """Metadata to filter by, or conditions on it, on the command line or in a query parameter."""
    contained = None
    with suppress(ValueError, RecursionError):
        contained = json.loads(text)
    if not isinstance(contained, dict):
        raise Invalid(f'{name} must be a JSON object, such as {{"source": "chat"}}')
    return contained


def _session(given: UUID | str | None) -> str | None:
    return str(given) if isinstance(given, UUID) else given


def _words(given: Sequence[str] | None, name: str) -> tuple[str, ...] | None:
    if isinstance(given, str):
        raise Invalid(f"{name} must be a list of strings, not one string: [{given!r}]")
    if given is not None and not given:
        raise Invalid(f"{name} is empty and would match nothing: omit it to match all")
    return None if given is None else tuple(checks.short_name(word, name) for word in given)


def moment(given: datetime | str | None, name: str) -> datetime | None:
    """A time with its zone, UTC if it has none: `now` says in which zone today ends."""
    if given is None:
        return None
    try:
        read = checks.moment(given) if isinstance(given, str) else given
    except ValueError as problem:
        shown = str(given)[: checks.MAX_SHOWN_CHARACTERS]
        raise Invalid(f"{name} must be a date and time such as 2026-02-14T12:00:00Z, not {shown!r}") from problem
    if not isinstance(read, datetime):
        raise Invalid(f"{name} must be a datetime, not {type(read).__name__}")
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


class Citation(BaseModel):
    """A word that the question asks for, in the whole text of the item."""

    model_config = ConfigDict(from_attributes=True)

    start: int = Field(description="Its first character, from 0")
    end: int = Field(description="The character behind its last")


class WhyRecalled(BaseModel):
    """How a score came about: its parts, which add up to it, and the ranks in keyword and semantic search."""

    model_config = ConfigDict(from_attributes=True)

    parts: Annotated[dict[str, float], BeforeValidator(Parts._asdict)] = Field(description="They add up to score")
    matched_words: list[str] = Field(description="Words that it shares with the question, stemmed")
    rank_by_words: int | None = Field(description="Rank in keyword search, from 1; null if not found by it")
    rank_by_meaning: int | None = Field(description="Rank in semantic search")
    citations: list[Citation] = Field(description="Where these words stand in the whole text of the item")
    cited_words: list[str] = Field(description="The same words, as they are written there")


class RecalledMemory(BaseModel):
    """One result, by its best-matching passage."""

    model_config = ConfigDict(from_attributes=True)

    kind: str = Field(description="What it is, such as message, document or memory", examples=["message"])
    id: str
    text: str
    score: float = Field(description="The order within one answer; do not compare between questions")
    relevance: float = Field(description="The chance that it bears on the question, from 0 to 1")
    similarity: float = Field(description="Cosine of the embeddings, or the share of words in common without them")
    at: datetime = Field(description="When it was said or stored")
    user_id: str
    agent_id: str | None
    session_id: str | None
    role: str | None
    speaker: str | None
    category: str | None
    metadata: Annotated[dict[str, Any] | None, BeforeValidator(checks.as_object)]
    trust: str = Field(description="Where it comes from: operator, user, assistant, tool, document or import")
    repeats: list[str] = Field(description="Ids of duplicates, which are shown as this one result")
    explanation: WhyRecalled | None = Field(None, description="Only if asked for with `explain`")
    namespace: str | None = Field(
        None, description="Where it was found; only if the question names `namespaces`", exclude_if=not_
    )


class Recalled(BaseModel):
    """The results, best match first."""

    model_config = ConfigDict(from_attributes=True)

    memories: list[RecalledMemory]
    answered: bool = Field(
        description="Whether the memory answers the question, or, given a number, whether a result reaches it"
    )
    pending: int = Field(description="Passages of the user, or of the namespace, that are not embedded yet")
    degraded: str | None = Field(description="Why only keyword search was used; null if semantic search ran")
    pinned: PinnedRecords | None = Field(
        None, description="The pinned memories of the scope; only with `include_pinned`", exclude_if=not_
    )

    @classmethod
    def of(cls, found: recollection.Recollection) -> Self:
        """What a recall found, in the fields of the answer."""
        return cls.model_validate(found)
