"""Forget: an item goes with everything by which it could be found, and nothing else does."""

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid, NotFound
from recollect.flows.forgetting.receipts import Receipt
from recollect.flows.indexing.passage_writer import PassageWriter, Prepared
from recollect.memory.index.passages import Source, analyse
from recollect.storage.sql import Query
from tests.flows.talk import say_all
from tests.memory.test_passages import TABLES, counts, statistics

SAME_NUMBER = Query.named(
    "test.same_number",
    "insert into episodes (namespace, id, query, reward, reflection) overriding system value"
    " values (:namespace, :id, 'Parrots?', 0.5, 'Yes.')",
)


async def recalled(engine: Engine, namespace: str, question: str) -> dict[str, str]:
    """What is recalled: text to id."""
    found = await engine.recall.recall(namespace, question)
    return {memory.text: memory.id for memory in found.memories}


async def test_a_message_is_forgotten_and_the_others_keep_their_positions(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "Cats sleep.", "Cats purr.", "Cats climb.")
    await engine.indexer.flush(namespace)
    cats = await recalled(engine, namespace, "cats")
    receipt = await engine.forget.item(namespace, cats["Cats purr."])
    assert receipt == Receipt(f"message:{cats['Cats purr.']}", {"messages": 1, "passages": 1})
    assert set(await recalled(engine, namespace, "cats purr")) == {"Cats sleep.", "Cats climb."}
    await say_all(engine, namespace, "ann", "Cats eat.")
    async with engine.database.reading(namespace) as db:
        left = await engine.capabilities.log.recent(db, "talk", 10)
    assert [(message.content, message.position) for message in left] == [
        ("Cats sleep.", 0),
        ("Cats climb.", 2),
        ("Cats eat.", 3),
    ]


@pytest.mark.parametrize("indexed", [True, False])
async def test_nothing_derived_from_a_forgotten_item_stays(engine: Engine, namespace: str, indexed: bool) -> None:
    message = await engine.cognition.store_dialogue(namespace, "talk", "Ann", "Dogs bark at night.")
    document = await engine.remember.document(namespace, "Dogs and cats. " * 200, None, None)
    insight = (await engine.cognition.compress(namespace, "Dogs bark.", [message.seq])).insight
    episode = (await engine.cognition.store_episode(namespace, "Why do dogs bark?", 0.5, "Ask them.")).episode
    if indexed:
        await engine.indexer.flush(namespace)
    for item_id in (str(document), f"insight:{insight.id}", f"episode:{episode.id}", str(message.id)):
        receipt = await engine.forget.item(namespace, item_id)
        assert receipt.what.endswith(item_id)
    assert await counts(engine, namespace) == dict.fromkeys(TABLES, 0)
    assert await statistics(engine, namespace) == {}
    assert await engine.cognition.newest_insights(namespace) == []
    assert await engine.cognition.raw(namespace) == []
    assert await engine.cognition.similar_episodes(namespace, "Why do dogs bark?", min_similarity=0.0) == []


async def test_a_number_is_an_insight_or_an_episode(engine: Engine, namespace: str) -> None:
    source = (await engine.cognition.store_dialogue(namespace, "talk", "user", "Whatever.")).seq
    insight = (await engine.cognition.compress(namespace, "Parrots talk.", [source])).insight
    assert (await engine.forget.item(namespace, str(insight.id))).what == f"insight:{insight.id}"
    episode = (await engine.cognition.store_episode(namespace, "Do parrots talk?", 0.5, "Yes.")).episode
    assert (await engine.forget.item(namespace, f" {episode.id} ")).what == f"episode:{episode.id}"


async def test_a_node_is_forgotten_with_its_edges(engine: Engine, namespace: str) -> None:
    for other in ("Bob", "Cara"):
        await engine.graph.add_edge(namespace, "Ann", other, "KNOWS")
    ann = (await engine.graph.add_node(namespace, "person", "Ann")).id
    receipt = await engine.forget.item(namespace, f"node:{ann}")
    # What it was before it got a label counts, too.
    assert receipt == Receipt(f"node:{ann}", {"graph_edges": 2, "graph_node_versions": 1, "graph_nodes": 1})
    with pytest.raises(NotFound):
        await engine.forget.item(namespace, f"node:{ann}")
    assert (await engine.graph.find_path(namespace, "Bob", "Cara")).paths == []


