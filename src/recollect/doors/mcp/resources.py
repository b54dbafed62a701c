"""The five `memory://` resources of the cognitive-memory contract, one of the reference server, and two of ours."""

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Annotated, Any, Literal
from urllib.parse import unquote_plus

from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, Resource, ResourceTemplate
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recollect.checks import LARGEST_ID
from recollect.doors.caller import Caller
from recollect.doors.changes import Change, ChangesPage
from recollect.doors.lineage import ItemLineage
from recollect.doors.mcp import errors
from recollect.doors.mcp.schema import input_schema
from recollect.doors.mcp.tool import meta
from recollect.doors.mcp.tools.reference import KnowledgeGraph
from recollect.doors.recalls import moment
from recollect.errors import Invalid, RecollectError
from recollect.flows import feed
from recollect.flows.cognitive import cognition
from recollect.flows.results import Results
from recollect.memory.cognitive import insights

JSON = "application/json"
SCHEME = "memory:"

_log = logging.getLogger(__name__)

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Days = Annotated[int, Field(ge=1, le=cognition.MAX_DAYS_BACK)]
Listed = Annotated[int, Field(ge=1, le=cognition.MAX_LISTED)]
DEFAULT_DAYS_BACK = 30


class Parameters(BaseModel):
    """What stands after the question mark: text that is read as what it should be, and nothing unknown."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class InsightParameters(Parameters):
    """Both dates belong to the range."""

    query: str | None = None
    top_k: Listed = 50
    fidelity_min: Share | None = None
    created_after: str | None = None
    created_before: str | None = None
    as_of: str | None = None


class WorkingParameters(Parameters):
    """Working memory is read whole, as it is or was."""

    as_of: str | None = None


class EpisodeParameters(Parameters):
    """Which lessons, and how like the query theirs must have been."""

    query: str
    top_k: Annotated[int, Field(ge=1, le=cognition.MAX_TOP_K)] = 5
    min_similarity: Share = 0.5
    reward_min: Annotated[float, Field(ge=-1.0, le=1.0)] | None = None
    days_back: Days = DEFAULT_DAYS_BACK
    as_of: str | None = None


class RawParameters(Parameters):
    """Which dialogue; a range is two dates, both of which belong to it."""

    session_id: str | None = None
    date_range: str | None = None
    speaker: str | None = None
    limit: Listed = 100
    order: Literal["asc", "desc"] = "desc"
    as_of: str | None = None


class StaleParameters(Parameters):
    """What left working memory, why and when."""

    reason: Literal["LRU_EVICTION", "MANUAL_ARCHIVE"] | None = None
    days_back: Days = DEFAULT_DAYS_BACK
    importance_min: Share | None = None
    limit: Listed = 50
    as_of: str | None = None


class ChangeParameters(Parameters):
    """The number of the last change that the reader has."""

    since: Annotated[int, Field(ge=0, le=LARGEST_ID)] = 0
    limit: Annotated[int, Field(ge=1, le=feed.MAX_LIMIT)] = feed.DEFAULT_LIMIT


class LineageParameters(Parameters):
    """The name of an item, or its id as recall shows it."""

    id: str


class Content(BaseModel):
    """One entry of a resource."""

    model_config = ConfigDict(from_attributes=True)


class Insight(Content):
    """Knowledge condensed from dialogue."""

    id: int
    content: str
    fidelity_score: float
    created_at: datetime
    source_ids: list[int]
    metadata: dict[str, Any]
    score: float | None = Field(None, exclude_if=lambda score: score is None)


class WorkingItem(Content):
    """Something to keep in mind."""

    id: int
    content: str
    importance: float
    last_accessed: datetime
    created_at: datetime


class Episode(Content):
    """A lesson."""

    id: int
    query: str
    reward: float
    reflection: str
    similarity: float
    created_at: datetime


class RawDialogue(Content):
    """What somebody said."""

    id: int
    session_id: str
    speaker: str
    content: str
    timestamp: datetime
    metadata: Any


class StaleItem(Content):
    """Something that left working memory."""

    id: int
    original_content: str
    importance: float
    reason: str
    archived_at: datetime


Reader = Callable[[Caller, Any], Awaitable[Sequence[BaseModel]]]


@dataclass(frozen=True, slots=True)
class MemoryResource:
    """An address, the parameters it takes, and what is read there."""

    uri: str
    title: str
    description: str
    parameters: type[Parameters]
    contents: Reader
    kinds: frozenset[str] | None
    """The kinds of the feed that it shows, for those who subscribe to it; None for all."""
    bare: bool = False
    """Whether the one thing that it shows stands alone, without the envelope of the cognitive-memory contract."""

    def plain(self) -> Resource:
        """As `resources/list` shows it."""
        return Resource(uri=self.uri, name=self._name, title=self.title, description=self.description, mime_type=JSON)

    def template(self) -> ResourceTemplate:
        """As `resources/templates/list` shows it."""
        return ResourceTemplate(
            uri_template=f"{self.uri}{{?{','.join(self.parameters.model_fields)}}}",
            name=self._name,
            title=self.title,
            description=self.description,
            mime_type=JSON,
        )

    async def read(self, caller: Caller, uri: str, query: str) -> ReadResourceContents:
        """The contract's envelope as JSON; `query` is what stands after the question mark of `uri`."""
        try:
            contents = await self.contents(caller, self._parsed(query))
        except RecollectError as problem:
            raise refused(uri, self.uri, errors.refusal(problem)) from problem
        except Exception as problem:
            _log.exception("Resource %s failed unexpectedly", self.uri)
            raise refused(uri, self.uri, errors.CRASH) from problem
        entries = [content.model_dump(mode="json") for content in contents]
        if self.bare:
            return ReadResourceContents(json.dumps(entries[0], ensure_ascii=False, indent=2), JSON)
        envelope = {"resource": self.uri, "uri": uri, "mimeType": JSON, "contents": entries}
        degraded = contents.degraded if isinstance(contents, Results) else None
        return ReadResourceContents(json.dumps(envelope, ensure_ascii=False), JSON, meta(degraded))

    @property
    def _name(self) -> str:
        return self.uri.removeprefix("memory://")

    def _parsed(self, query: str) -> Parameters:
        """The parameters of an address, decoded; unlike `parse_qsl` it says which one cannot be read."""
        values: dict[str, str] = {}
        for field in filter(None, query.split("&")):
            name, _, value = field.partition("=")
            if name in values:
                raise Invalid(f"{name} is given more than once: pass it once")
            try:
                values[name] = unquote_plus(value, errors="strict")
            except UnicodeDecodeError as problem:
                raise Invalid(f"{name} is not valid UTF-8 after percent-decoding") from problem
        try:
            return self.parameters.model_validate_strings(values)
        except ValidationError as problem:
            raise Invalid(errors.bad_arguments(problem, input_schema(self.parameters)).details) from None


