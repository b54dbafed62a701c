"""Cognition: dialogue, insights, working memory and episodes, as the cognitive contract has them."""

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from recollect import checks, origin, tasks, telemetry, trust
from recollect.errors import Invalid, NotFound
from recollect.flows.accounts.activity import Activity, counted
from recollect.flows.defence.masking import MasksSecrets, masks
from recollect.flows.indexing.passage_writer import EmbeddingStatus, PassageWriter
from recollect.flows.remember import Remember, Turn
from recollect.flows.results import Results
from recollect.flows.search.fusion import Weights, fuse
from recollect.flows.search.item_search import ItemSearch
from recollect.language.content import density, likeness
from recollect.memory.changes import Change, Changes
from recollect.memory.cognitive.episodes import Episode, Episodes, SimilarEpisode
from recollect.memory.cognitive.insights import Insight, Insights
from recollect.memory.cognitive.working import REASONS, StaleItem, Working, WorkingItem, WorkingUpdate
from recollect.memory.index.passages import Source, analyse
from recollect.memory.index.search import Scope
from recollect.memory.log import Log, Message, NewMessage, RawFilter
from recollect.quotas import ANONYMOUS
from recollect.storage.database import Database
from recollect.trust import Trust

ROLES = ("user", "assistant", "system")
ORDERS = ("asc", "desc")

LOW_GROUNDING = 0.25
MAX_SOURCES = 1000
MAX_TOP_K = 100
MAX_LISTED = 1000
MAX_DAYS_BACK = 36_500

# Items that each leg brings; the contract allows 100 results.
NOMINEES = 200
# The same where results are still to be filtered by what passages do not know.
NOMINEES_TO_FILTER = 1000

SIMILARITY_BY_WORDS = "`similarity` is the share of words in common here"

_INSIGHTS = Scope(kinds=("insight",))
_EPISODES = Scope(kinds=("episode",))


@dataclass(frozen=True, slots=True)
class Compressed:
    """A stored insight, and whether it is embedded already; `degraded` says why it could not be."""

    insight: Insight
    embedding_status: EmbeddingStatus
    degraded: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedEpisode:
    """A stored episode, and whether it is embedded already; `degraded` says why it could not be."""

    episode: Episode
    embedding_status: EmbeddingStatus
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class InsightFilter:
    """Which insights, and how many; both ends of the range belong to it, and with `as_of` nothing later does."""

    top_k: int = 50
    fidelity_min: float | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    as_of: datetime | None = None

    def checked(self) -> tuple[int, float | None, datetime | None, datetime | None]:
        """The same as a search takes it."""
        checks.between(self.top_k, 1, MAX_LISTED, "top_k")
        if self.fidelity_min is not None:
            checks.number_between(self.fidelity_min, 0.0, 1.0, "fidelity_min")
        since, until = _range(self.created_after, "created_after", self.created_before, "created_before")
        return self.top_k, self.fidelity_min, since, _earlier(until, checks.as_of(self.as_of))


@dataclass(frozen=True, slots=True)
class FoundInsight:
    """An insight and its score; 1 is the first of both lists."""

    insight: Insight
    score: float


@dataclass(frozen=True, slots=True)
class HybridResults:
    """The best insights, and how many each of the two searches brought."""

    results: list[FoundInsight]
    semantic_results_count: int
    keyword_results_count: int
    degraded: str | None = None
    query_dimensions: int = 0


