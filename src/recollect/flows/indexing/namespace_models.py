"""NamespaceModels: every namespace has one embedding model; vectors of different models never mix."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from recollect.errors import RecollectError, Unavailable
from recollect.inference.embedding.embedder import Embedder, Vector, as_text
from recollect.inference.embedding.embedders import Embedders
from recollect.inference.embedding.model_file import WHEEL_MODEL_ID
from recollect.inference.embedding.scale import BUNDLED, Scale, measured
from recollect.inference.failures import FAILURES, NoUsableKey
from recollect.memory.index.embedding_models import EmbeddingModels
from recollect.memory.index.search import Meaning
from recollect.storage.database import Database, Transaction

# Embedded before a switch begins, to find out whether the model works.
_TRIAL = "A sentence to see whether the model answers."

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CurrentModel:
    """The model that searches ask, if any, the one that the namespace moves to, and whether old vectors are left."""

    active: str | None
    next: str | None
    leftovers: bool


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors, and the model whose space they are in."""

    model: str
    vectors: tuple[Vector, ...]


class NotSearched(Unavailable):
    """Keyword search found nothing and semantic search could not run: there may still be an answer."""


class NotSearchedWithoutKey(NotSearched):
    """The same, for want of a key that the provider accepts."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Items of one kind that are not embedded yet, so that semantic search cannot find them."""

    count: int
    kind: str

    def __str__(self) -> str:
        waiting = f"1 {self.kind} is" if self.count == 1 else f"{self.count:,} {self.kind}s are"
        return f"{waiting} not embedded yet"


@dataclass(frozen=True, slots=True)
class SemanticQuery:
    """What to compare with stored vectors; without it, `outage` says why there is none."""

    meaning: Meaning | None
    outage: RecollectError | None = None
    waiting: Waiting | None = None
    scale: Scale = BUNDLED

    @property
    def degraded(self) -> str | None:
        """Why all or some items were searched by keyword only; None if semantic search covered all of them."""
        if self.outage is not None:
            return f"Semantic search is unavailable, so only keyword search was used: {self.outage}"
        return None if self.waiting is None else f"{self.waiting} and can be found only by keyword search"

    def require(self, found: object) -> None:
        """Raise if keyword search found nothing and semantic search could not run: that is no empty result."""
        if found:
            return
        if self.outage is not None:
            category = NotSearchedWithoutKey if isinstance(self.outage, NoUsableKey) else NotSearched
            raise category(f"Semantic search is unavailable, and keyword search found nothing: {self.outage}")
        if self.waiting is not None:
            raise NotSearched(f"{self.waiting}, and keyword search found nothing. Try again in a moment.")


@dataclass(frozen=True, slots=True)
class Embedding:
    """The vectors of texts; without them, `outage` says why there are none yet."""

    embedded: Embedded | None
    outage: str | None = None

    @property
    def degraded(self) -> str | None:
        """What is said of texts that could not be embedded when they were stored."""
        return None if self.outage is None else f"Stored, but only keyword search can find it for now: {self.outage}"