def refused(uri: str, resource: str, refusal: errors.Refusal) -> MCPError:
    """An error of the contract, which calls an address with bad parameters one that is not found."""
    is_wrong = refusal.error in (errors.BAD_PARAMETER, errors.NOT_FOUND)
    told = errors.Refusal(errors.NOT_FOUND, refusal.details) if is_wrong else refusal
    data = {"uri": uri, **errors.error_object(resource, told)}
    return MCPError(INVALID_PARAMS if is_wrong else INTERNAL_ERROR, told.details, data)


async def _changes(caller: Caller, wanted: ChangeParameters) -> list[Change]:
    return ChangesPage.of(await caller.engine.feed.page(caller.namespace, wanted.since, wanted.limit)).changes


async def _knowledge_graph(caller: Caller, wanted: Parameters) -> list[KnowledgeGraph]:
    return [KnowledgeGraph.of(await caller.engine.entities.read(caller.namespace))]


async def _lineage(caller: Caller, wanted: LineageParameters) -> list[ItemLineage]:
    return [ItemLineage.of(await caller.engine.lineage.of(caller.namespace, wanted.id))]


async def _insights(caller: Caller, wanted: InsightParameters) -> Results[Insight]:
    after, before = wanted.created_after, wanted.created_before
    chosen = cognition.InsightFilter(
        wanted.top_k,
        wanted.fidelity_min,
        None if after is None else _first_moment(_day(after, "created_after")),
        None if before is None else _last_moment(_day(before, "created_before")),
        moment(wanted.as_of, "as_of"),
    )
    if wanted.query is None:
        newest = await caller.engine.cognition.newest_insights(caller.namespace, chosen)
        return Results(_insight(each, None) for each in newest)
    found = await caller.engine.cognition.insights(caller.namespace, wanted.query, chosen)
    return Results((_insight(each.insight, each.score) for each in found), found.degraded)


def _insight(insight: insights.Insight, score: float | None) -> Insight:
    return Insight(
        id=insight.id,
        content=insight.content,
        fidelity_score=insight.fidelity,
        created_at=insight.created_at,
        source_ids=insight.source_ids,
        metadata=insight.metadata,
        score=score,
    )


