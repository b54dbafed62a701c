"""Loads the local embedding model while Python imports the rest: each takes about as long as all else of a search."""

from collections.abc import Iterator
from contextlib import contextmanager

from recollect import settings as environment
from recollect.inference.embedding.embedders import LOCAL
from recollect.inference.embedding.local import LocalEmbedder


@contextmanager
def model_loading() -> Iterator[None]:
    """The block's engine finds the model loaded, or on its way: engines of a process share it."""
    settings = environment.load()
    local = LocalEmbedder.locate(settings.embedding_model_path) if settings.embedding_model == LOCAL else None
    if local is None:
        yield
        return
    local.begin_loading()
    try:
        yield
    finally:
        local.close()
