"""PassageWriter: makes an item available to keyword and semantic search when its transaction commits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import ceil
from operator import add
from typing import Literal

from recollect import origin, tasks, telemetry
from recollect.flows.indexing.namespace_models import Embedded, Embedding, NamespaceModels
from recollect.inference.embedding.embedder import Vector, as_text
from recollect.language.content import share_said
from recollect.language.passages import cutting
from recollect.memory.index.passages import Excerpt, Passages, Source, analysing
from recollect.steps import in_steps
from recollect.storage.database import Transaction

# A text with more passages than this would keep its caller waiting: the indexer embeds it soon after.
MAX_EMBEDDED_AT_ONCE = 32

EmbeddingStatus = Literal["success", "pending"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A text with its passages and their vectors."""

    excerpts: tuple[Excerpt, ...]
    embedding: Embedding

    @property
    def embedded(self) -> Embedded | None:
        """The vector of each passage, unless they are left to the indexer."""
        return self.embedding.embedded

    @property
    def degraded(self) -> str | None:
        """Why it could not be embedded; None if it was, or is only left to the indexer."""
        return self.embedding.degraded

    @property
    def embedding_status(self) -> EmbeddingStatus:
        """Whether its vectors are stored together with it."""
        return "pending" if self.embedded is None else "success"


@dataclass(frozen=True, slots=True)
class Grounding:
    """How near a text is to its sources, and by what that was measured."""

    value: float
    by: Literal["meaning", "words"]


class PassageWriter:
    """Studies a text before the transaction that stores it, and writes its passages inside."""

    def __init__(
        self,
        passages: Passages,
        namespace_models: NamespaceModels,
        written: Callable[[str], None],
        indexed: Callable[[str], None],
    ) -> None:
        self._passages = passages
        self._namespace_models = namespace_models
        self._written = written
        self._indexed = indexed

    async def prepare(self, namespace: str, text: str, title: str | None = None) -> Prepared:
        """Cut a text into passages, weigh their words and embed them; a title's words are words of every passage."""
        origin.require("write")
        excerpts = tuple(await in_steps(analysing(text, title)))
        if len(excerpts) > MAX_EMBEDDED_AT_ONCE:
            return Prepared(excerpts, Embedding(None))
        return Prepared(
            excerpts, await self._namespace_models.documents(namespace, [excerpt.text for excerpt in excerpts])
        )

    async def prepare_each(
        self, namespace: str, items: Sequence[Sequence[str]]
    ) -> tuple[list[tuple[Excerpt, ...]], Prepared]:
        """The same for several items of some texts each: the passages of each item, and all of them together."""
        origin.require("write")
        excerpts = [
            tuple([excerpt for text in texts for excerpt in await in_steps(analysing(text))]) for texts in items
        ]
        every = tuple(excerpt for each in excerpts for excerpt in each)
        if not 0 < len(every) <= MAX_EMBEDDED_AT_ONCE:
            return excerpts, Prepared(every, Embedding(None))
        embedding = await self._namespace_models.documents(namespace, [excerpt.text for excerpt in every])
        return excerpts, Prepared(every, embedding)

    async def replace(
        self, tx: Transaction, passages: Sequence[int], sources: Sequence[Source], prepared: Prepared
    ) -> None:
        """Write the passages of several items of one kind, in place of some that were there."""
        embedded = prepared.embedded
        if embedded is None or not await self._namespace_models.is_settled_on(tx, embedded.model):
            await self._passages.replace(tx, passages, sources)
            return
        texts = (excerpt.text for excerpt in prepared.excerpts)
        vectors = dict(zip(texts, map(as_text, embedded.vectors), strict=True))
        await self._passages.replace(tx, passages, sources, embedded.model, vectors)

    async def add(self, tx: Transaction, source: Source, prepared: Prepared) -> None:
        """Write an item's passages with all that is known of them."""
        await self._passages.add(tx, [source])
        # If the namespace has just moved to another model, its indexer does the rest.
        if prepared.embedded is not None and await self._namespace_models.is_settled_on(tx, prepared.embedded.model):
            texts = (excerpt.text for excerpt in source.excerpts)
            vectors = dict(zip(texts, map(as_text, prepared.embedded.vectors), strict=True))
            await self._passages.complete_new(tx, source.kind, source.item_id, prepared.embedded.model, vectors)

    async def screen(self, tx: Transaction, source: Source) -> None:
        """Have an item judged that is read without being recalled."""
        await self._passages.screen(tx, [source])

    async def grounding(self, namespace: str, text: str, prepared: Prepared, sources: Sequence[str]) -> Grounding:
        """How near a text is to its sources taken together, from 0 to 1: by cosine, else by the terms they share."""
        if prepared.embedded is None:
            return Grounding(await tasks.in_thread(share_said, text, "\n".join(sources)), "words")
        # Embedded here and now: the indexer may not have come to them yet, and a sample of many shows as much.
        passages = await in_steps(passage for source in sources for passage in cutting(source))
        sample = passages[:: ceil(len(passages) / MAX_EMBEDDED_AT_ONCE)]
        theirs = (await self._namespace_models.documents(namespace, sample)).embedded
        if theirs is None or theirs.model != prepared.embedded.model:
            return Grounding(await tasks.in_thread(share_said, text, "\n".join(sources)), "words")
        return Grounding(_cosine(prepared.embedded.vectors, theirs.vectors), "meaning")

    def changed(self, namespace: str) -> None:
        """Tell those who work in the background that there are passages."""
        self._written(namespace)

    def committed(self, namespace: str, prepared: Prepared) -> None:
        """Tell those who work in the background what is theirs to do."""
        if prepared.embedded is not None:
            telemetry.passages_indexed(len(prepared.embedded.vectors))
            self._indexed(namespace)
        else:
            self._written(namespace)


def _cosine(ours: Sequence[Vector], theirs: Sequence[Vector]) -> float:
    """Between the sums of unit vectors, so that every passage counts the same; what points away is at 0."""
    one, other = reduce(add, ours), reduce(add, theirs)
    length = float((one @ one) * (other @ other)) ** 0.5
    return min(max(float(one @ other) / length, 0.0), 1.0) if length else 0.0
