"""Loads the local embedding model while Python imports the rest: each takes about as long as all else of a search."""

from collections.abc import Iterator
from contextlib import contextmanager

from recollect import settings as environment
from recollect.inference.embedding.embedders import LocalModels


@contextmanager
def model_loading() -> Iterator[None]:
    """The block's engine finds the model loaded, or on its way: engines of a process share it."""
    settings = environment.load()
    models = LocalModels.locate(settings)
    if (embedder := models.named(settings.embedding_model)) is not None:
        embedder.begin_loading()
    try:
        yield
    finally:
        models.close()
