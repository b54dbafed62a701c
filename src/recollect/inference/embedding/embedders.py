"""Embedders: the models of this process, by the id that vectors carry."""

from typing import get_args

from recollect.errors import Misconfigured
from recollect.inference.embedding.embedder import Embedder
from recollect.inference.embedding.local import WHEEL, WHEEL_MODEL_ID, LocalEmbedder
from recollect.inference.failures import OPENAI
from recollect.inference.providers import Providers
from recollect.settings import EmbeddingModel

LOCAL = "local"
NAMES: tuple[str, ...] = get_args(EmbeddingModel)
_OF_PROVIDERS = frozenset(NAMES) - {LOCAL}


class Embedders:
    """Finds what can embed here. Without a key the models of a provider cannot, without the wheel the local one."""

    def __init__(self, local: LocalEmbedder | None, providers: Providers, name: str) -> None:
        self.local = local
        self._providers = providers
        self.name = name
        """The model of namespaces that have none yet, as the setting calls it."""

    def model_id(self, name: str) -> str | None:
        """The id of a model by the name that users give it; None if it is the local one and there is none."""
        if name == LOCAL:
            return None if self.local is None else self.local.model_id
        return name

    def find(self, model_id: str, namespace: str) -> Embedder | None:
        """The embedder of a model, on the account of a namespace; None if it cannot be used here."""
        if self.local is not None and self.local.model_id == model_id:
            return self.local
        can_ask = model_id in _OF_PROVIDERS and self._providers.has_openai
        return self._providers.embedder(model_id, namespace) if can_ask else None

    def missing(self, model_id: str | None) -> Misconfigured:
        """Why the model of a namespace cannot be used here, and what to do; None is the local model."""
        if model_id in (None, WHEEL_MODEL_ID):
            return Misconfigured(
                f"No embedding model is installed: install {WHEEL}, or set RECOLLECT_EMBEDDING_MODEL_PATH"
            )
        if model_id in _OF_PROVIDERS:
            return OPENAI.without_key()
        return Misconfigured(
            f"The embedding model {model_id} is not installed here: set RECOLLECT_EMBEDDING_MODEL_PATH to its file, "
            "or switch to another with `recollect embeddings switch`"
        )

    def require(self, name: str, namespace: str) -> Embedder:
        """The embedder of a model by the name that users give it; Misconfigured if it cannot be used here."""
        if name == LOCAL:
            if self.local is None:
                raise self.missing(None)
            return self.local
        if not self._providers.has_openai:
            raise OPENAI.without_key()
        return self._providers.embedder(name, namespace)

    def is_remote(self, embedder: Embedder) -> bool:
        """Whether it may fail for reasons that are not of this machine."""
        return embedder is not self.local
