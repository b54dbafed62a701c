"""OpenAI's embeddings: an alternative to the local model, for those who may send their memories out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from recollect.errors import Unavailable
from recollect.inference.failures import OPENAI
from recollect.inference.meter import Tokens
from recollect.language.tokens import estimate_tokens

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from recollect.inference.embedder import Vector
    from recollect.inference.guard import Guard
    from recollect.inference.sdk import Sdk

MODEL = "text-embedding-3-small"
MODEL_ID = f"openai:{MODEL}"
DIMENSIONS = 1536
FEATURE = "embeddings"

# The provider takes 2,048 texts and 300,000 tokens a request, and 8,192 tokens a text.
TEXTS_PER_REQUEST = 256
TOKENS_PER_REQUEST = 100_000
TOKENS_PER_TEXT = 8_000

# However often it is tried: whoever searches waits, and whoever indexes keeps others from deleting meanwhile. One try
# ends before that, so that it counts as a failure of the provider.
QUERY_SECONDS = 10.0
DOCUMENTS_SECONDS = 25.0
SHARE_OF_ONE_TRY = 0.8


class OpenAiEmbedder:
    """Embeds for one namespace, which pays for it."""

    model_id = MODEL_ID
    dimensions = DIMENSIONS

    def __init__(self, sdk: Sdk, guard: Guard, namespace: str) -> None:
        self._sdk = sdk
        self._guard = guard
        self._namespace = namespace

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        return await self._within(DOCUMENTS_SECONDS, texts)

    async def embed_query(self, text: str) -> Vector:
        return (await self._within(QUERY_SECONDS, [text]))[0]

    async def _within(self, seconds: float, texts: Sequence[str]) -> list[Vector]:
        try:
            async with asyncio.timeout(seconds):
                return await self._embed(texts, seconds)
        except TimeoutError:
            raise Unavailable(f"{self.model_id} did not answer within {seconds:g} s. Try again later.") from None

    async def _embed(self, texts: Sequence[str], seconds: float) -> list[Vector]:
        client = await self._sdk.client()
        vectors: list[Vector] = []
        for batch in _batches([_shortened(text) for text in texts]):
            most = sum(len(text.encode()) for text in batch)  # no token is shorter than a byte
            request = partial(self._request, client, batch, most, seconds * SHARE_OF_ONE_TRY)
            vectors += await self._guard.ask(self._namespace, FEATURE, most, seconds, request)
        return vectors

    async def _request(
        self, client: AsyncOpenAI, texts: Sequence[str], most: int, seconds: float
    ) -> tuple[list[Vector], Tokens]:
        import numpy as np

        with self._sdk.translated():
            answer = await client.embeddings.create(model=MODEL, input=list(texts), timeout=seconds)
            # The SDK hands on whatever came, down to plain text.
            if not getattr(answer, "data", None):
                raise OPENAI.unreadable()
            found = sorted(answer.data, key=lambda entry: entry.index)
            vectors = np.array([entry.embedding for entry in found], np.float32)
        if vectors.shape != (len(texts), DIMENSIONS):
            raise OPENAI.unreadable()
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(vectors).all() or not lengths.all():
            raise OPENAI.unreadable()
        # Servers that are only compatible may not say what they took.
        return list(vectors / lengths), Tokens(answer.usage.prompt_tokens if answer.usage else most, 0)


def _shortened(text: str) -> str:
    """A text that the provider takes: of one that is too long, its beginning, as the local model does."""
    return text if estimate_tokens(text, english=False) <= TOKENS_PER_TEXT else text[:TOKENS_PER_TEXT]


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts that fit into one request."""
    batch: list[str] = []
    tokens = 0
    for text in texts:
        size = estimate_tokens(text, english=False)
        if batch and (len(batch) == TEXTS_PER_REQUEST or tokens + size > TOKENS_PER_REQUEST):
            yield batch
            batch, tokens = [], 0
        batch.append(text)
        tokens += size
    if batch:
        yield batch
