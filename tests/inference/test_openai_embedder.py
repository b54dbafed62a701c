"""OpenAI's embeddings through its SDK: unit vectors in order, in batches, paid by the namespace."""

import socket
from collections.abc import Iterator

import numpy as np
import pytest

from recollect.engine import Engine
from recollect.errors import Misconfigured, Unavailable
from recollect.inference.embedding import openai as openai_embedder
from recollect.inference.embedding.openai import OpenAiEmbedder, Patience
from recollect.inference.providers import Providers
from tests.llm_servers import Failure, ProviderServer, QuickClock, Raw, Silence, Truncated, embedding, provider_server

MODEL = "openai:text-embedding-3-small"

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with provider_server() as provider:
        yield provider


@pytest.fixture
def clock() -> QuickClock:
    return QuickClock()


@pytest.fixture
def embedder(engine: Engine, provider: ProviderServer, clock: QuickClock, namespace: str) -> OpenAiEmbedder:
    return Providers(provider.configure(engine.settings), engine.spending, engine.pacing, clock).embedder(
        MODEL, namespace
    )


async def test_vectors_come_in_order_and_are_counted(
    embedder: OpenAiEmbedder, provider: ProviderServer, engine: Engine, namespace: str
) -> None:
    texts = ["one two", "three", "four five six"]
    vectors = await embedder.embed_documents(texts)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.allclose(vector, embedding(text), atol=1e-6)
        assert vector.shape == (embedder.dimensions,) == (1536,)
    assert provider.requests[0].body["model"] == "text-embedding-3-small"
    (line,) = await engine.spending.lines(namespace, 1)
    assert (line.feature, line.model, line.requests, line.input_tokens) == ("embeddings", embedder.model_id, 1, 6)


async def test_many_texts_go_in_batches_that_wait_for_their_turn(
    embedder: OpenAiEmbedder, provider: ProviderServer, clock: QuickClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_embedder, "TEXTS_PER_REQUEST", 10)
    monkeypatch.setattr(openai_embedder, "DOCUMENTS", Patience(seconds=600, one_try=20))
    texts = [f"text number {n}" for n in range(61)]
    vectors = await embedder.embed_documents(texts)
    assert np.allclose(vectors[60], embedding(texts[60]), atol=1e-6)
    assert len(provider.requests) == 7
    assert len(clock.waits) == 6


async def test_a_text_that_is_too_long_is_embedded_by_its_beginning(
    embedder: OpenAiEmbedder, provider: ProviderServer
) -> None:
    await embedder.embed_query("word " * 20_000)
    assert len(provider.requests[0].body["input"][0]) == openai_embedder.TOKENS_PER_TEXT


@pytest.mark.parametrize(
    "hiccup", [Failure(429, retry_after=1), Failure(500), Truncated(), Raw('{"object": "list", "data": []}')]
)
async def test_what_may_pass_is_tried_again(
    embedder: OpenAiEmbedder, provider: ProviderServer, hiccup: Failure | Truncated | Raw
) -> None:
    provider.script(hiccup)
    assert (await embedder.embed_query("hello")).shape == (1536,)
    assert len(provider.requests) == 2


async def test_vectors_of_another_size_are_refused(embedder: OpenAiEmbedder, provider: ProviderServer) -> None:
    small = '{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[1.0,0.0]}],'
    provider.answer = lambda asked: Raw(small + '"usage":{"prompt_tokens":1,"total_tokens":1}}')
    with pytest.raises(Misconfigured, match="answered with 2 dimensions instead of 1,536, so it is another model"):
        await embedder.embed_query("hello")
    assert len(provider.requests) == 1


async def test_without_a_key_the_error_names_the_setting(engine: Engine, namespace: str) -> None:
    with pytest.raises(Misconfigured, match="set RECOLLECT_OPENAI_API_KEY"):
        await engine.providers.embedder(MODEL, namespace).embed_query("hello")


async def test_a_search_does_not_wait_for_a_provider_that_refuses_the_connection(
    engine: Engine, provider: ProviderServer, clock: QuickClock, namespace: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings = provider.configure(engine.settings, openai_base_url=f"http://127.0.0.1:{port}/v1")
    embedder = Providers(settings, engine.spending, engine.pacing, clock).embedder(MODEL, namespace)
    with pytest.raises(Unavailable, match="Cannot reach OpenAI"):
        await embedder.embed_query("hello")
    assert clock.waits == []


async def test_only_the_first_search_waits_for_a_provider_that_is_silent(
    embedder: OpenAiEmbedder, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_embedder, "QUERY", Patience(seconds=3.0, one_try=0.1))
    provider.answer = lambda asked: Silence()
    with pytest.raises(Unavailable, match="did not answer in time"):
        await embedder.embed_query("hello")
    asked = len(provider.requests)
    assert asked > 1
    with pytest.raises(Unavailable, match="is skipped for now"):
        await embedder.embed_query("hello")
    assert len(provider.requests) == asked
