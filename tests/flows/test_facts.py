"""The facts in a chat: several memories in one call with a language model, each message as it is without."""

from typing import Any, Literal

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid, Unavailable
from recollect.flows.long_term.facts import MAX_CHARACTERS, Told
from recollect.flows.long_term.memory_requests import ChatLine
from recollect.memory.memories import MemoryScope
from tests.flows.test_condensed_memories import ScriptedModel
from tests.flows.test_memories import ANN, listed, rows, texts

CHAT = [
    ChatLine("user", "I moved to Lyon, where my sister Clara lives."),
    ChatLine("assistant", "How nice!", "Robin"),
    ChatLine("user", "And I don't eat fish any more."),
]


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


@pytest.fixture
def model(engine: Engine) -> ScriptedModel:
    model = ScriptedModel()
    engine.facts._llm = model
    return model


def fact(memory: str, category: str = "fact", same_as: int | None = None, replaces: tuple[int, ...] = ()) -> Any:
    return {"memory": memory, "category": category, "same_as": same_as, "replaces": list(replaces)}


async def test_each_fact_becomes_a_memory_of_its_own(engine: Engine, namespace: str, model: ScriptedModel) -> None:
    model.answers.append(
        {"facts": [fact("The user moved to Lyon.", "episodic"), fact("The user eats no fish.", "preference")]}
    )
    told = Told(CHAT, ANN, metadata={"source": "chat"}, instructions="Only food and places.")
    facts = await engine.facts.add(namespace, told)
    assert [(each.what, each.memory.text, each.memory.category) for each in facts.added] == [
        ("created", "The user moved to Lyon.", "episodic"),
        ("created", "The user eats no fish.", "preference"),
    ]
    assert {each.memory.metadata["source"] for each in facts.added} == {"chat"}
    assert (facts.method, facts.degraded) == ("language model", None)
    assert (await texts(engine, namespace, "Which dishes does she avoid?"))[0] == "The user eats no fish."
    (prompt,) = model.asked
    assert "Only food and places." in prompt.user
    assert "Robin: How nice!" in prompt.user


async def test_what_is_known_stays_once_and_what_is_contradicted_gives_way(
    engine: Engine, namespace: str, model: ScriptedModel
) -> None:
    model.answers.append({"facts": [fact("The user lives in Rome."), fact("The user has 3 cats.")]})
    rome, _ = (await engine.facts.add(namespace, Told(CHAT, ANN))).added
    shown = await engine.memories.nearest(namespace, "user: lives in Lyon, cats", ANN)
    numbers = {memory.text: number for number, memory in enumerate(shown, start=1)}
    model.answers.append(
        {
            "facts": [
                fact("The user lives in Lyon.", replaces=(numbers["The user lives in Rome."],)),
                fact("The user has three cats.", same_as=numbers["The user has 3 cats."]),
            ]
        }
    )
    told = Told([ChatLine("user", "user: lives in Lyon, cats")], ANN)
    lyon, cats = (await engine.facts.add(namespace, told)).added
    assert (lyon.superseded, cats.what) == ((rome.memory.id,), "existing")
    assert set(await listed(engine, namespace)) == {"The user lives in Lyon.", "The user has 3 cats."}


async def test_nothing_worth_knowing_stores_nothing(engine: Engine, namespace: str, model: ScriptedModel) -> None:
    model.answers.append({"facts": []})
    facts = await engine.facts.add(namespace, Told([ChatLine("user", "Hello!")], ANN))
    assert (facts.added, await rows(engine, namespace)) == ([], 0)


@pytest.mark.parametrize("why", ["no model", "asked for", "too long", "model fails"])
async def test_without_a_model_each_message_is_stored_as_it_is(
    engine: Engine, namespace: str, model: ScriptedModel, why: str
) -> None:
    lines = [*CHAT, ChatLine("user", "word " * MAX_CHARACTERS)] if why == "too long" else CHAT
    if why == "no model":
        engine.facts._llm = None
    if why == "model fails":
        model.answers.append(Unavailable("no answer"))
    facts = await engine.facts.add(namespace, Told(lines, ANN, verbatim=why == "asked for"))
    assert [each.memory.text for each in facts.added[:3]] == [line.content for line in CHAT]
    assert [each.memory.metadata for each in facts.added[:2]] == [
        {"role": "user"},
        {"role": "assistant", "speaker": "Robin"},
    ]
    assert facts.method == "verbatim"
    assert ("no answer" in (facts.degraded or "")) == (why == "model fails")


async def test_a_chat_without_words_or_without_a_scope_is_refused(engine: Engine, namespace: str) -> None:
    for told in (Told([], ANN), Told(CHAT, MemoryScope())):
        with pytest.raises(Invalid):
            await engine.facts.add(namespace, told)
    assert await rows(engine, namespace) == 0
