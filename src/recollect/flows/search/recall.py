"""Recall: finds the memories that answer a question, by keyword and semantic search combined."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from recollect import checks, origin, tasks, telemetry, trust
from recollect.errors import NotFound
from recollect.flows.accounts.activity import Activity, counted
from recollect.flows.indexing.namespace_models import NamespaceModels, SemanticQuery
from recollect.flows.kinds import registry
from recollect.flows.kinds.long_term import MEMORY, PAST_MEMORY
from recollect.flows.search import ranking, relevance
from recollect.flows.search.citations import Citations, in_passage
from recollect.flows.search.nomination import Nominated, Nomination
from recollect.flows.search.ranking import QuestionTraits, Ranked
from recollect.flows.search.recollection import (
    BEYOND,
    NOMINEES,
    Explanation,
    Inspection,
    Recollection,
    Wanted,
    degraded,
    explained,
    folded,
    kind_and_id,
    recalled,
    sifted,
)
from recollect.flows.search.relevance import Floor
from recollect.flows.search.understanding import Queries, Reading, Understanding, moment_of, traits_of
from recollect.inference.embedding.scale import BUNDLED
from recollect.memory.index.giants import Giant
from recollect.memory.index.search import Nominee, Scope, Scored, Search
from recollect.memory.memories import CATEGORIES, Memories
from recollect.storage.database import Database, Statements

MAX_TOP_K = 1000
MAX_HALF_LIFE_DAYS = 36_500
MAX_NAMESPACES = 8
"""In one recall; each takes a connection of its own."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A question in one namespace, with its keyword results, before semantic search."""

    namespace: str
    reading: Reading
    query: SemanticQuery
    by_words: list[list[int]]
    """For each scope."""


