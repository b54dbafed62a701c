"""Understanding: reads a question in the light of one namespace, its words and the people who speak there."""

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime

from recollect import origin, tasks
from recollect.flows.indexing.namespace_models import NamespaceModels, SemanticQuery
from recollect.flows.search.ranking import QuestionTraits
from recollect.language import dates, names, questions, words
from recollect.memory.index.search import Lexical, Opening, Scope, Search, lexical_question
from recollect.storage.database import Statements


@dataclass(frozen=True, slots=True)
class Reading:
    """A question as one namespace reads it, without the names of its speakers."""

    opening: Opening
    people: frozenset[str]
    """The speakers whom the question names."""
    plain: str
    terms: tuple[words.QueryTerm, ...]
    words: Lexical


class Understanding:
    """Prepares a question for search."""

    def __init__(self, search: Search) -> None:
        self._search = search

    async def of(self, db: Statements, question: str, scope: Scope, asked_at: datetime) -> Reading:
        """Take people's names out of the question: who said something is a signal of its own, not a keyword.

        So is when it was said. But somebody may have said "last week", so such words still add to a match.
        """
        owner = scope.owner
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
        return Reading(opening, people.speakers, plain, tuple(terms), weighed)


class Queries:
    """The vectors of one question. Namespaces with the same model and reading share one.

    The caller's own namespace pays for them, also where the caller only reads another one.
    """

    def __init__(self, models: NamespaceModels, stack: AsyncExitStack) -> None:
        self._models = models
        self._stack = stack
        self._begun: dict[tuple[str | None, str], asyncio.Task[SemanticQuery]] = {}

    async def of(self, namespace: str, reading: Reading) -> "asyncio.Task[SemanticQuery]":
        """Embed the question in the background, until the stack is closed."""
        asks = reading.opening.model, reading.plain
        if asks not in self._begun:
            reach = origin.current().reach
            embedding = tasks.beside(self._models.question_for(reach.own if reach else namespace, *asks))
            (self._begun[asks],) = await self._stack.enter_async_context(embedding)
        return self._begun[asks]


def moment_of(scope: Scope, now: datetime | None) -> datetime:
    """When a question is asked. In a question about the past, "today" is a day in the past."""
    return now or min(moment for moment in (datetime.now(UTC), scope.until, scope.as_of) if moment is not None)


def traits_of(question: str, asked_at: datetime, readings: Iterable[Reading]) -> QuestionTraits:
    """What a question says beyond its words and its vector; the same for all namespaces."""
    return QuestionTraits(
        now=asked_at,
        length=len(question),
        people=frozenset().union(*(reading.people for reading in readings)),
        dates=tuple(dates.dates_named(question, asked_at)),
        asks_assistant=questions.asks_assistant(question),
        asks_summary=questions.asks_summary(question),
        asks_latest=dates.asks_latest(question),
        is_prompt=questions.is_prompt(question),
    )
