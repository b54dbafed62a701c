"""Relevance: the calibrated chance that a recalled item bears on the question.

It has two factors: whether this memory answers the question at all, by the evidence of its best results, and how an
item compares with the others. Both are logistic regressions on conversations with known answers, with every question
also asked of a conversation that cannot answer it. `python -m benchmarks relevance` checks them; docs/recall.md shows
how far they can be trusted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import exp, log
from operator import mul
from typing import Final, Literal, NamedTuple

from recollect.flows.search.ranking import QuestionTraits, Ranked
from recollect.flows.search.understanding import Reading
from recollect.language.words import document_terms

Floor = float | Literal["default"]

DEFAULT: Final = "default"
"""As `min_relevance`: leave out everything if the memory does not answer the question. Our own clients ask for it."""

ANSWERED = 0.47
"""A question is answered if the chance of it is at least this."""
PROMPT_ANSWERED = 0.39
"""The same for a prompt in the middle of work."""

TOP = 10
"""Results that are evidence."""
BEST = 5
"""Results whose cosines and words are looked at."""
MOST = 200
"""Items that the fit saw at most; more come only with a larger `top_k`, which must not change what is relevant."""


class Evidence(NamedTuple):
    """What speaks for an answer, or the weight of it."""

    cosine: float
    """The mean of the best cosines."""
    words: float
    """The most of the question's words in one item."""
    session: float
    """The best match of a session among the results."""
    rare_words: float
    """The two rarest words of the question that one item has, as a part of what two words can count."""
    speaker: float
    """A person whom the question names has spoken."""
    recency: float
    """How new the results are on average, for a prompt."""
    size: float
    """How many items there are to choose from: among many, some match by chance."""


class Likeness(NamedTuple):
    """What an item has of its own, or the weight of it."""

    cosine: float
    words: float
    margin: float
    """How far below the best its score is."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Logistic regressions of both factors."""

    evidence: Evidence
    evidence_offset: float
    likeness: Likeness
    likeness_offset: float


QUESTION = Fit(
    Evidence(cosine=8.94, words=-0.17, session=5.77, rare_words=4.13, speaker=4.95, recency=0.0, size=-1.21),
    -3.47,
    Likeness(cosine=1.02, words=1.81, margin=2.30),
    -1.50,
)
PROMPT = Fit(
    Evidence(cosine=2.88, words=4.74, session=8.45, rare_words=8.16, speaker=4.95, recency=1.37, size=-1.37),
    -4.94,
    Likeness(cosine=-0.74, words=0.95, margin=1.96),
    -0.84,
)


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether the memory answers the question, and the relevance of each item by its passage."""

    is_answered: bool
    items: Mapping[tuple[str, int], float]


def of(ranked: Sequence[Ranked], asked: Mapping[str, Reading], traits: QuestionTraits) -> Judged:
    """Judge the results of some namespaces; where nothing is embedded, words stand for cosines."""
    if not ranked:
        return Judged(False, {})
    fit = PROMPT if traits.is_prompt else QUESTION
    by_meaning = any(item.best.cosine is not None for item in ranked)
    # That a question was asked before is no evidence that anybody knows the answer.
    told = [item for item in ranked if item.signals.echo < 1]
    if not told:
        return Judged(False, {item.best.key: 0.0 for item in ranked})
    ranked, echoes = told, [item for item in ranked if item.signals.echo == 1]
    cosines = [item.signals.cosine if by_meaning else item.signals.words for item in ranked]
    evidence = _evidence(ranked, cosines, asked, traits)
    answered = _logistic(fit.evidence_offset + sum(map(mul, fit.evidence, evidence)))
    items = {item.best.key: 0.0 for item in echoes}
    for item, cosine in zip(ranked, cosines, strict=True):
        likeness = Likeness(cosine, item.signals.words, item.score - ranked[0].score)
        items[item.best.key] = answered * _logistic(fit.likeness_offset + sum(map(mul, fit.likeness, likeness)))
    return Judged(answered >= (PROMPT_ANSWERED if traits.is_prompt else ANSWERED), items)


def _evidence(
    ranked: Sequence[Ranked],
    cosines: Sequence[float],
    asked: Mapping[str, Reading],
    traits: QuestionTraits,
) -> Evidence:
    top = [item.signals for item in ranked[:TOP]]
    best = nlargest(BEST, cosines)
    wordiest = nlargest(BEST, ranked, key=lambda item: item.signals.words)
    return Evidence(
        cosine=sum(best) / len(best),
        words=max(item.signals.words for item in ranked),
        session=max(signals.session for signals in top),
        rare_words=max(_rare(item, asked[item.best.namespace]) for item in wordiest),
        speaker=max(signals.speaker for signals in top),
        recency=sum(signals.recency for signals in top) / len(top) if traits.is_prompt else 0.0,
        size=log(min(len(ranked), MOST)),
    )


def _rare(item: Ranked, asked: Reading) -> float:
    own, words = set(document_terms(item.best.text)), asked.words
    shared = (words.weights[term.variants[0]] for term in asked.terms if own.intersection(term.variants))
    return sum(nlargest(2, shared)) / (2 * words.rarest) if words.rarest else 0.0


def _logistic(value: float) -> float:
    return 1 / (1 + exp(-value)) if value > 0 else exp(value) / (1 + exp(value))
