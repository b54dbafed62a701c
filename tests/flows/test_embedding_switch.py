"""The move from one embedding model to another: searches go on, nothing is mixed, and it can be taken up again."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest

from recollect.engine import Engine
from recollect.errors import Conflict, Invalid, LimitReached, Misconfigured, Unavailable
from recollect.flows.indexing import model_switch as embedding_switch
from recollect.memory.index import giants
from recollect.memory.index.search import Scope
from recollect.settings import Settings
from recollect.storage.sql import Query
from tests.flows.talk import say_all
from tests.llm_servers import Failure, ProviderServer, Reply, hurry, provider_server
from tests.memory.test_passages import counts

OPENAI = "openai:text-embedding-3-small"
SAID = [f"Fact {n}: the {thing} is kept in room {n}." for n, thing in enumerate(["lamp", "boat", "harp", "sled"] * 18)]

pytestmark = [
    pytest.mark.parametrize("pooling", ["session"], indirect=True),
    pytest.mark.unindexed(
        "its model is a provider that only it knows: nobody else can index for it, nor it for others"
    ),
]

BY_MODEL = Query.named(
    "test.by_model", "select model, count(*) from passage_vectors where namespace = :namespace group by model"
)


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with provider_server() as provider:
        yield provider


@pytest.fixture
def settings(settings: Settings, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name, value in provider.environment().items():
        monkeypatch.setenv(name, value)
    hurry(monkeypatch)
    monkeypatch.setattr(embedding_switch, "GRACE", timedelta(0))
    return Settings()


@pytest.fixture
async def filled(engine: Engine, namespace: str) -> Engine:
    await say_all(engine, namespace, "ann", *SAID)
    await engine.indexer.flush(namespace)
    return engine


async def by_model(engine: Engine, namespace: str) -> dict[str, int]:
    async with engine.database.reading(namespace) as db:
        return {row["model"]: row["count"] for row in await db.all(BY_MODEL)}


async def test_everything_is_embedded_anew_and_found_by_the_new_model(filled: Engine, namespace: str) -> None:
    heard: list[tuple[int, int]] = []
    assert filled.embedders.local is not None
    local = filled.embedders.local.model_id
    assert await filled.embeddings.run(namespace, OPENAI, lambda done, total: heard.append((done, total)))
    assert heard[-1] == (len(SAID), len(SAID))
    assert await by_model(filled, namespace) == {local: len(SAID), OPENAI: len(SAID)}
    filled.embedders.local = None
    found = await filled.recall.recall(namespace, "lamp room 4", explain=True)
    assert found.by_meaning
    assert found.memories[0].text == SAID[4]
    assert found.memories[0].explanation is not None
    assert found.memories[0].explanation.rank_by_meaning == 1
    assert await filled.embeddings.sweep(namespace)
    assert await by_model(filled, namespace) == {OPENAI: len(SAID)}


async def test_what_is_written_during_and_after_a_switch_ends_in_the_new_model_once(
    filled: Engine, namespace: str
) -> None:
    more = [f"Something new about room {n}." for n in range(60)]
    switching = asyncio.create_task(filled.embeddings.run(namespace, OPENAI))
    for text in more:
        await say_all(filled, namespace, "ann", text)
        await filled.indexer.flush(namespace)
    await switching
    stored = await filled.cognition.store_dialogue(namespace, "talk", "user", "A source.")
    await filled.cognition.compress(namespace, "An insight of after the switch.", [stored.seq])
    await filled.indexer.flush(namespace)
    assert await filled.embeddings.sweep(namespace)
    total = (await counts(filled, namespace))["passages"]
    assert total == len(SAID) + len(more) + 2
    assert await by_model(filled, namespace) == {OPENAI: total}


async def test_searches_go_on_meanwhile_and_never_mix_models(filled: Engine, namespace: str) -> None:
    done = False
    searches = 0

    async def search() -> None:
        nonlocal searches
        while not done:
            found = await filled.recall.recall(namespace, "Where is the harp kept?", top_k=5)
            assert found.by_meaning
            assert len(found.memories) == 5
            assert all("harp" in memory.text for memory in found.memories)
            searches += 1

    searcher = asyncio.create_task(search())
    for model in (OPENAI, "local", OPENAI):
        await filled.embeddings.run(namespace, model)
        assert await filled.embeddings.sweep(namespace)
    done = True
    await searcher
    assert searches > 0


async def test_two_who_switch_at_once_share_the_work(filled: Engine, namespace: str, provider: ProviderServer) -> None:
    await asyncio.gather(*(filled.embeddings.run(namespace, OPENAI) for _ in range(2)))
    # The first to finish leaves what the other still embeds to the indexer.
    await filled.indexer.flush(namespace)
    assert (await by_model(filled, namespace))[OPENAI] == len(SAID)
    assert await filled.embeddings.sweep(namespace)


async def test_two_claims_at_once_share_no_passage_and_do_not_wait(filled: Engine, namespace: str) -> None:
    old = await filled.embeddings._begin(namespace, OPENAI)
    assert old is not None
    models = filled.capabilities.embedding_models
    async with filled.database.transaction(namespace) as one, filled.database.transaction(namespace) as other:
        first = await models.claim(one, old, OPENAI, 0, 40)
        second = await models.claim(other, old, OPENAI, 0, 40)
    assert (len(first), len(second)) == (40, len(SAID) - 40)
    assert not {passage.id for passage in first} & {passage.id for passage in second}


async def test_a_provider_that_fails_leaves_the_old_model_and_the_rest_is_done_later(
    filled: Engine, namespace: str, provider: ProviderServer
) -> None:
    before = (await filled.embeddings.status(namespace)).active
    provider.script(Reply(""))  # to the trial
    provider.answer = lambda asked: Failure(503)
    with pytest.raises(Unavailable, match="503"):
        await filled.embeddings.run(namespace, OPENAI)
    state = await filled.embeddings.status(namespace)
    assert (state.active, state.next) == (before, OPENAI)
    assert (await filled.recall.recall(namespace, "lamp")).by_meaning


async def test_going_back_half_way_leaves_nothing_of_the_other_model(filled: Engine, namespace: str) -> None:
    new = await filled.namespace_models.embedders.require(OPENAI, namespace)
    old = await filled.embeddings._begin(namespace, OPENAI)
    assert old is not None
    await filled.embeddings._batch(namespace, old, new, 0)
    assert (await by_model(filled, namespace))[OPENAI] == embedding_switch.BATCH
    assert not await filled.embeddings.run(namespace, "local")
    assert await filled.embeddings.sweep(namespace)
    assert await by_model(filled, namespace) == {old: len(SAID)}
    with pytest.raises(Conflict, match="Another switch was made in the meantime"):
        await filled.embeddings._batch(namespace, old, new, 0)


async def test_half_way_a_recall_ranks_as_before(filled: Engine, namespace: str) -> None:
    async def scores() -> list[tuple[str, float]]:
        return [(memory.id, memory.score) for memory in (await filled.recall.recall(namespace, "lamp")).memories]

    before = await scores()
    new = await filled.namespace_models.embedders.require(OPENAI, namespace)
    old = await filled.embeddings._begin(namespace, OPENAI)
    assert old is not None
    await filled.embeddings._batch(namespace, old, new, 0)
    assert await scores() == before


async def test_a_passage_that_is_forgotten_meanwhile_leaves_no_vector(filled: Engine, namespace: str) -> None:
    document = await filled.remember.document(namespace, "Soon forgotten.", None, None)
    await filled.indexer.flush(namespace)
    switching = asyncio.create_task(filled.embeddings.run(namespace, OPENAI))
    await filled.forget.item(namespace, str(document))
    await switching
    assert await filled.embeddings.sweep(namespace)
    assert await by_model(filled, namespace) == {OPENAI: len(SAID)}


async def test_old_vectors_stay_while_a_search_may_read_them(
    filled: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_switch, "GRACE", timedelta(hours=1))
    meaning = (await filled.namespace_models.question(namespace, "lamp")).meaning
    assert meaning is not None
    await filled.embeddings.run(namespace, OPENAI)
    assert not await filled.embeddings.sweep(namespace)
    left = await filled.embeddings.seconds_to_sweep(namespace)
    assert left is not None
    assert left > 3000
    async with filled.database.searching(namespace) as db:
        assert len(await filled.recall._search.by_meaning(db, Scope(), meaning, 500)) == len(SAID)


async def test_a_giant_has_an_index_of_the_new_size_before_searches_ask_for_it(
    filled: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(giants, "THRESHOLD", 50)
    old = await filled.maintenance.build_indexes(namespace)
    await filled.embeddings.run(namespace, OPENAI)
    meaning = (await filled.namespace_models.question(namespace, "the boat in room 5")).meaning
    assert meaning is not None
    async with filled.database.searching(namespace) as db:
        giant = await filled.capabilities.giants.find(db, "ann", OPENAI)
        assert giant is not None
        assert giant.dimensions == 1536
        await db._connection.execute("set local enable_sort = off; set local enable_seqscan = off")
        nearest = await filled.capabilities.giants.nearest(db, giant, meaning.vector, 10, 10)
        assert nearest == await filled.recall._search.by_meaning(db, Scope(owner="ann"), meaning, 10)
    assert await filled.embeddings.sweep(namespace)
    async with filled.database.unscoped() as connection:
        for giant in old:
            assert await connection.fetchval("select to_regclass($1)", giant.index_name) is None


async def test_while_the_provider_is_down_words_decide_and_new_passages_wait(
    filled: Engine, namespace: str, provider: ProviderServer
) -> None:
    await filled.embeddings.run(namespace, OPENAI)
    provider.answer = lambda asked: Failure(503)
    found = await filled.recall.recall(namespace, "lamp room 4")
    assert not found.by_meaning
    assert found.memories[0].text == SAID[4]
    source = (await filled.cognition.store_dialogue(namespace, "talk", "user", "The ferry leaves at nine.")).seq
    stored = await filled.cognition.compress(namespace, "The ferry: nine o'clock.", [source])
    assert stored.embedding_status == "pending"
    with pytest.raises(Unavailable):
        await filled.indexer.flush(namespace)
    found = await filled.recall.recall(namespace, "When does the ferry leave?")
    assert "ferry" in found.memories[0].text


async def test_a_model_that_cannot_embed_is_refused_before_anything_begins(
    filled: Engine, namespace: str, provider: ProviderServer
) -> None:
    provider.answer = lambda asked: Failure(404, message="The model `gpt-4o` does not embed.")
    with pytest.raises(Misconfigured, match="does not know the model or URL"):
        await filled.embeddings.run(namespace, "openai:gpt-4o")
    assert (await filled.embeddings.status(namespace)).next is None


async def test_what_names_no_model_and_one_without_a_key_are_refused(
    filled: Engine, namespace: str, settings: Settings
) -> None:
    with pytest.raises(Invalid, match=r"MODEL must be local, onnx:FOLDER or openai:MODEL\[@DIMENSIONS\], not 'gpt-4o'"):
        await filled.embeddings.run(namespace, "gpt-4o")
    keyless = await Engine.open(settings.model_copy(update={"openai_api_key": None, "openai_base_url": None}))
    with pytest.raises(Misconfigured, match="set RECOLLECT_OPENAI_API_KEY"):
        await keyless.embeddings.run(namespace, OPENAI)
    await keyless.close()


async def test_a_new_namespace_begins_with_the_model_of_the_setting_and_keeps_it(
    settings: Settings, namespace: str
) -> None:
    first = await Engine.open(settings.model_copy(update={"embedding_model": OPENAI}))
    await say_all(first, namespace, "ann", "Bees make honey.")
    await first.indexer.flush(namespace)
    await first.close()
    later = await Engine.open(settings)
    await say_all(later, namespace, "ann", "Bears eat honey.")
    await later.indexer.flush(namespace)
    assert await by_model(later, namespace) == {OPENAI: 2}
    await later.close()


async def rounds(engine: Engine) -> AsyncIterator[int]:
    while done := await engine.indexer.round():
        yield done


async def test_no_sentence_in_a_log_names_the_namespace_that_an_indexer_works_for(
    settings: Settings, namespace: str, provider: ProviderServer, caplog: pytest.LogCaptureFixture
) -> None:
    """An indexer works for every namespace, and a program without logging prints the sentence to its own user."""
    with_key = await Engine.open(settings.model_copy(update={"embedding_model": OPENAI, "llm_daily_tokens": 1}))
    await say_all(with_key, namespace, "ann", "Bees make honey.")
    # What other tests have left may be done first.
    with pytest.raises(LimitReached, match="token budget"):
        [done async for done in rounds(with_key)]
    unlimited = await Engine.open(settings.model_copy(update={"embedding_model": OPENAI}))
    await unlimited.indexer.flush(namespace)
    keyless = await Engine.open(settings.model_copy(update={"openai_api_key": None, "openai_base_url": None}))
    assert await keyless.namespace_models.embedder(namespace) is None
    told = [record for record in caplog.records if getattr(record, "namespace", None) == namespace]
    assert list(dict.fromkeys(record.getMessage().partition(":")[0] for record in told)) == [
        "Indexing of a namespace failed",
        f"The embedding model {OPENAI.partition(':')[0]}",
    ]
    assert not [record for record in caplog.records if namespace in record.getMessage()]
    for engine in (with_key, unlimited, keyless):
        await engine.close()
