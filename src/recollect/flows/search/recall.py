"""Recall: finds the memories that answer a question, by keyword and semantic search combined."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from recollect import checks, tasks, telemetry
from recollect.checks import Json
from recollect.flows.indexing.namespace_models import NamespaceModels
from recollect.flows.kinds import registry
from recollect.flows.kinds.long_term import MEMORY, PAST_MEMORY
from recollect.flows.search import ranking, relevance
from recollect.flows.search.citations import Citation, Citations, Cited
from recollect.flows.search.nomination import Nominated, Nomination
from recollect.flows.search.ranking import Parts, QuestionTraits, Ranked
from recollect.flows.search.relevance import Floor
from recollect.flows.search.twins import Saying, saying
from recollect.inference.embedding.scale import BUNDLED
from recollect.language import dates, names, questions, words
from recollect.language.tokens import estimate_tokens
from recollect.memory.index.giants import Giant
from recollect.memory.index.search import Lexical, Nominee, Opening, Scope, Search, lexical_question
from recollect.memory.memories import CATEGORIES, Memories, memory_of
from recollect.storage.database import Database, Statements

NOMINEES = 100
MAX_TOP_K = 1000
MAX_HALF_LIFE_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a memory was recalled: the parts of its score, the words it shares, its rank in each leg (from 1)."""

    parts: Parts
    matched_words: tuple[str, ...]
    rank_by_words: int | None
    rank_by_meaning: int | None
    citations: tuple[Citation, ...] = ()
    """Where the words that it shares stand in the whole text of the item that it is a passage of."""
    cited_words: tuple[str, ...] = ()
    """These words, as they are written there."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing recalled, by the passage of it that matched best."""

    kind: str
    id: str
    text: str
    score: float
    relevance: float
    """The chance that it bears on the question, from 0 to 1, calibrated on real conversations."""
    similarity: float
    """From 0 to 1, comparable between questions: the cosine, or the share of the question's words without a vector."""
    at: datetime
    user_id: str
    agent_id: str | None
    session_id: str | None
    role: str | None
    speaker: str | None
    category: str | None
    metadata: Json
    repeats: tuple[str, ...]
    """Ids of duplicates from the same speaker, merged into this result."""
    explanation: Explanation | None


@dataclass(frozen=True, slots=True)
class Recollection:
    """What was recalled, and what the answer could not see yet."""

    memories: list[Memory]
    pending: int
    """Passages of the user, or of the namespace, that are not embedded yet: only keyword search finds them."""
    answered: bool
    """Whether the memory answers the question: a result reaches `min_relevance`, or else the evidence is enough."""
    degraded: str | None = None
    """Why only keyword search was used: no embedding model, or its provider failed. None if semantic search ran."""

    @property
    def by_meaning(self) -> bool:
        """Whether semantic search ran, too."""
        return self.degraded is None


@dataclass(frozen=True, slots=True)
class _Wanted:
    top_k: int
    token_budget: int | None = None
    explain: bool = False
    fold: bool = True
    nominees: int = NOMINEES
    min_relevance: Floor | None = None
    now: datetime | None = None
    half_life_days: float | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    plain: str
    terms: tuple[words.QueryTerm, ...]
    words: Lexical
    traits: QuestionTraits
    opening: Opening


