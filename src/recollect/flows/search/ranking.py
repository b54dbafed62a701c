"""Ranking: what a nominee is worth, as a sum of signals with one named weight each.

`python -m benchmarks ranking` fits the weights; docs/recall.md has the ablations on three kinds of conversations.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import log1p
from operator import attrgetter, mul
from statistics import median
from typing import NamedTuple

from recollect.language import questions
from recollect.language.dates import NamedDate, Period
from recollect.memory.index.search import Around, Nominee

ASSISTANT = "assistant"

WORDS_IN_MATCH = 0.8
"""How well a message matches: its cosine, and so much of its words."""
LONG_ENOUGH = 120
"""Characters: a shorter message says less."""
HALF_LIFE_DAYS = 20.0
"""After so many days what was said counts half as recent for a prompt."""
SAME_QUESTION = 0.7
"""Words as a part of the best possible: a question that has as much was asked before."""
LONGER_QUESTION = 1.5
"""A question that is so many times longer than another is not the same one."""
ANSWERED_BEFORE = 0.15
"""What the assistant answered then, as a part of an echo: behind what a person stated, before what is unrelated."""

Session = tuple[str, str, str]
"""The namespace, whose, and its id: two users may call theirs the same."""

Place = tuple[str, str, str, str, int]


class Parts(NamedTuple):
    """What is measured of an item, mostly between 0 and 1; or, multiplied by the weights, the parts of its score."""

    cosine: float
    """Semantic search: the best passage."""
    words: float
    """Keyword search: BM25 as a part of the best possible."""
    neighbour: float
    """The better match of the messages before and after: a turn is explained by what surrounds it."""
    answer: float
    """The match of the question that a person's message answers."""
    session: float
    """The best match in the same session: the talk was about it."""
    company: float
    """How many nominees are of the same session."""
    opening: float
    """The first message of its session, which says what it is about."""
    speaker: float
    """Said by a person whom the question names."""
    role: float
    """Said by a person rather than an assistant; the other way round when the question asks what the assistant said."""
    date: float
    """Said on a date that the question names."""
    recency: float
    """How new it is, if the question asks for the latest or is a prompt in the middle of work."""
    length: float
    """Long enough to say something."""
    asking: float
    """A question to another person: the answer tells more."""
    echo: float
    """The question itself, asked before, or the answer that an assistant gave then."""
    decay: float = 0.0
    """What age takes off the score, if a caller asks for decay. It has no weight: it follows from the other parts."""

    @property
    def total(self) -> float:
        """The score, if these are its parts."""
        return sum(self)


QUESTION = Parts(
    cosine=1.0,
    words=0.95,
    neighbour=0.30,
    answer=0.42,
    session=0.72,
    company=0.0,
    opening=0.18,
    speaker=0.20,
    role=0.40,
    date=0.45,
    recency=0.15,
    length=0.06,
    asking=-0.15,
    echo=-3.00,
)
"""Weights for a question."""

PROMPT = Parts(
    cosine=1.0,
    words=0.68,
    neighbour=0.50,
    answer=0.0,
    session=0.80,
    company=0.17,
    opening=0.52,
    speaker=0.19,
    role=0.05,
    date=0.30,
    recency=0.45,
    length=0.0,
    asking=0.0,
    echo=-3.00,
)
"""Weights for a prompt in the middle of work, which wants what was last done on its topic."""


@dataclass(frozen=True, slots=True)
class QuestionTraits:
    """What the question says besides its words and its vector, and when it is asked."""

    now: datetime
    length: int = 0
    """Characters of the question."""
    people: frozenset[str] = frozenset()
    dates: tuple[NamedDate | Period, ...] = ()
    asks_assistant: bool = False
    asks_summary: bool = False
    asks_latest: bool = False
    is_prompt: bool = False

    @property
    def weights(self) -> Parts:
        """Those that fit this kind of question."""
        return PROMPT if self.is_prompt else QUESTION


