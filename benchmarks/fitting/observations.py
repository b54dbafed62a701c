"""What recall measures of its results on a set: their signals, their relevance, and whether they hold the answer."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from recollect.doors.cli.one_command import opened_engine
from recollect.doors.cli.operating.bench import RANKED, Question, ensure_stored, read_questions
from recollect.doors.cli.operating.retrieval_targets import EngineTarget
from recollect.engine import Engine
from recollect.errors import Invalid, Unavailable
from recollect.flows.search import ranking
from recollect.flows.search.recollection import Memory
from recollect.language import questions
from recollect.memory.index.search import Scope

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Source:
    """The files of a set, and the namespace that holds its corpus or will."""

    corpus: Path
    questions: Path
    namespace: str

    @classmethod
    def of(cls, corpus: Path, questions: Path, namespace: str | None) -> "Source":
        """Without a namespace, one that is named after the content: a second run finds what the first has stored."""
        digest = hashlib.sha256(corpus.read_bytes()).hexdigest()[:12]
        return cls(corpus, questions, namespace or f"fit-{digest}")

    @property
    def name(self) -> str:
        """The name of the corpus, without the endings of its file."""
        return self.corpus.name.split(".")[0]


@dataclass(frozen=True, slots=True)
class Observed:
    """One question and its results, the best first as recall ranks today."""

    conversation: str
    is_prompt: bool
    gold: int
    """Turns that hold the answer, recalled or not."""
    is_gold: Booleans
    signals: Floats
    """A row for each result; 0 where today's weight is 0, because then the parts of a score do not tell."""
    relevance: Floats
    is_answered: bool


@dataclass(frozen=True, slots=True)
class Set:
    """All questions with gold turns; `wrong` are the same, asked of a conversation that cannot answer them."""

    name: str
    right: tuple[Observed, ...]
    wrong: tuple[Observed, ...] = ()


async def observe(sources: Sequence[Source], *, wrong: bool = False) -> list[Set]:
    """Store each set unless its namespace holds it, and ask its questions."""
    async with opened_engine() as engine:
        return [await _observe(engine, source, wrong) for source in sources]


async def _observe(engine: Engine, source: Source, wrong: bool) -> Set:
    asked = [question for question in read_questions(source.questions) if question.gold]
    conversations = list(dict.fromkeys(question.conversation for question in asked))
    if not asked or (wrong and len(conversations) < 2):
        raise Invalid(f"{source.questions} needs gold_turns, and to check relevance questions of two conversations")
    await ensure_stored(EngineTarget(engine, source.namespace), source.namespace, source.corpus)
    following = dict(zip(conversations, [*conversations[1:], conversations[0]], strict=True))
    right, misdirected = [], []
    with click.progressbar(asked, label=f"Asking {source.name}") as bar:
        for question in bar:
            right.append(await _ask(engine, source.namespace, question, question.conversation))
            if wrong:
                misdirected.append(await _ask(engine, source.namespace, question, following[question.conversation]))
    # A conversation that began after the question was asked has nothing to recall, and so nothing to get wrong.
    return Set(source.name, tuple(right), tuple(each for each in misdirected if len(each.relevance)))


async def _ask(engine: Engine, namespace: str, question: Question, conversation: str) -> Observed:
    scope = Scope(owner=conversation, until=question.until)
    found = await engine.recall.recall(namespace, question.text, scope, top_k=RANKED, explain=True, fold=False)
    if found.degraded is not None:
        raise Unavailable(f"Stopped, because the run would measure the outage: {found.degraded}")
    is_prompt = questions.is_prompt(question.text)
    gold = set(question.gold)
    # Turn ids need only be unique in a conversation: those of another one must not pass for gold.
    hits = [conversation == question.conversation and _turn(memory) in gold for memory in found.memories]
    return Observed(
        question.conversation,
        is_prompt,
        len(gold),
        np.array(hits, dtype=np.bool_),
        _signals(found.memories, weights_of(is_prompt)),
        np.array([memory.relevance for memory in found.memories], dtype=np.float64),
        found.answered,
    )


def weights_of(is_prompt: bool) -> Floats:
    """The weights of the ranking as they are today."""
    return np.array(ranking.PROMPT if is_prompt else ranking.QUESTION, dtype=np.float64)


def _turn(memory: Memory) -> object:
    return memory.metadata.get("turn") if isinstance(memory.metadata, dict) else None


def _signals(memories: Sequence[Memory], weights: Floats) -> Floats:
    """Divide the parts of each score by the weights."""
    parts = [memory.explanation.parts for memory in memories if memory.explanation is not None]
    scores = np.array(parts, dtype=np.float64).reshape(len(parts), len(weights))
    return np.divide(scores, weights, out=np.zeros_like(scores), where=weights != 0)
