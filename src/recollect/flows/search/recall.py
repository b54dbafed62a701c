"""Recall: finds the memories that answer a question, by keyword and semantic search combined."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recollect import checks, tasks, telemetry
from recollect.checks import Json
from recollect.flows.indexing.namespace_models import NamespaceModels, SemanticQuery
from recollect.flows.kinds import registry
from recollect.flows.search import ranking
from recollect.flows.search.nomination import Nominated, Nomination
from recollect.flows.search.ranking import Parts, Ranked
from recollect.flows.search.twins import Saying, saying
from recollect.language import dates, names, words
from recollect.language.tokens import estimate_tokens
from recollect.memory.index.search import Nominee, Scope, Search
from recollect.memory.memories import CATEGORIES
from recollect.storage.database import Database

NOMINEES = 100
MAX_TOP_K = 1000


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a memory was recalled: the parts of its score, the words it shares, its rank in each leg (from 1)."""

    parts: Parts
    matched_words: tuple[str, ...]
    rank_by_words: int | None
    rank_by_meaning: int | None


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing recalled, by the passage of it that matched best."""

    kind: str
    id: str
    text: str
    score: float
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
    """Passages in scope that keyword search finds but that are not embedded yet."""
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


@dataclass(frozen=True, slots=True)
class _Question:
    text: str
    plain: str
    terms: tuple[words.QueryTerm, ...]
    signals: ranking.Signals


_Embedding = asyncio.Future[SemanticQuery]


class Recall:
    """Reads passages only; every kind of memory is found the same way."""

    def __init__(
        self, database: Database, search: Search, nomination: Nomination, namespace_models: NamespaceModels
    ) -> None:
        self._database = database
        self._search = search
        self._nomination = nomination
        self._namespace_models = namespace_models

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
    ) -> Recollection:
        """The memories that answer a question, the best first, within a number and a budget of tokens.

        Items that say the same are folded into one, unless the caller wants each; `nominees` are items of each leg.
        Raises NotSearched if keyword search finds nothing and semantic search cannot run.
        """
        wanted = _Wanted(top_k, token_budget, explain, fold, max(nominees, top_k))
        (found,) = await self._in_each(namespace, question, [scope or Scope()], wanted)
        return found

    @telemetry.memory_operation("search_memory", lambda found: sum(len(each.memories) for each in found))
    async def in_each(
        self, namespace: str, question: str, scopes: Sequence[Scope], *, top_k: int = 10
    ) -> list[Recollection]:
        """The same in several scopes of one owner; the question is embedded once."""
        return await self._in_each(namespace, question, scopes, _Wanted(top_k))

    async def _in_each(
        self, namespace: str, question: str, scopes: Sequence[Scope], wanted: _Wanted
    ) -> list[Recollection]:
        for scope in scopes:
            _check(question, scope, wanted)
        if not scopes:
            return []
        asked = await self._understand(namespace, question, scopes[0].owner)
        # Words are looked up meanwhile, which takes about as long.
        async with tasks.beside(self._namespace_models.question(namespace, asked.plain)) as (meaning,):
            answers = (self._answer(namespace, asked, scope, meaning, wanted) for scope in scopes)
            found = await asyncio.gather(*answers)
            (await meaning).require(any(each.memories for each in found))
            return [replace(each, memories=_within(each.memories, wanted.token_budget)) for each in found]

    async def _answer(
        self, namespace: str, asked: _Question, scope: Scope, meaning: _Embedding, wanted: _Wanted
    ) -> Recollection:
        found = await self._nomination.both(namespace, asked.terms, meaning, scope, wanted.nominees)
        async with self._database.searching(namespace) as db:
            scored = await self._search.score(db, found.passages(), found.words, found.query.meaning)
            around = await self._search.around(
                db,
                ranking.places_around(scored),
                found.words,
                found.query.meaning,
                cosine_if_unknown=ranking.cosine_if_unknown(scored),
                lexical_weight=ranking.WORDS / found.words.bound if found.words.bound else 0.0,
            )
            pending = await self._search.pending(db, scope.owner)
        places = {(message.session_id, message.position): message for message in around}
        ranked = ranking.rank(scored, found.words.bound, places, asked.signals)
        folded = _fold(ranked, wanted.top_k) if wanted.fold else [(item, ()) for item in ranked[: wanted.top_k]]
        memories = [
            _memory(item, repeats, _explanation(item, asked, found) if wanted.explain else None)
            for item, repeats in folded
        ]
        return Recollection(memories, pending, found.query.degraded)

    async def _understand(self, namespace: str, question: str, owner: str | None) -> _Question:
        """Take the names of people out of the question: who said it is a signal of its own, not a matter of words."""
        speakers: set[str] = set()
        if names.title_case_candidates(question):
            async with self._database.searching(namespace) as db:
                speakers = await self._search.speakers(db, owner)
        people = names.people_named(question, speakers)
        plain = names.without_names(question, people.said)
        terms = words.query_terms(plain)
        if not terms:
            plain, terms = question, words.query_terms(question)
        signals = ranking.Signals(people.speakers, tuple(dates.dates_named(question)), names.asks_assistant(question))
        return _Question(question, plain, tuple(terms), signals)


def _check(question: str, scope: Scope, wanted: _Wanted) -> None:
    checks.question(question, "query")
    checks.between(wanted.top_k, 1, MAX_TOP_K, "top_k")
    if wanted.token_budget is not None:
        checks.positive(wanted.token_budget, "token_budget")
    for value, name in ((scope.owner, "user_id"), (scope.agent_id, "agent_id"), (scope.session_id, "session_id")):
        if value is not None:
            checks.identifier(value, name)
    for kind in scope.kinds or ():
        checks.one_of(kind, registry.recalled(), "kind")
    for category in scope.categories or ():
        checks.one_of(category, CATEGORIES, "category")
    if scope.since is not None and scope.until is not None:
        checks.time_range(scope.since, scope.until, ("since", "until"))


def _fold(ranked: Sequence[Ranked], limit: int) -> list[tuple[Ranked, tuple[str, ...]]]:
    """The best items; one that says the same as a better one, in the same person's words, goes behind that one."""
    repeats: dict[Saying, list[str]] = {}
    first: list[tuple[Ranked, list[str]]] = []
    for item in ranked:
        said = saying(item.best)
        if said in repeats:
            repeats[said].append(item.best.item_id)
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


