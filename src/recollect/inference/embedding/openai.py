"""Embeddings of OpenAI, or of any server that speaks its protocol: an alternative to models on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from recollect.checks import MAX_DIMENSIONS
from recollect.errors import Misconfigured, Unavailable
from recollect.inference.failures import OPENAI
from recollect.inference.requests.meter import Tokens
from recollect.language.tokens import estimate_tokens

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from recollect.inference.embedding.embedder import Vector
    from recollect.inference.requests.guard import Guard
    from recollect.inference.sdk import Sdk

# The numbers in a vector of OpenAI's models; those of others are learned from their first answer.
DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
FEATURE = "embeddings"

# The provider takes 2,048 texts and 300,000 tokens a request, and 8,192 tokens a text; a server of
# one's own may take no more than 32 texts.
TEXTS_PER_REQUEST = 256
TEXTS_PER_OWN_REQUEST = 32
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


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model as users name it, which is also the id of its space."""

    model_id: str
    model: str
    dimensions: int | None
    """What the server is asked for; None for as many as the model has."""


class OpenAiEmbedder:
    """Embeds for one namespace, which pays for it."""

    def __init__(
        self,
        name: ModelName,
        sdk: Sdk,
        guard: Guard,
        namespace: str,
        *,
        stored_dimensions: int | None = None,
        own_server: bool = False,
    ) -> None:
        self.model_id = name.model_id
        self.dimensions = name.dimensions or stored_dimensions or DIMENSIONS.get(name.model)
        self._name = name
        self._sdk = sdk
        self._guard = guard
        self._namespace = namespace
        self._own_server = own_server

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        return await self._embed(texts, DOCUMENTS)

    async def embed_query(self, text: str) -> Vector:
        return (await self._embed([text], QUERY, hurried=True))[0]

    async def _embed(self, texts: Sequence[str], patience: Patience, *, hurried: bool = False) -> list[Vector]:
        client = await self._sdk.client()  # the first time a second, which is not the provider's
        most_texts = TEXTS_PER_OWN_REQUEST if self._own_server else TEXTS_PER_REQUEST
        batches: list[list[str]] = []
        tokens = 0
        for text in texts:
            size = estimate_tokens(text, english=False)
            if size > TOKENS_PER_TEXT:
                # Its beginning, as the local model does.
                text = text[:TOKENS_PER_TEXT]
                size = estimate_tokens(text, english=False)
            if not batches or len(batches[-1]) == most_texts or tokens + size > TOKENS_PER_REQUEST:
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

        asked = {} if self._name.dimensions is None else {"dimensions": self._name.dimensions}
        with self._sdk.translated():
            answer = await client.embeddings.create(
                model=self._name.model,
                input=list(texts),
                timeout=seconds,
                **asked,  # type: ignore[arg-type]
            )
            # The SDK hands on whatever came, down to plain text.
            if not getattr(answer, "data", None):
                raise OPENAI.unreadable()
            found = sorted(answer.data, key=lambda entry: entry.index)
            vectors = np.array([entry.embedding for entry in found], np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise OPENAI.unreadable()
        self._check_dimensions(vectors.shape[1])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(vectors).all() or not lengths.all():
            raise OPENAI.unreadable()
        # Servers that are only compatible may not say what they took.
        return list(vectors / lengths), Tokens(answer.usage.prompt_tokens if answer.usage else most, 0)

    def _check_dimensions(self, found: int) -> None:
        """Learn how many there are, and accept no other number from then on: such vectors could not be compared."""
        if found > MAX_DIMENSIONS:
            raise Misconfigured(
                f"{self.model_id} has {found:,} dimensions, and at most {MAX_DIMENSIONS:,} can be stored: if it can "
                f"shorten its vectors, name it openai:{self._name.model}@1024"
            )
        if self._name.dimensions not in (None, found):
            raise Misconfigured(
                f"{self.model_id} answered with {found:,} dimensions: it cannot shorten its vectors, so name it "
                f"openai:{self._name.model}"
            )
        if self.dimensions not in (None, found):
            raise Misconfigured(
                f"{self.model_id} answered with {found:,} dimensions instead of {self.dimensions:,}, so it is another "
                f"model than the stored vectors are from: check {OPENAI.url_setting}, or switch to another model with "
                "`recollect embeddings switch`"
            )
        self.dimensions = found