@dataclass(frozen=True, slots=True)
class _NamespaceResults:
    """The scored results of one namespace in one scope."""

    reading: Reading
    nominated: Nominated
    scored: Scored
    pinned: frozenset[tuple[str, int]]


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
        activity: Activity,
    ) -> None:
        self._database = database
        self._search = search
        self._understanding = Understanding(search)
        self._nomination = nomination
        self._namespace_models = namespace_models
        self._citations = citations
        self._memories = memories
        self.activity = activity

    @telemetry.memory_operation("search_memory", lambda found: len(found.memories))
    @counted(lambda found: found.degraded)
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
        namespaces: Sequence[str] | None = None,
    ) -> Recollection:
        """The memories that answer a question, the best first, within a number and a budget of tokens.

        Results below `min_relevance` are left out; with "default", all of them if the memory does not answer.
        `now` is what "yesterday" in the question counts from. With `half_life_days`, the score of an item halves each
        time it gets so many days older; relevance does not, and pinned memories do not age.
        Items that say the same are folded into one, unless the caller wants each; `nominees` are items of each leg.
        With `namespaces`, these are asked together in place of the caller's own, and each result is labelled.
        Raises NotSearched if keyword search finds nothing and semantic search cannot run.
        """
        wanted = Wanted(top_k, token_budget, explain, fold, max(nominees, top_k), min_relevance, now, half_life_days)
        (inspection,) = await self._ask(namespace, namespaces, question, scope or Scope(), wanted)
        return inspection.found

    @telemetry.memory_operation("search_memory", lambda inspection: len(inspection.found.memories))
    async def inspect(
        self,
        namespace: str,
        question: str,
        scope: Scope,
        *,
        top_k: int = 10,
        token_budget: int | None = None,
        min_relevance: Floor | None = None,
        now: datetime | None = None,
        half_life_days: float | None = None,
        namespaces: Sequence[str] | None = None,
    ) -> Inspection:
        """What `recall` answers to the same, explained, and what it leaves out."""
        wanted = Wanted(
            top_k,
            token_budget,
            explain=True,
            nominees=max(NOMINEES, top_k),
            min_relevance=min_relevance,
            now=now,
            half_life_days=half_life_days,
            beyond=BEYOND,
        )
        (inspection,) = await self._ask(namespace, namespaces, question, scope, wanted)
        return inspection

    @telemetry.memory_operation("search_memory", lambda found: sum(len(each.memories) for each in found))
    @counted(lambda found: any(each.degraded for each in found))
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
        wanted = Wanted(top_k, min_relevance=min_relevance)
        return [each.found for each in await self._in_each([namespace], question, scopes, wanted)]

    async def _ask(
        self, own: str, namespaces: Sequence[str] | None, question: str, scope: Scope, wanted: Wanted
    ) -> list[Inspection]:
        """Ask the caller's namespace, or those that the caller names.

        One in which nothing is stored is an error, because it is probably misspelt, unless somebody has granted it.
        """
        if namespaces is None:
            return await self._in_each([own], question, [scope], wanted)
        named = list(dict.fromkeys(map(checks.namespace, namespaces)))
        checks.between(len(named), 1, MAX_NAMESPACES, "the number of namespaces")
        for each in named:
            origin.require("read", each)
            if each != own and origin.current().reach is None:
                async with self._database.reading(each) as db:
                    if not await self._search.is_filled(db):
                        raise NotFound(f"Namespace {each} has nothing stored: check its name")
        return await self._in_each(named, question, [scope], replace(wanted, labelled=True))

    async def _in_each(
        self, namespaces: Sequence[str], question: str, scopes: Sequence[Scope], wanted: Wanted
    ) -> list[Inspection]:
        for scope in scopes:
            _check(question, scope, wanted)
        if not scopes:
            return []
        scopes = [_with_past_versions(_within_limits(scope)) for scope in scopes]
        asked_at = moment_of(scopes[0], wanted.now)
        async with AsyncExitStack() as stack:
            queries = Queries(self._namespace_models, stack)
            asked = await tasks.all_of(
                *(self._prepare(each, question, scopes, asked_at, wanted.nominees, queries) for each in namespaces)
            )
        traits = traits_of(question, asked_at, [each.reading for each in asked])
        answers = (self._answer(asked, number, scope, traits, wanted) for number, scope in enumerate(scopes))
        inspections = await tasks.all_of(*answers)
        for each in asked:
            each.query.require(any(inspection.candidates for inspection in inspections))
        return inspections

    async def _prepare(
        self,
        namespace: str,
        question: str,
        scopes: Sequence[Scope],
        asked_at: datetime,
        nominees: int,
        queries: Queries,
    ) -> _Prepared:
        """Read the question in one namespace, and run keyword search in each scope."""
        async with self._database.searching(namespace) as db:
            reading = await self._understanding.of(db, question, scopes[0], asked_at)
            embedding = await queries.of(namespace, reading)
            # The connection has nothing else to do while the question is embedded.
            by_words = [await self._search.by_words(db, scope, reading.words, nominees) for scope in scopes]
        # Given back by now: a provider may take long, and needs a connection itself to note what it costs.
        return _Prepared(namespace, reading, await embedding, by_words)

    async def _search_in(
        self, prepared: _Prepared, number: int, scope: Scope, bound: float, wanted: Wanted
    ) -> _NamespaceResults:
        """Add semantic search and score everything found, relative to a bound that all namespaces share."""
        namespace, meaning, words = prepared.namespace, prepared.query.meaning, prepared.reading.words
        found = Nominated(words, prepared.query, prepared.by_words[number], [])
        index = prepared.reading.opening.index if scope.is_whole() else None
        if meaning is not None and index is not None:
            giant = Giant(scope.owner, meaning.model, index.watermark, index.name, index.dimensions)
            near = await self._nomination.of_giant(namespace, giant, scope, meaning, wanted.nominees)
            found = replace(found, by_meaning=near)
        async with self._database.searching(namespace) as db:
            if meaning is not None and index is None:
                near = await self._search.by_meaning(db, scope, meaning, wanted.nominees)
                found = replace(found, by_meaning=near)
            scored = await self._search.score(db, found.passages(), words, meaning, scope)
            pinned = frozenset() if wanted.half_life_days is None else await self._pinned(db, scored.nominees)
        if prepared.query.scale is not BUNDLED:
            scored = scored.rescaled(prepared.query.scale.as_bundled)
        if words.bound and words.bound != bound:
            scored = scored.reweighed(bound / words.bound)
        return _NamespaceResults(prepared.reading, found, scored, pinned)

    async def _answer(
        self, asked: Sequence[_Prepared], number: int, scope: Scope, traits: QuestionTraits, wanted: Wanted
    ) -> Inspection:
        """Rank the results of all namespaces together. Their scores share a bound, so they can be compared."""
        bound = asked[0].reading.words.bound
        everywhere = await tasks.all_of(*(self._search_in(each, number, scope, bound, wanted) for each in asked))
        found = {prepared.namespace: each for prepared, each in zip(asked, everywhere, strict=True)}
        nominees = [nominee for each in everywhere for nominee in each.scored.nominees]
        around = [passage for each in everywhere for passage in each.scored.around]
        ranked = ranking.rank(nominees, bound, around, traits)
        judged = relevance.of(ranked, {prepared.namespace: prepared.reading for prepared in asked}, traits)
        # Only now: how likely something bears on the question is not a matter of its age.
        if wanted.half_life_days is not None:
            pinned = frozenset().union(*(each.pinned for each in everywhere))
            ranked = ranking.decayed(ranked, wanted.half_life_days, traits.now, pinned)
        if wanted.fold:
            best = folded(ranked, wanted.top_k, wanted.beyond)
        else:
            best = [(item, ()) for item in ranked[: wanted.top_k + wanted.beyond]]
        why: dict[tuple[str, int], Explanation] = {}
        for prepared in asked if wanted.explain else ():
            there = [item for item, _ in best if item.best.namespace == prepared.namespace]
            why |= await self._explained(prepared.namespace, there, found[prepared.namespace], scope, traits, wanted)
        memories = [
            recalled(item, judged.items[item.best.key], repeats, why.get(item.best.key), labelled=wanted.labelled)
            for item, repeats in best
        ]
        candidates = sifted(memories, judged.is_answered, wanted)
        shown = [candidate.memory for candidate in candidates if candidate.fate == "shown"]
        for memory in memories if wanted.beyond else shown:
            origin.touch(memory.namespace or asked[0].namespace, origin.READ, memory.kind, [memory.id])
        answered = bool(shown) and (judged.is_answered or isinstance(wanted.min_relevance, float | int))
        pending = sum(prepared.reading.opening.pending for prepared in asked)
        reasons = {prepared.namespace: prepared.query.degraded for prepared in asked}
        return Inspection(Recollection(shown, pending, answered, degraded(reasons)), candidates)

    async def _explained(
        self,
        namespace: str,
        items: Sequence[Ranked],
        found: _NamespaceResults,
        scope: Scope,
        traits: QuestionTraits,
        wanted: Wanted,
    ) -> dict[tuple[str, int], Explanation]:
        """Why items of one namespace are ranked where they are."""
        terms = {variant for term in found.reading.terms for variant in term.variants}
        passages = [item.best for item in items]
        if wanted.beyond:
            cited = {passage.key: in_passage(passage.text, terms) for passage in passages}
        else:
            cited = await self._citations.of(namespace, passages, terms, scope.as_of)
        return {
            item.best.key: explained(item, traits, found.reading, found.nominated, cited[item.best.key])
            for item in items
        }

    async def _pinned(self, db: Statements, nominees: Sequence[Nominee]) -> frozenset[tuple[str, int]]:
        """The passages of pinned memories, past versions of them included."""
        shown = ((nominee.key, *kind_and_id(nominee)) for nominee in nominees)
        memories = {passage: UUID(item_id) for passage, kind, item_id in shown if kind == MEMORY}
        pinned = await self._memories.pinned(db, list(memories.values())) if memories else ()
        return frozenset(passage for passage, memory in memories.items() if memory in pinned)


def _check(question: str, scope: Scope, wanted: Wanted) -> None:
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
    for each in scope.trusts or ():
        checks.one_of(each, trust.CLASSES, "trust")
    if scope.since is not None and scope.until is not None:
        checks.time_range(scope.since, scope.until, ("since", "until"))
    checks.as_of(scope.as_of)


def _within_limits(scope: Scope) -> Scope:
    owner, agent_id = origin.narrowed(scope.owner, scope.agent_id)
    return replace(scope, owner=owner, agent_id=agent_id)


def _with_past_versions(scope: Scope) -> Scope:
    """Asked of the past, a memory may be one of its past versions."""
    if scope.as_of is None or scope.kinds is None or MEMORY not in scope.kinds:
        return scope
    return replace(scope, kinds=(*scope.kinds, PAST_MEMORY))
