"""A text is remembered once; items that say the same are folded by recall, named by forget, and forgotten together."""

import asyncio

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.kinds.target import SESSION, USER, Target
from recollect.memory.memories import MemoryScope
from tests.flows.talk import say_all

TEXT = "The spare key is under the blue flowerpot."


async def documents(engine: Engine, namespace: str) -> set[str]:
    found = await engine.recall.recall(namespace, "spare key", fold=False, top_k=100)
    return {memory.id for memory in found.memories}


async def test_a_text_is_remembered_once(engine: Engine, namespace: str) -> None:
    first = await engine.remember.text(namespace, TEXT)
    again = await engine.remember.text(namespace, TEXT)
    assert (first.what, again.what, again.id) == ("created", "existing", first.id)
    assert await documents(engine, namespace) == {str(first.id)}


async def test_a_text_that_another_door_stored_is_found_by_its_text(engine: Engine, namespace: str) -> None:
    stored = await engine.remember.document(namespace, TEXT, None, None)
    assert (await engine.remember.text(namespace, TEXT)).id == stored


async def test_many_who_remember_a_text_at_once_store_it_once(engine: Engine, namespace: str) -> None:
    remembered = await asyncio.gather(*(engine.remember.text(namespace, TEXT) for _ in range(8)))
    assert len({each.id for each in remembered}) == 1
    assert sorted(each.what for each in remembered) == ["created"] + ["existing"] * 7


async def test_new_metadata_is_added_to_the_text_that_is_there(engine: Engine, namespace: str) -> None:
    await engine.remember.text(namespace, TEXT, {"room": "hall", "seen": 1})
    await engine.remember.text(namespace, TEXT, {"seen": 2})
    await engine.remember.text(namespace, TEXT)
    (found,) = (await engine.recall.recall(namespace, "spare key")).memories
    assert found.metadata == {"room": "hall", "seen": 2}


async def test_a_text_that_was_forgotten_is_stored_anew(engine: Engine, namespace: str) -> None:
    first = await engine.remember.text(namespace, TEXT)
    await engine.forget.item(namespace, f"document:{first.id}")
    assert (await engine.remember.text(namespace, TEXT)).what == "created"


async def test_forgetting_an_item_names_its_twins_and_takes_them_when_asked(engine: Engine, namespace: str) -> None:
    texts = (TEXT, TEXT.upper(), "The spare key is under the blue flowerpot!")
    ids = [str(await engine.remember.document(namespace, text, None, None)) for text in texts]
    other = str(await engine.remember.document(namespace, "The spare key is not under the blue flowerpot.", None, None))
    left = (await engine.forget.item(namespace, f"document:{ids[0].upper()}")).twins_left
    assert set(left) == {f"document:{ids[1]}", f"document:{ids[2]}"}
    counted = await engine.forget.count(namespace, Target("document", ids[1]), twins=True)
    gone = await engine.forget.item(namespace, ids[1], twins=True)
    assert counted == gone
    assert (gone.rows, gone.twins_left) == ({"documents": 2, "passages": 2}, ())
    assert await documents(engine, namespace) == {other}


async def test_what_says_the_opposite_is_not_folded(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "I like green tea.", "I do not like green tea.")
    assert len((await engine.recall.recall(namespace, "green tea")).memories) == 2


async def test_the_same_words_of_others_are_no_twins(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "Owls hoot.", session="one")
    await say_all(engine, namespace, "bob", "Owls hoot.", session="two")
    await engine.memories.add(namespace, "Owls hoot.", "fact", MemoryScope(user_id="ann"))
    message = (await engine.cognition.raw(namespace, session_id="one"))[0]
    assert (await engine.forget.item(namespace, f"message:{message.id}")).twins_left == ()


async def test_long_items_that_share_a_passage_are_no_twins(engine: Engine, namespace: str) -> None:
    shared = " ".join(f"Rule {number} of the house is to be kind to every guest." for number in range(60))
    texts = (f"{shared} {ending}" for ending in ("Signed by Ann.", "Signed by Bob.", "Signed by ANN!"))
    ids = [await engine.remember.document(namespace, text, None, None) for text in texts]
    receipt = await engine.forget.item(namespace, str(ids[0]))
    assert receipt.rows["passages"] > 1
    assert receipt.twins_left == (f"document:{ids[2]}",)


@pytest.mark.parametrize("kind", [SESSION, USER])
async def test_only_items_have_twins(engine: Engine, namespace: str, kind: str) -> None:
    with pytest.raises(Invalid, match="twins applies only to a single item"):
        await engine.forget.forget(namespace, Target(kind, "ann"), twins=True)