class NamespaceModels:
    """Asks the model that is a namespace's now. The record is read each time: a switch counts from its commit on."""

    def __init__(self, database: Database, models: EmbeddingModels, embedders: Embedders) -> None:
        self._database = database
        self._models = models
        self.embedders = embedders
        self._warned: set[str] = set()
        self._scales: dict[str, Scale] = {WHEEL_MODEL_ID: BUNDLED}

    async def current(self, namespace: str) -> CurrentModel:
        """The model that searches ask now: the recorded one, or before the first vector the one set up here."""
        async with self._database.reading(namespace) as db:
            state = await self._models.state(db)
        if state is None:
            return CurrentModel(self.embedders.model_id(self.embedders.name), None, leftovers=False)
        return CurrentModel(state.active, state.next, state.leftovers)

    async def embedder(self, namespace: str) -> Embedder | None:
        """The embedder of a namespace's model; None if this process has no such model."""
        return await self._embedder((await self.current(namespace)).active, namespace)

    async def next_embedder(self, namespace: str, name: str) -> Embedder:
        """The embedder that a namespace may move to, by the name that users give it; it has embedded a text."""
        embedder = await self.embedders.require(name, namespace)
        if embedder.dimensions is None:
            embedder = await self._with_stored_dimensions(embedder, namespace) or embedder
        await embedder.embed_documents([_TRIAL])
        return embedder

    async def _embedder(self, model: str | None, namespace: str) -> Embedder | None:
        embedder = None if model is None else self.embedders.find(model, namespace)
        if embedder is not None and embedder.dimensions is None:
            return await self._with_stored_dimensions(embedder, namespace)
        if model is not None and embedder is None and model not in self._warned:
            self._warned.add(model)
            _log.warning(
                "The embedding model %s is unavailable here, so only keyword search works: run `recollect doctor`",
                model,
                extra={"namespace": namespace},
            )
        return embedder

    async def _with_stored_dimensions(self, embedder: Embedder, namespace: str) -> Embedder | None:
        """The embedder for vectors of the size that the namespace has stored, if it has stored any."""
        async with self._database.reading(namespace) as db:
            stored = await self._models.dimensions(db, embedder.model_id)
        return self.embedders.find(embedder.model_id, namespace, stored)

    async def missing(self, namespace: str) -> str | None:
        """What is said where nothing can be embedded because this process has no model; None if it has."""
        model = (await self.current(namespace)).active
        found = await self._embedder(model, namespace)
        return Embedding(None, str(self.embedders.missing(model))).degraded if found is None else None

    async def why_missing(self, namespace: str) -> RecollectError:
        """Why this process has no model for a namespace, and what to do about it."""
        return self.embedders.missing((await self.current(namespace)).active)

    async def is_settled_on(self, tx: Transaction, model: str) -> bool:
        """Whether vectors of this model may be written now; it stays so until the transaction ends."""
        return (await self._models.lock(tx, model)).active == model

    async def question(self, namespace: str, text: str) -> SemanticQuery:
        """What to compare with stored vectors, or why there is nothing to compare them with."""
        return await self.question_for(namespace, (await self.current(namespace)).active, text)

    async def question_for(self, namespace: str, model: str | None, text: str) -> SemanticQuery:
        """The same for a caller who has read the record of the namespace; None is the model of new namespaces."""
        model = model or self.embedders.model_id(self.embedders.name)
        embedder = await self._embedder(model, namespace)
        if embedder is None:
            return SemanticQuery(None, self.embedders.missing(model))
        try:
            meaning = Meaning(as_text(await embedder.embed_query(text)), embedder.model_id)
            return SemanticQuery(meaning, scale=await self._scale(embedder))
        except FAILURES as problem:
            if not self.embedders.is_remote(embedder):
                raise
            # The answer says so itself; a command or a program without logging would print it twice.
            _log.info("A search used only keyword search: %s", problem)
            return SemanticQuery(None, problem)

    async def _scale(self, embedder: Embedder) -> Scale:
        """Measured once, for models on this machine; a provider would charge for it."""
        if embedder.model_id not in self._scales:
            of_provider = self.embedders.is_remote(embedder)
            self._scales[embedder.model_id] = BUNDLED if of_provider else await measured(embedder)
        return self._scales[embedder.model_id]

    async def documents(self, namespace: str, texts: Sequence[str]) -> Embedding:
        """The vectors of texts; without a model, or while its provider fails, the indexer makes them later."""
        model = (await self.current(namespace)).active
        embedder = await self._embedder(model, namespace)
        if embedder is None:
            return Embedding(None, str(self.embedders.missing(model)))
        try:
            return Embedding(Embedded(embedder.model_id, tuple(await embedder.embed_documents(texts))))
        except FAILURES as problem:
            if not self.embedders.is_remote(embedder):
                raise
            _log.warning("Passages are waiting to be embedded: %s", problem)
            return Embedding(None, str(problem))
