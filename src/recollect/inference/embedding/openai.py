"""OpenAI's embeddings: an alternative to the local model, for deployments that may send memories to OpenAI."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from recollect.errors import Unavailable
from recollect.inference.failures import OPENAI
from recollect.inference.requests.meter import Tokens
from recollect.language.tokens import estimate_tokens

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from recollect.inference.embedding.embedder import Vector
    from recollect.inference.requests.guard import Guard
    from recollect.inference.sdk import Sdk

# The numbers in a vector of each model. Settings list the same models.
DIMENSIONS = {"openai:text-embedding-3-small": 1536}
FEATURE = "embeddings"

# The provider takes 2,048 texts and 300,000 tokens a request, and 8,192 tokens a text.
TEXTS_PER_REQUEST = 256
TOKENS_PER_REQUEST = 100_000
TOKENS_PER_TEXT = 8_000


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds for a request, however often it is tried, and for one try."""

    seconds: float
    one_try: float


# A search waits, and keyword search can answer; a late answer is often quick on a second try.
QUERY = Patience(seconds=3.0, one_try=1.2)

# Indexing keeps others from deleting meanwhile.
DOCUMENTS = Patience(seconds=25.0, one_try=20.0)


class OpenAiEmbedder:
    """Embeds for one namespace, which pays for it."""

    def __init__(self, model_id: str, sdk: Sdk, guard: Guard, namespace: str) -> None:
        self.model_id = model_id
        self.dimensions = DIMENSIONS[model_id]
        self._sdk = sdk
        self._guard = guard
        self._namespace = namespace

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        return await self._embed(texts, DOCUMENTS)

    async def embed_query(self, text: str) -> Vector:
        return (await self._embed([text], QUERY, hurried=True))[0]

    async def _embed(self, texts: Sequence[str], patience: Patience, *, hurried: bool = False) -> list[Vector]:
        client = await self._sdk.client()  # the first time a second, which is not the provider's
        batches: list[list[str]] = []
        tokens = 0
        for text in texts:
            size = estimate_tokens(text, english=False)
            if size > TOKENS_PER_TEXT:
                # Its beginning, as the local model does.
                text = text[:TOKENS_PER_TEXT]
                size = estimate_tokens(text, english=False)
            if not batches or len(batches[-1]) == TEXTS_PER_REQUEST or tokens + size > TOKENS_PER_REQUEST:
                batches.append([])
                tokens = 0
            batches[-1].append(text)
            tokens += size
        vectors: list[Vector] = []
        try:
            async with asyncio.timeout(patience.seconds):
                for batch in batches:
                    most = sum(len(text.encode()) for text in batch)  # no token is shorter than a byte
                    request = partial(self._request, client, batch, most, patience.one_try)
                    vectors += await self._guard.ask(
                        self._namespace, FEATURE, most, patience.seconds, request, hurried=hurried
                    )
        except TimeoutError:
            late = f"{self.model_id} did not answer within {patience.seconds:g} s. Try again later."
            raise Unavailable(late) from None
        return vectors

    async def _request(
        self, client: AsyncOpenAI, texts: Sequence[str], most: int, seconds: float
    ) -> tuple[list[Vector], Tokens]:
        import numpy as np

        model = self.model_id.partition(":")[2]
        with self._sdk.translated():
            answer = await client.embeddings.create(model=model, input=list(texts), timeout=seconds)
            # The SDK hands on whatever came, down to plain text.
            if not getattr(answer, "data", None):
                raise OPENAI.unreadable()
            found = sorted(answer.data, key=lambda entry: entry.index)
            vectors = np.array([entry.embedding for entry in found], np.float32)
        if vectors.shape != (len(texts), self.dimensions):
            raise OPENAI.unreadable()
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(vectors).all() or not lengths.all():
            raise OPENAI.unreadable()
        # Servers that are only compatible may not say what they took.
        return list(vectors / lengths), Tokens(answer.usage.prompt_tokens if answer.usage else most, 0)