class Recall:
    """Reads passages, and pins if scores are to decay; every kind of memory is found the same way."""

    def __init__(
        self,
        database: Database,
        search: Search,
        nomination: Nomination,
        namespace_models: NamespaceModels,
        citations: Citations,
        memories: Memories,
    ) -> None:
        self._database = database
        self._search = search
        self._nomination = nomination
        self._namespace_models = namespace_models
        self._citations = citations
        self._memories = memories

    @telemetry.memory_operation("search_memory", lambda found: len(found.memories))
    async def recall(
        self,
        namespace: str,
        question: str,
        scope: Scope | None = None,
        *,
        top_k: int = 10,
        token_budget: int | None = None,
        explain: bool = False,
        fold: bool = True,
        nominees: int = NOMINEES,
        min_relevance: Floor | None = None,
        now: datetime | None = None,
        half_life_days: float | None = None,
    ) -> Recollection:
        """The memories that answer a question, the best first, within a number and a budget of tokens.

        Results below `min_relevance` are left out; with "default", all of them if the memory does not answer.
        `now` is what "yesterday" in the question counts from. With `half_life_days`, the score of an item halves each
        time it gets so many days older; relevance does not, and pinned memories do not age.
        Items that say the same are folded into one, unless the caller wants each; `nominees` are items of each leg.
        Raises NotSearched if keyword search finds nothing and semantic search cannot run.
        """
        wanted = _Wanted(top_k, token_budget, explain, fold, max(nominees, top_k), min_relevance, now, half_life_days)
        (found,) = await self._in_each(namespace, question, [scope or Scope()], wanted)
        return found

    @telemetry.memory_operation("search_memory", lambda found: sum(len(each.memories) for each in found))
    async def in_each(
        self,
        namespace: str,
        question: str,
        scopes: Sequence[Scope],
        *,
        top_k: int = 10,
        min_relevance: Floor | None = None,
    ) -> list[Recollection]:
        """The same in several scopes of one owner; the question is embedded once."""
        return await self._in_each(namespace, question, scopes, _Wanted(top_k, min_relevance=min_relevance))

    async def _in_each(
        self, namespace: str, question: str, scopes: Sequence[Scope], wanted: _Wanted
    ) -> list[Recollection]:
        for scope in scopes:
            _check(question, scope, wanted)
        if not scopes:
            return []
        scopes = list(map(_with_past_versions, scopes))
        async with AsyncExitStack() as stack:
            async with self._database.searching(namespace) as db:
                asked = await self._understand(db, question, scopes[0], wanted.now)
                embedding = self._namespace_models.question_for(namespace, asked.opening.model, asked.plain)
                (meaning,) = await stack.enter_async_context(tasks.beside(embedding))
                # The connection has nothing else to do while the question is embedded.
                by_words = [await self._search.by_words(db, scope, asked.words, wanted.nominees) for scope in scopes]
            # Given back by now: a provider may take long, and needs a connection itself to note what it costs.
            query = await meaning
        query.require(any(by_words))
        legs = (Nominated(asked.words, query, ids, []) for ids in by_words)
        answers = (self._answer(namespace, asked, *each, wanted) for each in zip(scopes, legs, strict=True))
        async with tasks.beside(*answers) as running:
            return list(await asyncio.gather(*running))

    async def _understand(self, db: Statements, question: str, scope: Scope, now: datetime | None) -> _Question:
        """Take the names of people out of the question: who said it is a signal of its own, not a matter of words.

        So is when. But "last week" may also be what somebody said: those words only add to a match.
        """
        owner = scope.owner
        # Asked of the past, a question means its own day by "today".
        asked_at = now or min(moment for moment in (datetime.now(UTC), scope.until, scope.as_of) if moment is not None)
        whole = words.query_terms(question)
        may_name = bool(names.title_case_candidates(question))
        opening = await self._search.opening(db, owner, [term.variants for term in whole], with_speakers=may_name)
        people = names.people_named(question, opening.speakers)
        plain = names.without_names(question, people.said)
        terms = whole if plain == question else words.query_terms(plain)
        if not terms:
            plain, terms = question, whole
        variants = [term.variants for term in terms]
        # Passages without an owner have only the keys of the namespace.
        if {term.variants for term in terms} <= {term.variants for term in whole}:
            weighed = lexical_question(db.namespace, owner or None, variants, opening.frequencies)
        else:
            # Without the names the question looks like one in another language.
            weighed = await self._search.lexical(db, owner or None, variants)
        undated = {each.variants for each in words.query_terms(dates.without_relative_dates(plain, asked_at))}
        weighed = weighed.matched_by([term.variants for term in terms if term.variants in undated])
        traits = QuestionTraits(
            now=asked_at,
            length=len(question),
            people=people.speakers,
            dates=tuple(dates.dates_named(question, asked_at)),
            asks_assistant=questions.asks_assistant(question),
            asks_summary=questions.asks_summary(question),
            asks_latest=dates.asks_latest(question),
            is_prompt=questions.is_prompt(question),
        )
        return _Question(plain, tuple(terms), weighed, traits, opening)

    async def _answer(
        self, namespace: str, asked: _Question, scope: Scope, found: Nominated, wanted: _Wanted
    ) -> Recollection:
        meaning, index = found.query.meaning, asked.opening.index if scope.is_whole() else None
        if meaning is not None and index is not None:
            giant = Giant(scope.owner, meaning.model, index.watermark, index.name, index.dimensions)
            near = await self._nomination.of_giant(namespace, giant, scope, meaning, wanted.nominees)
            found = replace(found, by_meaning=near)
        async with self._database.searching(namespace) as db:
            if meaning is not None and index is None:
                near = await self._search.by_meaning(db, scope, meaning, wanted.nominees)
                found = replace(found, by_meaning=near)
            scored = await self._search.score(db, found.passages(), found.words, meaning, scope)
            pinned = frozenset() if wanted.half_life_days is None else await self._pinned(db, scored.nominees)
        if found.query.scale is not BUNDLED:
            scored = scored.rescaled(found.query.scale.as_bundled)
        ranked = ranking.rank(scored.nominees, found.words.bound, scored.around, asked.traits)
        judged = relevance.of(ranked, asked.terms, asked.words, asked.traits)
        # Only now: how likely something bears on the question is not a matter of its age.
        if wanted.half_life_days is not None:
            ranked = ranking.decayed(ranked, wanted.half_life_days, asked.traits.now, pinned)
        folded = _fold(ranked, wanted.top_k) if wanted.fold else [(item, ()) for item in ranked[: wanted.top_k]]
        cited: dict[int, Cited] = {}
        if wanted.explain:
            terms = {variant for term in asked.terms for variant in term.variants}
            cited = await self._citations.of(namespace, [item.best for item, _ in folded], terms, scope.as_of)
        memories = [
            _memory(
                item,
                judged.items[item.best.id],
                repeats,
                _explanation(item, asked, found, cited[item.best.id]) if wanted.explain else None,
            )
            for item, repeats in folded
        ]
        answered = judged.is_answered
        if isinstance(wanted.min_relevance, float | int):
            memories = [memory for memory in memories if memory.relevance >= wanted.min_relevance]
            answered = bool(memories)
        elif wanted.min_relevance == relevance.DEFAULT and not answered:
            memories = []
        shown = _within(memories, wanted.token_budget)
        return Recollection(shown, asked.opening.pending, answered and bool(shown), found.query.degraded)

    async def _pinned(self, db: Statements, nominees: Sequence[Nominee]) -> frozenset[int]:
        """The passages of pinned memories, past versions of them included."""
        shown = ((nominee.id, *_shown(nominee)) for nominee in nominees)
        memories = {passage: UUID(item_id) for passage, kind, item_id in shown if kind == MEMORY}
        pinned = await self._memories.pinned(db, list(memories.values())) if memories else ()
        return frozenset(passage for passage, memory in memories.items() if memory in pinned)


