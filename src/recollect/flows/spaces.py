"""Spaces: every namespace has one model that gives it meaning, and vectors of different models never meet."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from recollect.inference.embedder import Embedder, Vector, as_text
from recollect.inference.embedders import Embedders
from recollect.inference.failures import FAILURES
from recollect.memory.embedding_models import EmbeddingModels
from recollect.memory.search import Meaning
from recollect.storage.database import Database, Transaction

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors, and the model whose space they are in."""

    model: str
    vectors: tuple[Vector, ...]


class Spaces:
    """Asks the model that is a namespace's now. The record is read each time: a switch counts from its commit on."""

    def __init__(self, database: Database, models: EmbeddingModels, embedders: Embedders) -> None:
        self._database = database
        self._models = models
        self.embedders = embedders
        self._warned: set[str] = set()

    async def embedder(self, namespace: str) -> Embedder | None:
        """The embedder of a namespace's model; None if this process has no such model."""
        async with self._database.reading(namespace) as db:
            state = await self._models.state(db)
        model = self.embedders.model_id(self.embedders.name) if state is None else state.active
        embedder = None if model is None else self.embedders.find(model, namespace)
        if model is not None and embedder is None and model not in self._warned:
            self._warned.add(model)
            _log.warning(
                "The model %s of namespace %s cannot be used here, so words alone decide: `recollect doctor` says more",
                model,
                namespace,
            )
        return embedder

    async def is_settled_on(self, tx: Transaction, model: str) -> bool:
        """Whether vectors of this model may be written now; it stays so until the transaction ends."""
        return (await self._models.hold(tx, model)).active == model

    async def question(self, namespace: str, text: str) -> Meaning | None:
        """What to compare with stored vectors; None without a model, or while its provider fails."""
        embedder = await self.embedder(namespace)
        if embedder is None:
            return None
        try:
            return Meaning(as_text(await embedder.embed_query(text)), embedder.model_id)
        except FAILURES as problem:
            if not self.embedders.is_remote(embedder):
                raise
            _log.warning("A search goes by words alone: %s", problem)
            return None

    async def documents(self, namespace: str, texts: Sequence[str]) -> Embedded | None:
        """The vectors of texts; None without a model, or while its provider fails: then the indexer does it later."""
        embedder = await self.embedder(namespace)
        if embedder is None:
            return None
        try:
            return Embedded(embedder.model_id, tuple(await embedder.embed_documents(texts)))
        except FAILURES as problem:
            if not self.embedders.is_remote(embedder):
                raise
            _log.warning("Passages wait for their meaning: %s", problem)
            return None