async def test_an_insight_whose_dialogue_goes_while_it_is_made_is_refused(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = await engine.cognition.store_dialogue(namespace, "talk", "user", "Dogs bark.")
    prepare = PassageWriter.prepare

    async def studied_too_late(self: PassageWriter, *arguments: str) -> Prepared:
        await engine.forget.item(namespace, f"message:{message.seq}")
        return await prepare(self, *arguments)

    monkeypatch.setattr(PassageWriter, "prepare", studied_too_late)
    with pytest.raises(NotFound, match="source_ids contains unknown dialogue ids"):
        await engine.cognition.compress(namespace, "Dogs bark.", [message.seq])
    assert await engine.cognition.newest_insights(namespace) == []


async def test_a_number_that_names_two_things_must_say_which(engine: Engine, namespace: str) -> None:
    source = (await engine.cognition.store_dialogue(namespace, "talk", "user", "Whatever.")).seq
    insight = (await engine.cognition.compress(namespace, "Parrots talk.", [source])).insight.id
    async with engine.database.transaction(namespace) as tx:
        await tx.all(SAME_NUMBER, id=insight)
        source_of_episode = Source("episode", str(insight), analyse("Parrots?"), datetime.now(UTC))
        await engine.capabilities.passages.add(tx, [source_of_episode])
    with pytest.raises(Invalid, match=f"episode:{insight} or insight:{insight}"):
        await engine.forget.item(namespace, str(insight))
    assert (await engine.forget.item(namespace, f"episode:{insight}")).what == f"episode:{insight}"
    assert (await engine.forget.item(namespace, str(insight))).what == f"insight:{insight}"


async def test_a_message_may_be_called_by_its_number(engine: Engine, namespace: str) -> None:
    message = await engine.cognition.store_dialogue(namespace, "talk", "user", "Whatever.")
    with pytest.raises(NotFound):
        await engine.forget.item(namespace, f"insight:{message.seq}")
    assert (await engine.forget.item(namespace, f"message:{message.seq}")).what == f"message:{message.id}"


async def test_what_is_forgotten_or_never_was_is_not_found(engine: Engine, namespace: str) -> None:
    document = str(await engine.remember.document(namespace, "Short-lived.", None, None))
    await engine.forget.item(namespace, document)
    unknown = (
        document,
        str(uuid4()),
        "99999999",
        "insight:99999999",
        "message:99999999",
        "no id",
        "insight:",
        "9" * 99,
    )
    for item_id in unknown:
        with pytest.raises(NotFound, match=item_id):
            await engine.forget.item(namespace, item_id)


@pytest.mark.parametrize(
    ("item_id", "named"), [("", "id is empty"), ("a\x00", "NUL"), ("x" * 256, "longer"), ("dream:5", "one of message")]
)
async def test_a_bad_id_is_refused(engine: Engine, namespace: str, item_id: str, named: str) -> None:
    with pytest.raises(Invalid, match=named):
        await engine.forget.item(namespace, item_id)


async def test_nobody_forgets_what_another_namespace_remembers(engine: Engine, namespace: str) -> None:
    document = str(await engine.remember.document(namespace, "Our parrots.", None, None))
    with pytest.raises(NotFound):
        await engine.forget.item(f"test-{uuid4()}", document)
    assert await recalled(engine, namespace, "parrots") == {"Our parrots.": document}


async def test_of_many_who_forget_the_same_one_does(engine: Engine, namespace: str) -> None:
    document = str(await engine.remember.document(namespace, "Wanted by many.", None, None))
    await engine.indexer.flush(namespace)
    answers = await asyncio.gather(*(engine.forget.item(namespace, document) for _ in range(8)), return_exceptions=True)
    assert sum(isinstance(answer, Receipt) for answer in answers) == 1
    assert sum(isinstance(answer, NotFound) for answer in answers) == 7
    assert await statistics(engine, namespace) == {}