@dataclass(frozen=True, slots=True)
class Ranked:
    """An item by its best passage, and why it stands where it stands."""

    best: Nominee
    signals: Parts
    score: float
    decay: float = 0.0
    """What age has taken off the score."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    best: Nominee
    cosine: float
    words: float

    @property
    def match(self) -> float:
        return self.cosine + WORDS_IN_MATCH * self.words


class Neighbour(NamedTuple):
    """A message next to an item."""

    role: str | None
    asks: bool
    words: float
    match: float


@dataclass(frozen=True, slots=True)
class _Context:
    """What an item is measured against: the other nominees, and the messages around them."""

    neighbours: Mapping[Place, Neighbour]
    echoes: Mapping[tuple[str, int], float]
    """By passage: 1 for the question itself, asked before, and a little for what was answered then."""
    best_in_session: Mapping[Session, float]
    number_in_session: Mapping[Session, int]
    prefers_assistant: bool
    newer_than: Mapping[datetime, float]
    """By the time of an item, the part of the nominees that it is newer than."""


def parts(item: Ranked, traits: QuestionTraits) -> Parts:
    """The score of an item, part by part; they add up to it."""
    return Parts(*map(mul, traits.weights, item.signals))._replace(decay=item.decay)


def cosine_if_unknown(nominees: Iterable[Nominee]) -> float:
    """What a passage counts whose vector is not there yet: as much as the nominee in the middle."""
    known = [nominee.cosine for nominee in nominees if nominee.cosine is not None]
    return median(known) if known else 0.0


def rank(nominees: Sequence[Nominee], bound: float, around: Sequence[Around], traits: QuestionTraits) -> list[Ranked]:
    """Items, the best first; ties in the order they were written."""
    unknown = cosine_if_unknown(nominees)
    candidates = _candidates(nominees, bound, unknown)
    context = _context(candidates, neighbours(around, bound, unknown), traits)
    ranked = []
    for candidate in candidates:
        signals = _signals(candidate, context, traits)
        ranked.append(Ranked(candidate.best, signals, sum(map(mul, traits.weights, signals))))
    return sorted(ranked, key=lambda item: (-item.score, item.best.id))


def decayed(
    ranked: Sequence[Ranked], half_life_days: float, now: datetime, exempt: Collection[tuple[str, int]]
) -> list[Ranked]:
    """The same items after each score has halved once per half-life, but for exempt passages; ties keep their order.

    A score below zero stays: to halve it would raise it.
    """
    aged = []
    for item in ranked:
        lasting = item.best.key in exempt or item.score <= 0
        score = item.score if lasting else item.score * _halved(item.best, now, half_life_days)
        aged.append(replace(item, score=score, decay=score - item.score))
    return sorted(aged, key=lambda item: -item.score)


def neighbours(around: Sequence[Around], bound: float, unknown: float) -> dict[Place, Neighbour]:
    """Each message by the passage of it that matches best; whether it asks, its last one tells."""
    found: dict[Place, Neighbour] = {}
    for passage in sorted(around, key=attrgetter("part")):
        place = (passage.kind, passage.namespace, passage.owner, passage.session_id, passage.position)
        words = passage.lexical / bound if bound else 0.0
        cosine = unknown if passage.cosine is None else passage.cosine
        match = max(cosine + WORDS_IN_MATCH * words, 0.0)
        asks = questions.asks(passage.ending)
        other = found.get(place)
        if other is None or match > other.match:
            found[place] = Neighbour(passage.role, asks, words, match)
        else:
            found[place] = other._replace(asks=asks)
    return found


def _candidates(nominees: Sequence[Nominee], bound: float, unknown: float) -> list[_Candidate]:
    """Each item once, by the passage of it that matches best."""
    best: dict[tuple[str, str, str], _Candidate] = {}
    for nominee in nominees:
        cosine = unknown if nominee.cosine is None else nominee.cosine
        candidate = _Candidate(nominee, cosine, nominee.lexical / bound if bound else 0.0)
        item = (nominee.namespace, nominee.kind, nominee.item_id)
        if item not in best or (candidate.match, -nominee.part) > (best[item].match, -best[item].best.part):
            best[item] = candidate
    return list(best.values())


def _context(candidates: Sequence[_Candidate], beside: Mapping[Place, Neighbour], traits: QuestionTraits) -> _Context:
    echoes = {each.best.key: _echo(each, *_beside(each.best, beside), traits) for each in candidates}
    best: dict[Session, float] = {}
    for candidate in candidates:
        session = _session_of(candidate.best)
        # That the question was asked in a session does not make it a talk about it.
        if session is not None and echoes[candidate.best.key] < 1:
            best[session] = max(candidate.match, best.get(session, candidate.match))
    prefers_assistant = traits.asks_assistant and any(each.best.role == ASSISTANT for each in candidates)
    times = sorted({each.best.at for each in candidates}) if traits.asks_latest else []
    return _Context(
        beside,
        echoes,
        best,
        Counter(session for each in candidates if (session := _session_of(each.best)) is not None),
        prefers_assistant,
        {at: number / max(len(times) - 1, 1) for number, at in enumerate(times)},
    )


def _signals(candidate: _Candidate, context: _Context, traits: QuestionTraits) -> Parts:
    passage = candidate.best
    session = _session_of(passage)
    before, after = _beside(passage, context.neighbours)
    by_assistant = passage.role == ASSISTANT
    return Parts(
        cosine=candidate.cosine,
        words=candidate.words,
        neighbour=max(before.match if before else 0.0, after.match if after else 0.0),
        answer=before.match if before and before.asks and not by_assistant else 0.0,
        # What was not said in a session is its own: it must not lose to messages for that alone.
        session=candidate.match if session is None else context.best_in_session.get(session, 0.0),
        company=log1p(1 if session is None else context.number_in_session[session]),
        opening=float(session is None or passage.position == 0),
        speaker=float(passage.speaker in traits.people),
        role=float(by_assistant == context.prefers_assistant and not traits.asks_summary),
        date=float(any(date.matches(passage.at) for date in traits.dates)),
        recency=_recency(passage, context, traits),
        length=min(len(passage.text) / LONG_ENOUGH, 1.0),
        asking=float(_asks_a_person(passage, before, after)),
        echo=context.echoes[passage.key],
    )


def _beside(passage: Nominee, neighbours: Mapping[Place, Neighbour]) -> tuple[Neighbour | None, Neighbour | None]:
    """The messages before and after a message."""
    session, position = _session_of(passage), passage.position
    if session is None or position is None:
        return None, None
    before, after = ((passage.kind, *session, position + step) for step in (-1, 1))
    return neighbours.get(before), neighbours.get(after)


def _recency(passage: Nominee, context: _Context, traits: QuestionTraits) -> float:
    if traits.is_prompt:
        return _halved(passage, traits.now, HALF_LIFE_DAYS)
    return context.newer_than.get(passage.at, 0.0)


def _halved(passage: Nominee, now: datetime, half_life_days: float) -> float:
    """What is left of 1 at the age of a passage; one from the future is new."""
    days = max((now - passage.at).total_seconds(), 0.0) / 86_400
    return float(0.5 ** (days / half_life_days))


def _asks_a_person(passage: Nominee, before: Neighbour | None, after: Neighbour | None) -> bool:
    """Users put facts into what they ask an assistant; people who ask each other have yet to hear them."""
    roles = {passage.role, before and before.role, after and after.role}
    return _session_of(passage) is not None and ASSISTANT not in roles and questions.ends_with_question(passage.text)


def _echo(candidate: _Candidate, before: Neighbour | None, after: Neighbour | None, traits: QuestionTraits) -> float:
    """A question to the assistant that was asked before must not come first; what it answered gives way to a statement.

    One that is much longer tells something besides.
    """
    if _session_of(candidate.best) is None:
        return 0.0
    if candidate.best.role == ASSISTANT:
        answers = before is not None and before.role != ASSISTANT and before.asks and before.words >= SAME_QUESTION
        return ANSWERED_BEFORE if answers else 0.0
    heard = after is None or after.role == ASSISTANT
    is_as_short = len(candidate.best.text) <= LONGER_QUESTION * traits.length
    return float(
        heard and is_as_short and candidate.words >= SAME_QUESTION and questions.ends_with_question(candidate.best.text)
    )


def _session_of(passage: Nominee) -> Session | None:
    """The session that a passage was said in; one that has a session only for its scope was not said there."""
    if passage.session_id is None or passage.position is None:
        return None
    return passage.namespace, passage.owner, passage.session_id
