"""Any embedding model: folders and servers of OpenAI's protocol with vectors of any size, and switches between them."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from recollect import origin
from recollect.engine import Engine
from recollect.errors import Invalid, Misconfigured
from recollect.flows.indexing import model_switch
from recollect.memory.index import giants
from recollect.origin import Reach
from recollect.settings import Settings
from recollect.storage.sql import Query
from tests.flows.talk import say_all
from tests.inference.onnx_files import minilm_folder
from tests.inference.test_model_folders import unigram_folder
from tests.llm_servers import ProviderServer, provider_server

SAID = [f"Fact {n}: the {thing} is kept in room {n}." for n, thing in enumerate(["lamp", "boat", "harp", "sled"] * 3)]

pytestmark = [
    pytest.mark.parametrize("pooling", ["session"], indirect=True),
    pytest.mark.unindexed("its model is one that only it knows: nobody else can index for it, nor it for others"),
]

SIZES = Query.named(
    "test.sizes",
    "select model, vector_dims(embedding) as size, count(*) from passage_vectors where namespace = :namespace "
    "group by model, size",
)


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    """A server of one's own, which wants no key."""
    with provider_server() as provider:
        provider.key = None
        yield provider


@pytest.fixture
def settings(settings: Settings, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(model_switch, "GRACE", timedelta(0))
    return settings.model_copy(update={"openai_base_url": provider.openai_url})


@pytest.fixture
async def filled(engine: Engine, namespace: str) -> Engine:
    await say_all(engine, namespace, "ann", *SAID)
    await engine.indexer.flush(namespace)
    return engine


async def sizes(engine: Engine, namespace: str) -> dict[str, tuple[int, int]]:
    async with engine.database.reading(namespace) as db:
        return {row["model"]: (row["size"], row["count"]) for row in await db.all(SIZES)}


async def finds_by_meaning(engine: Engine, namespace: str) -> bool:
    found = await engine.recall.recall(namespace, "lamp room 4", explain=True)
    assert found.degraded is None
    return found.by_meaning and found.memories[0].text == SAID[4]


async def test_models_of_any_size_on_a_server_without_a_key(
    filled: Engine, namespace: str, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(giants, "THRESHOLD", 10)
    for size in (64, 768, 1024, 3072):
        provider.dimensions = size
        assert await filled.embeddings.run(namespace, f"openai:org/model:{size}")
        assert await filled.embeddings.sweep(namespace)
        assert await sizes(filled, namespace) == {f"openai:org/model:{size}": (size, len(SAID))}
        async with filled.database.reading(namespace) as db:
            assert {giant.dimensions for giant in await filled.capabilities.giants.known(db)} == {size}
        assert await finds_by_meaning(filled, namespace)
    assert not any("dimensions" in asked.body for asked in provider.requests)
    assert max(len(asked.body["input"]) for asked in provider.requests) <= 32


async def test_a_new_namespace_begins_with_a_model_of_a_server(
    settings: Settings, namespace: str, provider: ProviderServer
) -> None:
    provider.dimensions = 768
    engine = await Engine.open(settings.model_copy(update={"embedding_model": "openai:nomic-embed-text@256"}))
    await say_all(engine, namespace, "ann", *SAID)
    await engine.indexer.flush(namespace)
    assert await sizes(engine, namespace) == {"openai:nomic-embed-text@256": (256, len(SAID))}
    assert await finds_by_meaning(engine, namespace)
    assert {asked.body["dimensions"] for asked in provider.requests} == {256}
    await engine.close()


async def test_an_answer_of_another_size_is_refused_and_keyword_search_goes_on(
    filled: Engine, namespace: str, provider: ProviderServer
) -> None:
    provider.dimensions = 64
    await filled.embeddings.run(namespace, "openai:small")
    provider.dimensions = 768
    found = await filled.recall.recall(namespace, "lamp room 4")
    assert found.memories[0].text == SAID[4]
    assert found.degraded is not None
    assert "openai:small answered with 768 dimensions instead of 64, so it is another model" in found.degraded
    await say_all(filled, namespace, "ann", "The lamp was sold.")
    with pytest.raises(Misconfigured, match="switch to another model"):
        await filled.indexer.flush(namespace)
    assert {size for size, _ in (await sizes(filled, namespace)).values()} == {64, 384}


async def test_sizes_that_cannot_be_had_are_refused_before_anything_begins(
    filled: Engine, namespace: str, provider: ProviderServer
) -> None:
    provider.dimensions, provider.can_shorten = 4096, False
    with pytest.raises(Misconfigured, match=r"4,096 dimensions, and at most 3,072 can be stored: .* openai:huge@1024"):
        await filled.embeddings.run(namespace, "openai:huge")
    provider.dimensions = 1024
    with pytest.raises(Misconfigured, match="it cannot shorten its vectors, so name it openai:large"):
        await filled.embeddings.run(namespace, "openai:large@512")
    assert (await filled.embeddings.status(namespace)).next is None


async def test_from_local_to_a_folder_and_back_while_searches_go_on(
    filled: Engine, namespace: str, tmp_path: Path
) -> None:
    done = False
    searches = 0

    async def search() -> None:
        nonlocal searches
        while not done:
            found = await filled.recall.recall(namespace, "Where is the harp kept?", top_k=3)
            assert found.by_meaning
            assert all("harp" in memory.text for memory in found.memories)
            searches += 1

    searcher = asyncio.create_task(search())
    for name, begins in ((f"onnx:{minilm_folder(tmp_path / 'mine')}", "onnx:mine-"), ("local", "all-MiniLM")):
        assert await filled.embeddings.run(namespace, name)
        assert await filled.embeddings.sweep(namespace)
        (model,) = await sizes(filled, namespace)
        assert model.startswith(begins)
        assert await finds_by_meaning(filled, namespace)
    done = True
    await searcher
    assert searches > 0


async def test_an_engine_without_the_folder_says_so_and_one_with_it_searches(
    filled: Engine, settings: Settings, namespace: str, tmp_path: Path
) -> None:
    name = f"onnx:{minilm_folder(tmp_path / 'mine')}"
    await filled.embeddings.run(namespace, name)
    without = await Engine.open(settings)
    found = await without.recall.recall(namespace, "lamp room 4")
    assert found.degraded is not None
    assert "is not installed here: set RECOLLECT_EMBEDDING_MODEL to onnx: and its folder" in found.degraded
    await without.close()
    having = await Engine.open(settings.model_copy(update={"embedding_model": name}))
    assert await finds_by_meaning(having, namespace)
    await having.close()


async def test_a_multilingual_model_finds_what_was_said_in_another_language(
    settings: Settings, namespace: str, tmp_path: Path
) -> None:
    name = f"onnx:{unigram_folder(tmp_path / 'multilingual-e5-small')}"
    engine = await Engine.open(settings.model_copy(update={"embedding_model": name}))
    await say_all(engine, namespace, "ann", "abejas", "miel")
    await engine.indexer.flush(namespace)
    found = await engine.recall.recall(namespace, "蜜蜂")
    assert found.by_meaning
    assert found.memories[0].text == "abejas"
    await engine.close()


async def test_a_given_vector_that_is_too_short_for_the_model_is_refused(
    filled: Engine, namespace: str, provider: ProviderServer
) -> None:
    provider.dimensions = 3072
    await filled.embeddings.run(namespace, "openai:text-embedding-3-large")
    with pytest.raises(
        Invalid, match=r"query_embedding has 1536 numbers, .* 3,072 dimensions, so .* Omit query_embedding"
    ):
        await filled.cognition.hybrid_search(namespace, "lamp", [1.0] + [0.0] * 1535)
    source = await filled.cognition.store_dialogue(namespace, "talk", "user", "A lamp.")
    await filled.cognition.compress(namespace, "The lamp is in room 4.", [source.seq])
    found = await filled.cognition.hybrid_search(namespace, "Where is the lamp?")
    assert found.semantic_results_count == 1
    assert found.query_dimensions == 3072


@pytest.mark.parametrize("folder", ["absent", ""])
async def test_a_setting_with_a_bad_folder_is_one_sentence(settings: Settings, tmp_path: Path, folder: str) -> None:
    with pytest.raises(Misconfigured, match=r"is not a folder|has no ONNX file"):
        await Engine.open(settings.model_copy(update={"embedding_model": f"onnx:{tmp_path / folder}"}))


async def test_an_index_is_built_for_a_model_that_has_not_said_its_size_yet(
    settings: Settings, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = minilm_folder(tmp_path / "mine")
    (folder / "config.json").unlink()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    named = settings.model_copy(update={"embedding_model": f"onnx:{folder}"})
    first = await Engine.open(named)
    await say_all(first, namespace, "ann", *SAID)
    await first.indexer.flush(namespace)
    await first.close()
    monkeypatch.setattr(giants, "THRESHOLD", 10)
    later = await Engine.open(named)
    assert {giant.dimensions for giant in await later.maintenance.build_indexes(namespace)} == {384}
    await later.close()


async def test_a_question_to_another_namespace_is_paid_by_the_callers_own(settings: Settings, namespace: str) -> None:
    engine = await Engine.open(settings.model_copy(update={"embedding_model": "openai:nomic-embed-text@256"}))
    team = f"{namespace}-team"
    await say_all(engine, team, "ann", *SAID)
    await engine.indexer.flush(team)
    before = await engine.spending.spent_today(team)
    with origin.acting("rest", "reader", "read", reach=Reach(namespace, frozenset({team}))):
        found = await engine.recall.recall(namespace, "lamp room 4", namespaces=[team])
    assert found.degraded is None
    assert await engine.spending.spent_today(team) == before > 0
    assert await engine.spending.spent_today(namespace) > 0
    await engine.close()