async def _working(caller: Caller, wanted: WorkingParameters) -> list[WorkingItem]:
    found = await caller.engine.cognition.working(caller.namespace, moment(wanted.as_of, "as_of"))
    return [WorkingItem.model_validate(item) for item in found]


async def _episodes(caller: Caller, wanted: EpisodeParameters) -> Results[Episode]:
    found = await caller.engine.cognition.similar_episodes(
        caller.namespace,
        wanted.query,
        wanted.top_k,
        wanted.min_similarity,
        wanted.reward_min,
        wanted.days_back,
        moment(wanted.as_of, "as_of"),
    )
    entries = (
        Episode(
            id=each.episode.id,
            query=each.episode.query,
            reward=each.episode.reward,
            reflection=each.episode.reflection,
            similarity=each.similarity,
            created_at=each.episode.created_at,
        )
        for each in found
    )
    return Results(entries, found.degraded)


async def _raw(caller: Caller, wanted: RawParameters) -> list[RawDialogue]:
    start = end = None
    if wanted.date_range is not None:
        first, comma, last = wanted.date_range.partition(",")
        if not comma:
            raise Invalid(f"date_range must be two dates, YYYY-MM-DD,YYYY-MM-DD, not {wanted.date_range!r}")
        first_day, last_day = _day(first, "date_range"), _day(last, "date_range")
        if last_day < first_day:
            raise Invalid(f"date_range ends before it starts: {last_day} is before {first_day}")
        start, end = _first_moment(first_day), _last_moment(last_day)
    found = await caller.engine.cognition.raw(
        caller.namespace,
        wanted.session_id,
        start,
        end,
        wanted.speaker,
        wanted.limit,
        wanted.order,
        moment(wanted.as_of, "as_of"),
    )
    return [
        RawDialogue(
            id=message.seq,
            session_id=message.session_id,
            speaker=message.speaker or message.role,
            content=message.content,
            timestamp=message.created_at,
            metadata=message.metadata,
        )
        for message in found
    ]


async def _stale(caller: Caller, wanted: StaleParameters) -> list[StaleItem]:
    found = await caller.engine.cognition.stale(
        caller.namespace,
        wanted.reason,
        wanted.days_back,
        wanted.importance_min,
        wanted.limit,
        moment(wanted.as_of, "as_of"),
    )
    return [StaleItem.model_validate(item) for item in found]


def _day(text: str, name: str) -> date:
    """Read here, because Pydantic would take a bare number as seconds since 1970."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError as problem:
        raise Invalid(f"{name} must be a date, YYYY-MM-DD, not {text!r}") from problem


def _first_moment(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)


def _last_moment(day: date) -> datetime:
    return datetime.combine(day, time.max, UTC)


RESOURCES = (
    MemoryResource(
        "memory://l2-insights",
        "L2 insights",
        "Query L2 Insights database with search and filtering capabilities",
        InsightParameters,
        _insights,
        frozenset({"insight"}),
    ),
    MemoryResource(
        "memory://working-memory",
        "Working memory",
        "Access current Working Memory state (10 items max, LRU + importance)",
        WorkingParameters,
        _working,
        frozenset({"working"}),
    ),
    MemoryResource(
        "memory://episode-memory",
        "Episode memory",
        "Retrieve Episode Memory with similarity-based search for related past experiences",
        EpisodeParameters,
        _episodes,
        frozenset({"episode"}),
    ),
    MemoryResource(
        "memory://l0-raw",
        "L0 raw dialogue",
        "Access raw dialogue transcripts by session or date range",
        RawParameters,
        _raw,
        frozenset({"message", "session"}),
    ),
    MemoryResource(
        "memory://stale-memory",
        "Stale memory",
        "Access archived Working Memory items (evicted items preserved for audit)",
        StaleParameters,
        _stale,
        frozenset({"working", "stale"}),
    ),
)

KNOWLEDGE_GRAPH = MemoryResource(
    "memory://knowledge-graph",
    "Knowledge Graph",
    "The full knowledge graph with all entities and relations",
    Parameters,
    _knowledge_graph,
    frozenset({"node", "edge"}),
    bare=True,
)

CHANGES = MemoryResource(
    "memory://changes",
    "Changes",
    "What happened to memories, in order: pass the number of the last change you have as since",
    ChangeParameters,
    _changes,
    None,
)

LINEAGE = MemoryResource(
    "memory://lineage",
    "Lineage",
    "Where an item comes from: what happened to it, who did that, and its sources",
    LineageParameters,
    _lineage,
    None,
)