class Cognition(MasksSecrets):
    """What an agent keeps: what was said, what it means, what matters now, and what was learnt."""

    def __init__(
        self,
        database: Database,
        remember: Remember,
        log: Log,
        insights: Insights,
        working: Working,
        episodes: Episodes,
        changes: Changes,
        passage_writer: PassageWriter,
        items: ItemSearch,
        activity: Activity,
        low_fidelity: float,
    ) -> None:
        self._database = database
        self._remember = remember
        self._log = log
        self._insights = insights
        self._working = working
        self._episodes = episodes
        self._changes = changes
        self._passage_writer = passage_writer
        self._items = items
        self.activity = activity
        self._low_fidelity = low_fidelity

    async def store_dialogue(
        self, namespace: str, session_id: str, speaker: str, content: str, metadata: Mapping[str, Any] | None = None
    ) -> Message:
        """Log what a speaker said; the session begins with its first message. `seq` is the contract's id."""
        checks.identifier(session_id, "session_id")
        checks.short_name(speaker, "speaker")
        role = speaker.lower() if speaker.lower() in ROLES else "user"
        new = NewMessage(role, checks.text(content, "content"), checks.metadata(metadata), speaker)
        (message,) = await self._remember.turn(namespace, Turn(session_id, (new,), owner_if_new=ANONYMOUS))
        return message

    async def raw(
        self,
        namespace: str,
        session_id: str | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        speaker: str | None = None,
        limit: int = 100,
        order: str = "desc",
        as_of: datetime | None = None,
    ) -> list[Message]:
        """Messages in the order of time; both ends of the range belong to it, and with `as_of` nothing later does."""
        if session_id is not None:
            checks.identifier(session_id, "session_id")
        if speaker is not None:
            checks.short_name(speaker, "speaker")
        checks.between(limit, 1, MAX_LISTED, "limit")
        checks.one_of(order, ORDERS, "order")
        since, until = _range(start, "start", end, "end")
        wanted = RawFilter(session_id, since, _earlier(until, checks.as_of(as_of)), speaker)
        async with self._database.searching(namespace) as db:
            return await self._log.raw(db, wanted, limit, newest_first=order == "desc")

    @telemetry.memory_operation("create_memory")
    @masks("content")
    async def compress(self, namespace: str, content: str, source_ids: Sequence[int]) -> Compressed:
        """Store an insight that messages were condensed to, with how dense it is and how near to them, if to any."""
        checks.text(content, "content")
        sources = await self._sources(namespace, source_ids)
        prepared = await self._passage_writer.prepare(namespace, content)
        fidelity = round(await tasks.in_thread(density, content), 4)
        metadata: dict[str, Any] = {"fidelity_warning": fidelity < self._low_fidelity}
        if sources:
            said = [message.content for message in sources.values()]
            grounding = await self._passage_writer.grounding(namespace, content, prepared, said)
            metadata["grounding"] = round(grounding.value, 4)
            if grounding.by == "words":
                metadata["grounding_by"] = "words"
        made_by: Trust = trust.of_item("insight")
        async with self._database.transaction(namespace) as tx:
            # Forgetting them waits for this lock and takes the insight along; if they are already gone, none is stored.
            _refuse_unknown(list(sources), await self._log.keep(tx, list(sources)))
            said_by = await self._log.trusts(tx, [message.id for message in sources.values()])
            inherited = None if (of_all := trust.lowest([made_by, *said_by.values()])) == made_by else of_all
            insight = await self._insights.add(tx, content, list(sources), fidelity, metadata, inherited)
            source = Source("insight", str(insight.id), prepared.excerpts, insight.created_at, trust=inherited)
            await self._passage_writer.add(tx, source, prepared)
            await self._changes.record(tx, [Change("add", "insight", str(insight.id))])
        self._passage_writer.committed(namespace, prepared)
        grounded = insight.metadata.get("grounding", 1.0)
        warnings = (
            *_warning(insight.fidelity, self._low_fidelity, "Low information density for the text's length: fidelity"),
            *_warning(grounded, LOW_GROUNDING, "The text has little in common with its sources: grounding"),
        )
        return Compressed(insight, prepared.embedding_status, prepared.degraded, warnings)

    @telemetry.memory_operation("search_memory", lambda found: len(found.results))
    @counted(lambda found: found.degraded)
    async def hybrid_search(
        self,
        namespace: str,
        query_text: str,
        query_embedding: Sequence[float] | None = None,
        top_k: int = 5,
        weights: Weights | None = None,
        as_of: datetime | None = None,
    ) -> HybridResults:
        """Insights by semantic and keyword search, fused by their ranks; without a model, by keyword search only.

        With `as_of`, those that were stored by then.
        """
        weights = weights or Weights()
        checks.question(query_text, "query_text")
        checks.between(top_k, 1, MAX_TOP_K, "top_k")
        weights.check()
        scope = replace(_INSIGHTS, until=checks.as_of(as_of))
        vector = None
        if query_embedding is not None:
            vector = await self._items.given_vector(namespace, query_embedding, "query_embedding")
        ranks = await self._items.both(namespace, query_text, scope, NOMINEES, vector)
        best = fuse(ranks.by_meaning, ranks.by_words, weights)[:top_k]
        ranks.query.require(best)
        async with self._database.reading(namespace) as db:
            found = await self._insights.find(db, [insight_id for insight_id, _ in best])
        results = [FoundInsight(found[insight_id], score) for insight_id, score in best if insight_id in found]
        origin.touch(namespace, origin.READ, "insight", (each.insight.id for each in results))
        asked = ranks.query
        dimensions = 0 if asked.meaning is None else asked.meaning.vector.count(",") + 1
        return HybridResults(results, len(ranks.by_meaning), len(ranks.by_words), asked.degraded, dimensions)

    async def newest_insights(self, namespace: str, wanted: InsightFilter | None = None) -> list[Insight]:
        """The last insights that were stored, the newest first."""
        top_k, fidelity_min, since, until = (wanted or InsightFilter()).checked()
        async with self._database.reading(namespace) as db:
            return await self._insights.newest(db, top_k, fidelity_min, since, until)

    @counted(lambda found: found.degraded)
    async def insights(self, namespace: str, query: str, wanted: InsightFilter | None = None) -> Results[FoundInsight]:
        """Insights that match a query, the best first."""
        top_k, fidelity_min, since, until = (wanted or InsightFilter()).checked()
        checks.question(query, "query")
        scope = replace(_INSIGHTS, since=since, until=until)
        ranks = await self._items.both(namespace, query, scope, NOMINEES_TO_FILTER)
        ranked = fuse(ranks.by_meaning, ranks.by_words, Weights())
        async with self._database.reading(namespace) as db:
            found = await self._insights.find(db, [insight_id for insight_id, _ in ranked], fidelity_min)
        ranks.query.require(found)
        best = [FoundInsight(found[insight_id], score) for insight_id, score in ranked if insight_id in found]
        origin.touch(namespace, origin.READ, "insight", (each.insight.id for each in best[:top_k]))
        return Results(best[:top_k], ranks.query.degraded)

    @telemetry.memory_operation("upsert_memory")
    @masks("content")
    async def update_working(self, namespace: str, content: str, importance: float | None = None) -> WorkingUpdate:
        """Keep something in mind; when ten things are, one of them goes to the archive.

        Without an importance, what is in mind already keeps its own.
        """
        checks.text(content, "content")
        if importance is not None:
            checks.number_between(importance, 0.0, 1.0, "importance")
        async with self._database.transaction(namespace) as tx:
            update = await self._working.update(tx, content, importance)
            source = Source("working", str(update.added_id), analyse(content), datetime.now(UTC))
            await self._passage_writer.screen(tx, source)
            await self._changes.record(tx, _changes(update))
        return update

    async def archive(self, namespace: str, item_id: int) -> int:
        """Take one item out of working memory; returns its id in the archive."""
        if isinstance(item_id, bool) or not isinstance(item_id, int):
            raise Invalid(f"item_id must be a whole number, not {item_id!r}")
        archived = None
        if 0 < item_id <= checks.LARGEST_ID:
            async with self._database.transaction(namespace) as tx:
                archived = await self._working.archive(tx, item_id)
                if archived is not None:
                    await self._changes.record(tx, [_left(item_id, archived)])
        if archived is None:
            raise NotFound(f"Working memory has no item {item_id}")
        return archived

    async def working(self, namespace: str, as_of: datetime | None = None) -> list[WorkingItem]:
        """What is in mind, or was at a moment, the last accessed first."""
        moment = checks.as_of(as_of)
        async with self._database.reading(namespace) as db:
            return await self._working.items(db, moment)

    async def stale(
        self,
        namespace: str,
        reason: str | None = None,
        days_back: int = 30,
        importance_min: float | None = None,
        limit: int = 50,
        as_of: datetime | None = None,
    ) -> list[StaleItem]:
        """What left working memory, or had by a moment, the last archived first."""
        if reason is not None:
            checks.one_of(reason, REASONS, "reason")
        if importance_min is not None:
            checks.number_between(importance_min, 0.0, 1.0, "importance_min")
        checks.between(limit, 1, MAX_LISTED, "limit")
        moment = checks.as_of(as_of)
        since = _since(days_back, moment)
        async with self._database.reading(namespace) as db:
            return await self._working.stale(db, since, moment, reason, importance_min, limit)

    @telemetry.memory_operation("create_memory")
    @masks("query", "reflection")
    async def store_episode(self, namespace: str, query: str, reward: float, reflection: str) -> RecordedEpisode:
        """Store a lesson; it is found by the query that led to it."""
        checks.text(query, "query")
        reward = checks.number_between(reward, -1.0, 1.0, "reward")
        checks.text(reflection, "reflection")
        prepared = await self._passage_writer.prepare(namespace, query)
        # Recall shows the query, which is what it found; the lesson is what its reader wants.
        lesson = json.dumps({"reward": reward, "reflection": reflection})
        async with self._database.transaction(namespace) as tx:
            episode = await self._episodes.add(tx, query, reward, reflection)
            source = Source("episode", str(episode.id), prepared.excerpts, episode.created_at, metadata=lesson)
            await self._passage_writer.add(tx, source, prepared)
            await self._changes.record(tx, [Change("add", "episode", str(episode.id))])
        self._passage_writer.committed(namespace, prepared)
        return RecordedEpisode(episode, prepared.embedding_status, prepared.degraded)

    @telemetry.memory_operation("search_memory", len)
    @counted(lambda found: found.degraded)
    async def similar_episodes(
        self,
        namespace: str,
        query: str,
        top_k: int = 5,
        min_similarity: float = 0.5,
        reward_min: float | None = None,
        days_back: int = 30,
        as_of: datetime | None = None,
    ) -> Results[SimilarEpisode]:
        """Lessons whose query was like this one, the most similar first; without a model by the terms they share.

        With `as_of`, those that were stored by then, and the days count back from there.
        """
        checks.question(query, "query", needs_words=False)
        checks.between(top_k, 1, MAX_TOP_K, "top_k")
        checks.number_between(min_similarity, 0.0, 1.0, "min_similarity")
        if reward_min is not None:
            checks.number_between(reward_min, -1.0, 1.0, "reward_min")
        until = checks.as_of(as_of)
        since = _since(days_back, until)
        asked = await self._items.query(namespace, query)
        meaning = asked.meaning
        if meaning is None:
            near = await self._episodes_by_words(namespace, query, since, until, reward_min)
            best = [each for each in near if each.similarity >= min_similarity][:top_k]
            asked.require(best)
            origin.touch(namespace, origin.READ, "episode", (each.episode.id for each in best))
            return Results(best, f"{SIMILARITY_BY_WORDS}: {asked.degraded}")
        async with self._database.searching(namespace) as db:
            episodes = await self._episodes.similar(
                db,
                meaning.vector,
                meaning.model,
                since=since,
                until=until,
                reward_min=reward_min,
                min_similarity=min_similarity,
                limit=top_k,
            )
        asked = await self._items.with_waiting(namespace, _EPISODES, asked)
        asked.require(episodes)
        return Results(episodes, asked.degraded)

    async def _episodes_by_words(
        self, namespace: str, query: str, since: datetime, until: datetime | None, reward_min: float | None
    ) -> list[SimilarEpisode]:
        """Episodes that share terms with a query, the most alike first."""
        scope = replace(_EPISODES, since=since, until=until)
        ids = await self._items.by_words(namespace, query, scope, NOMINEES_TO_FILTER)
        async with self._database.reading(namespace) as db:
            found = await self._episodes.find(db, ids, since, until, reward_min)
        similar = [SimilarEpisode(episode, likeness(query, episode.query)) for episode in found]
        return sorted(similar, key=lambda each: (-each.similarity, each.episode.id))

    async def _sources(self, namespace: str, source_ids: Sequence[int]) -> dict[int, Message]:
        """The messages that an insight names, in its order, each once."""
        if isinstance(source_ids, str | bytes) or not isinstance(source_ids, Sequence):
            raise Invalid("source_ids must be a list of whole numbers")
        if len(source_ids) > MAX_SOURCES:
            raise Invalid(f"source_ids has {len(source_ids):,} ids, more than the limit of {MAX_SOURCES:,}")
        for source in source_ids:
            if isinstance(source, bool) or not isinstance(source, int):
                raise Invalid(f"source_ids must contain only whole numbers, not {source!r}")
        ids = list(dict.fromkeys(source_ids))
        async with self._database.reading(namespace) as db:
            found = await self._log.by_seq(db, [source for source in ids if 0 < source <= checks.LARGEST_ID])
        _refuse_unknown(ids, found)
        return {source: found[source] for source in ids}