def _check(question: str, scope: Scope, wanted: _Wanted) -> None:
    checks.question(question, "query")
    checks.between(wanted.top_k, 1, MAX_TOP_K, "top_k")
    if wanted.token_budget is not None:
        checks.positive(wanted.token_budget, "token_budget")
    if wanted.min_relevance is not None and wanted.min_relevance != relevance.DEFAULT:
        checks.number_between(wanted.min_relevance, 0, 1, "min_relevance")
    if wanted.half_life_days is not None:
        checks.positive_number(wanted.half_life_days, MAX_HALF_LIFE_DAYS, "half_life_days")
    identifiers = {
        "user_id": scope.owner,
        "agent_id": scope.agent_id,
        "session_id": scope.session_id,
        "exclude_session": scope.exclude_session,
    }
    for name, value in identifiers.items():
        if value is not None:
            checks.identifier(value, name)
    for kind in scope.kinds or ():
        checks.one_of(kind, registry.recalled(), "kind")
    for category in scope.categories or ():
        checks.one_of(category, CATEGORIES, "category")
    if scope.since is not None and scope.until is not None:
        checks.time_range(scope.since, scope.until, ("since", "until"))
    checks.as_of(scope.as_of)


def _with_past_versions(scope: Scope) -> Scope:
    """Asked of the past, a memory may be one of its past versions."""
    if scope.as_of is None or scope.kinds is None or MEMORY not in scope.kinds:
        return scope
    return replace(scope, kinds=(*scope.kinds, PAST_MEMORY))


def _fold(ranked: Sequence[Ranked], limit: int) -> list[tuple[Ranked, tuple[str, ...]]]:
    """The best items; one that says the same as a better one, in the same person's words, goes behind that one."""
    repeats: dict[Saying, list[str]] = {}
    first: list[tuple[Ranked, list[str]]] = []
    for item in ranked:
        said = saying(item.best)
        if said in repeats:
            repeats[said].append(_shown(item.best)[1])
        elif len(first) < limit:
            repeats[said] = []
            first.append((item, repeats[said]))
        else:
            break
    return [(item, tuple(others)) for item, others in first]


def _within(memories: list[Memory], token_budget: int | None) -> list[Memory]:
    """The best memories that fit; one that does not is passed over for the next."""
    if token_budget is None:
        return memories
    kept, left = [], token_budget
    for memory in memories:
        size = estimate_tokens(memory.text)
        if size <= left:
            kept.append(memory)
            left -= size
    return kept


def _explanation(item: Ranked, asked: _Question, found: Nominated, cited: Cited) -> Explanation:
    own = set(words.document_terms(item.best.text))
    return Explanation(
        parts=ranking.parts(item, asked.traits),
        matched_words=tuple(term.word for term in asked.terms if own.intersection(term.variants)),
        rank_by_words=_rank(item.best, found.by_words),
        rank_by_meaning=_rank(item.best, found.by_meaning),
        citations=cited.citations,
        cited_words=cited.words,
    )


def _rank(nominee: Nominee, ids: Sequence[int]) -> int | None:
    return ids.index(nominee.id) + 1 if nominee.id in ids else None


def _shown(nominee: Nominee) -> tuple[str, str]:
    """The kind and the id of an item in answers: a past version goes by the memory that it is of."""
    if nominee.kind == PAST_MEMORY:
        return MEMORY, memory_of(nominee.item_id)
    return nominee.kind, nominee.item_id


def _memory(item: Ranked, chance: float, repeats: tuple[str, ...], explanation: Explanation | None) -> Memory:
    passage = item.best
    kind, item_id = _shown(passage)
    nearness = item.signals.words if passage.cosine is None else passage.cosine
    return Memory(
        kind=kind,
        id=item_id,
        text=passage.text,
        score=item.score,
        relevance=chance,
        similarity=min(max(nearness, 0.0), 1.0),
        at=passage.at,
        user_id=passage.owner,
        agent_id=passage.agent_id,
        session_id=passage.session_id,
        role=passage.role,
        speaker=passage.speaker,
        category=passage.category,
        metadata=None if passage.metadata is None else json.loads(passage.metadata),
        repeats=repeats,
        explanation=explanation,
    )
