"""Recollection: turns ranked items into the answer of a recall."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from recollect import trust
from recollect.checks import Json
from recollect.flows.kinds.long_term import MEMORY, PAST_MEMORY
from recollect.flows.search import ranking, relevance
from recollect.flows.search.citations import Citation, Cited
from recollect.flows.search.nomination import Nominated
from recollect.flows.search.ranking import Parts, QuestionTraits, Ranked
from recollect.flows.search.relevance import Floor
from recollect.flows.search.twins import Saying, saying
from recollect.flows.search.understanding import Reading
from recollect.language import words
from recollect.language.tokens import estimate_tokens
from recollect.memory.index.search import Nominee
from recollect.memory.memories import memory_of
from recollect.trust import Trust

NOMINEES = 100

BEYOND = 5
"""Items below the limit that an inspection shows."""

Fate = Literal["shown", "below_floor", "over_budget", "beyond"]
"""What becomes of an item: below the least relevance, too long for the tokens left, or more than were asked for."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a memory was recalled: the parts of its score, the words it shares, its rank in each leg (from 1)."""

    parts: Parts
    matched_words: tuple[str, ...]
    rank_by_words: int | None
    rank_by_meaning: int | None
    citations: tuple[Citation, ...] = ()
    """Where the shared words are in the whole text of the item."""
    cited_words: tuple[str, ...] = ()
    """The shared words, as written there."""


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
    trust: Trust
    """Where the text comes from."""
    repeats: tuple[str, ...]
    """Ids of duplicates from the same speaker, merged into this result."""
    explanation: Explanation | None
    namespace: str | None = None
    """Where it was found, if the question named namespaces."""


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
class Candidate:
    """An item in its place in the ranking, and what became of it."""

    memory: Memory
    fate: Fate


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a recall answers, and the ranking that it is taken from: also what it leaves out, and the next few.

    Citations are places in the passages, not in the whole items, which an inspection need not read.
    """

    found: Recollection
    candidates: list[Candidate]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a caller wants from a recall."""

    top_k: int
    token_budget: int | None = None
    explain: bool = False
    fold: bool = True
    nominees: int = NOMINEES
    min_relevance: Floor | None = None
    now: datetime | None = None
    half_life_days: float | None = None
    beyond: int = 0
    labelled: bool = False


def degraded(reasons: Mapping[str, str | None]) -> str | None:
    """Why only keyword search was used; names the namespaces, unless the reason is the same for all."""
    if len(set(reasons.values())) == 1:
        return next(iter(reasons.values()))
    said = (f"Namespace {namespace}: {reason}" for namespace, reason in reasons.items() if reason is not None)
    return ". ".join(each.rstrip(".") for each in said) + "."


def folded(ranked: Sequence[Ranked], limit: int, beyond: int) -> list[tuple[Ranked, tuple[str, ...]]]:
    """The best items; one that says the same as a better one, in the same person's words, goes behind that one.

    What comes beyond the limit changes nothing about those within.
    """
    repeats: dict[tuple[str, Saying], list[str]] = {}
    first: list[tuple[Ranked, list[str]]] = []
    for item in ranked:
        said = item.best.namespace, saying(item.best)
        if said in repeats:
            if len(first) <= limit:
                repeats[said].append(kind_and_id(item.best)[1])
        elif len(first) < limit + beyond:
            repeats[said] = []
            first.append((item, repeats[said]))
        else:
            break
    return [(item, tuple(others)) for item, others in first]


def sifted(memories: Sequence[Memory], is_answered: bool, wanted: Wanted) -> list[Candidate]:
    """What becomes of each, in order; one that does not fit the tokens left is passed over for the next."""
    floor, left = wanted.min_relevance, wanted.token_budget
    none = floor == relevance.DEFAULT and not is_answered
    least = floor if isinstance(floor, float | int) else 0.0
    candidates: list[Candidate] = []
    for rank, memory in enumerate(memories):
        fate: Fate = "shown"
        if none or memory.relevance < least:
            fate = "below_floor"
        elif rank >= wanted.top_k:
            fate = "beyond"
        elif left is not None:
            size = estimate_tokens(memory.text)
            fate, left = ("over_budget", left) if size > left else ("shown", left - size)
        candidates.append(Candidate(memory, fate))
    return candidates


def explained(item: Ranked, traits: QuestionTraits, reading: Reading, found: Nominated, cited: Cited) -> Explanation:
    """Why an item stands where it does."""
    own = set(words.document_terms(item.best.text))
    return Explanation(
        parts=ranking.parts(item, traits),
        matched_words=tuple(term.word for term in reading.terms if own.intersection(term.variants)),
        rank_by_words=place_of(item.best, found.by_words),
        rank_by_meaning=place_of(item.best, found.by_meaning),
        citations=cited.citations,
        cited_words=cited.words,
    )


def place_of(nominee: Nominee, ids: Sequence[int]) -> int | None:
    """The rank of a passage in a leg, from 1."""
    return ids.index(nominee.id) + 1 if nominee.id in ids else None


def kind_and_id(nominee: Nominee) -> tuple[str, str]:
    """The kind and the id of an item in answers: a past version goes by the memory that it is of."""
    if nominee.kind == PAST_MEMORY:
        return MEMORY, memory_of(nominee.item_id)
    return nominee.kind, nominee.item_id


def recalled(
    item: Ranked, chance: float, repeats: tuple[str, ...], why: Explanation | None, *, labelled: bool
) -> Memory:
    """An item as it appears in the answer."""
    passage = item.best
    kind, item_id = kind_and_id(passage)
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
        trust=trust.of_item(kind, passage.role, passage.trust),
        repeats=repeats,
        explanation=why,
        namespace=passage.namespace if labelled else None,
    )