def _explanation(item: Ranked, asked: _Question, found: Nominated) -> Explanation:
    own = set(words.document_terms(item.best.text))
    return Explanation(
        parts=item.parts,
        matched_words=tuple(term.word for term in asked.terms if own.intersection(term.variants)),
        rank_by_words=_rank(item.best, found.by_words),
        rank_by_meaning=_rank(item.best, found.by_meaning),
    )


def _rank(nominee: Nominee, ids: Sequence[int]) -> int | None:
    return ids.index(nominee.id) + 1 if nominee.id in ids else None


def _similarity(item: Ranked) -> float:
    nearness = item.best.cosine if item.best.cosine is not None else item.parts.words / ranking.WORDS
    return min(max(nearness, 0.0), 1.0)


def _memory(item: Ranked, repeats: tuple[str, ...], explanation: Explanation | None) -> Memory:
    passage = item.best
    return Memory(
        kind=passage.kind,
        id=passage.item_id,
        text=passage.text,
        score=item.parts.total,
        similarity=_similarity(item),
        at=passage.at,
        user_id=passage.owner,
        agent_id=passage.agent_id,
        session_id=passage.session_id,
        role=passage.role,
        speaker=passage.speaker,
        category=passage.category,
        metadata=passage.metadata,
        repeats=repeats,
        explanation=explanation,
    )