def _changes(update: WorkingUpdate) -> list[Change]:
    """What an update has done to working memory."""
    changes = [Change("update" if update.refreshed else "add", "working", str(update.added_id))]
    if update.evicted_id is not None:
        changes.append(_left(update.evicted_id, update.archived_id))
    return changes


def _left(item_id: int, archived_id: int | None) -> Change:
    return Change("delete", "working", str(item_id), {"stale_id": archived_id})


def _warning(value: float, least: float, sentence: str) -> tuple[str, ...]:
    return (f"{sentence} {value:.2f}, below {least:g}",) if value < least else ()


def _refuse_unknown(ids: Sequence[int], found: Container[int]) -> None:
    if unknown := [source for source in ids if source not in found]:
        named = ", ".join(map(str, unknown[:10])) + (", ..." if len(unknown) > 10 else "")
        raise NotFound(f"source_ids contains unknown dialogue ids: {named}")


def _range(
    start: datetime | None, start_name: str, end: datetime | None, end_name: str
) -> tuple[datetime | None, datetime | None]:
    first = None if start is None else checks.utc(start, start_name)
    last = None if end is None else checks.utc(end, end_name)
    if first is not None and last is not None and last < first:
        raise Invalid(f"{end_name} {last.isoformat()} is before {start_name} {first.isoformat()}: swap them")
    return first, last


def _earlier(until: datetime | None, as_of: datetime | None) -> datetime | None:
    """The end of a range of time that must not go beyond a moment."""
    return min((each for each in (until, as_of) if each is not None), default=None)


def _since(days_back: int, until: datetime | None) -> datetime:
    """So many days before a moment, or before now."""
    checks.between(days_back, 1, MAX_DAYS_BACK, "days_back")
    last = until or datetime.now(UTC)
    return last - min(timedelta(days=days_back), last - datetime.min.replace(tzinfo=UTC))
