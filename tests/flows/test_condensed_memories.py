"""Long-term memories with a language model: one sentence each, and an old one gives way to what contradicts it."""

import asyncio
import json
import re
from collections import deque
from dataclasses import replace
from typing import Any, Literal, TypeVar

import pytest
from pydantic import BaseModel

from recollect.engine import Engine
from recollect.errors import Conflict, Invalid, LimitReached, Misconfigured, RecollectError, Unavailable
from recollect.flows.long_term.condense import MAX_CONDENSED_CHARACTERS
from recollect.flows.long_term.memory_requests import Change
from recollect.flows.long_term.memory_results import Added, Deleted
from recollect.inference.llm import Prompt
from recollect.memory.memories import MemoryScope
from recollect.settings import Settings
from tests.flows.test_memories import ANN, events, listed, rows, texts
from tests.llm_servers import Asked, ProviderServer, Reply, provider_server
from tests.memory.test_passages import counts, statistics

M = TypeVar("M", bound=BaseModel)

Answer = dict[str, Any] | RecollectError


class ScriptedModel:
    """A model that answers what the test tells it to, and keeps what it was asked."""

    model_id = "scripted"

    def __init__(self) -> None:
        self.answers: deque[Answer] = deque()
        self.asked: list[Prompt] = []

    def will_say(self, memory: str, same_as: int | None = None, replaces: list[int] | None = None) -> None:
        self.answers.append({"memory": memory, "same_as": same_as, "replaces": replaces or []})

    async def complete(self, prompt: Prompt) -> str:
        raise AssertionError("memories are asked for in a shape")

    async def complete_as(self, prompt: Prompt, shape: type[M]) -> M:
        self.asked.append(prompt)
        answer = self.answers.popleft()
        if isinstance(answer, RecollectError):
            raise answer
        return shape.model_validate(answer, strict=True)


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


@pytest.fixture
def model(engine: Engine) -> ScriptedModel:
    model = ScriptedModel()
    engine.memories._llm = model
    return model


async def add(engine: Engine, namespace: str, text: str, holder: MemoryScope = ANN, category: str = "fact") -> Added:
    return await engine.memories.add(namespace, text, category, holder)


async def test_what_was_said_becomes_the_sentence_of_the_model(
    engine: Engine, namespace: str, model: ScriptedModel
) -> None:
    model.will_say("Ann moved to Lisbon on 2024-03-14.")
    added = await add(engine, namespace, "user: I moved to Lisbon yesterday.")
    assert (added.memory.text, added.memory.metadata) == ("Ann moved to Lisbon on 2024-03-14.", {})
    assert await texts(engine, namespace, "Lisbon") == ["Ann moved to Lisbon on 2024-03-14."]
    (prompt,) = model.asked
    assert (prompt.namespace, prompt.feature) == (namespace, "memories")
    assert "I moved to Lisbon yesterday." in prompt.user
    assert "Today: " in prompt.user


async def test_the_same_words_again_cost_no_call_and_make_no_memory(
    engine: Engine, namespace: str, model: ScriptedModel
) -> None:
    model.will_say("The user likes tea.")
    first = await add(engine, namespace, "user: I like tea.\nassistant: Noted.")
    for again in ("user: I like tea.\nassistant: Noted.", "The user likes tea!"):
        assert await add(engine, namespace, again) == Added(first.memory, "existing")
    assert len(model.asked) == 1


async def test_the_same_words_at_once_make_one_memory_whatever_the_model_makes_of_them(
    engine: Engine, namespace: str, model: ScriptedModel
) -> None:
    for number in range(8):
        model.will_say(f"The user likes tea, in sentence {number}.")
    added = await asyncio.gather(*(add(engine, namespace, "I like tea.") for _ in range(8)))
    assert len({result.memory.id for result in added}) == 1
    assert await rows(engine, namespace) == 1


async def test_other_words_for_the_same_sentence_make_no_second_memory(
    engine: Engine, namespace: str, model: ScriptedModel
) -> None:
    model.will_say("The user likes tea.")
    model.will_say("The user likes tea!")
    model.will_say("The user enjoys tea.", same_as=1)
    first = await add(engine, namespace, "I like tea.")
    for other in ("Tea is what I like.", "I enjoy tea."):
        assert await add(engine, namespace, other) == Added(first.memory, "existing")
    assert await rows(engine, namespace) == 1


async def test_a_model_that_overlooks_a_number_or_a_category_loses_no_memory(
    engine: Engine, namespace: str, model: ScriptedModel
) -> None:
    for sentence in ("The user has 3 cats.", "The user has 4 cats.", "The user has no cats."):
        model.will_say(sentence, same_as=1)
        await add(engine, namespace, f"He said: {sentence}")
    model.will_say("The user has 3 cats!", same_as=1)
    await add(engine, namespace, "Three cats!", category="episodic")
    assert await rows(engine, namespace) == 4


async def test_a_contradicted_memory_leaves_search_and_list_and_comes_back_by_undo(
    engine: Engine, namespace: str, model: ScriptedModel
) -> None:
    before = await statistics(engine, namespace)
    model.will_say("The user lives in Berlin.")
    berlin = (await add(engine, namespace, "I live in Berlin.")).memory
    model.will_say("The user lives in Lisbon.", replaces=[1, 7])
    added = await add(engine, namespace, "I moved to Lisbon.")
    assert "1. (" in model.asked[-1].user
    assert "The user lives in Berlin." in model.asked[-1].user
    assert added.superseded == (berlin.id,)
    assert await texts(engine, namespace, "Where does the user live? Berlin?") == ["The user lives in Lisbon."]
    assert await listed(engine, namespace) == ["The user lives in Lisbon."]
    assert (await engine.memories.get(namespace, str(berlin.id))).superseded_by == added.memory.id
    assert (await counts(engine, namespace))["passages"] == 2  # one is for questions about the past
    with pytest.raises(Conflict, match="superseded"):
        await engine.memories.update(namespace, str(berlin.id), Change("The user lives in Bonn."))

    restored = (await engine.memories.undo(namespace, str(berlin.id))).memory
    assert restored == replace(berlin, since=restored.since)
    assert set(await texts(engine, namespace, "Berlin")) == {berlin.text, added.memory.text}
    assert await events(engine, namespace, berlin) == [
        ("create", None, berlin.text),
        ("supersede", berlin.text, None),
        ("undo", None, berlin.text),
    ]
    with pytest.raises(Invalid, match="not superseded"):
        await engine.memories.undo(namespace, str(berlin.id))
    for memory in (added.memory, berlin):
        await engine.memories.delete(namespace, str(memory.id))
    assert await statistics(engine, namespace) == before


async def test_deleting_what_superseded_a_memory_offers_it_or_brings_it_back(
    engine: Engine, namespace: str, model: ScriptedModel
) -> None:
    model.will_say("The user lives in Berlin.")
    berlin = (await add(engine, namespace, "I live in Berlin.")).memory
    for restore in (False, True):
        model.will_say("The user lives in Lisbon.", replaces=[1])
        lisbon = (await add(engine, namespace, "I moved to Lisbon.")).memory
        deleted = await engine.memories.delete(namespace, str(lisbon.id), restore=restore)
        if restore:
            assert deleted == Deleted(lisbon.id, (), (berlin.id,))
        else:
            assert deleted == Deleted(lisbon.id, (berlin.id,), ())
            assert await listed(engine, namespace) == []
            await engine.memories.undo(namespace, str(berlin.id))
        assert await texts(engine, namespace, "Where does the user live?") == [berlin.text]
    back = await engine.memories.get(namespace, str(berlin.id))
    assert back == replace(berlin, since=back.since)


async def test_a_memory_cannot_come_back_where_another_says_the_same_and_then_nothing_is_deleted(
    engine: Engine, namespace: str, model: ScriptedModel
) -> None:
    model.will_say("The user lives in Berlin.")
    await add(engine, namespace, "I live in Berlin.")
    model.will_say("The user lives in Lisbon.", replaces=[1])
    lisbon = (await add(engine, namespace, "I moved to Lisbon.")).memory
    model.will_say("The user lives in Berlin.")
    await add(engine, namespace, "I live in Berlin, too.")
    with pytest.raises(Conflict, match="delete it without restore"):
        await engine.memories.delete(namespace, str(lisbon.id), restore=True)
    assert lisbon.text in await listed(engine, namespace)


async def test_what_is_said_again_after_it_was_superseded_is_a_memory_of_its_own(
    engine: Engine, namespace: str, model: ScriptedModel
) -> None:
    model.will_say("The user lives in Berlin.")
    old = (await add(engine, namespace, "I live in Berlin.")).memory
    model.will_say("The user lives in Lisbon.", replaces=[1])
    await add(engine, namespace, "I moved to Lisbon.")
    model.will_say("The user lives in Berlin.", replaces=[1])
    back = await add(engine, namespace, "I live in Berlin.")
    assert back.what == "created"
    assert await listed(engine, namespace) == ["The user lives in Berlin."]
    with pytest.raises(Conflict, match=str(back.memory.id)):
        await engine.memories.undo(namespace, str(old.id))


async def test_only_memories_of_the_very_same_scope_are_compared(
    engine: Engine, namespace: str, model: ScriptedModel
) -> None:
    others = [
        MemoryScope("bob"),
        MemoryScope("ann", "agent"),
        MemoryScope("ann", session_id="s"),
        MemoryScope(None, "agent"),
    ]
    for number, holder in enumerate(others):
        model.will_say(f"Secret number {number} is tea.")
        await add(engine, namespace, f"Tea {number}.", holder)
    model.will_say("The user likes tea.", replaces=[1])
    added = await add(engine, namespace, "I like tea.")
    assert added.superseded == ()
    assert "Secret" not in model.asked[-1].user


async def test_a_memory_that_changed_while_the_model_thought_is_not_superseded(
    engine: Engine, namespace: str, model: ScriptedModel
) -> None:
    model.will_say("The user lives in Berlin.")
    berlin = (await add(engine, namespace, "I live in Berlin.")).memory

    class SlowModel(ScriptedModel):
        async def complete_as(self, prompt: Prompt, shape: type[M]) -> M:
            await engine.memories.update(namespace, str(berlin.id), Change("The user's sister lives in Berlin."))
            return await super().complete_as(prompt, shape)

    slow = SlowModel()
    engine.memories._llm = slow
    slow.will_say("The user lives in Lisbon.", replaces=[1])
    assert (await add(engine, namespace, "I moved to Lisbon.")).superseded == ()
    assert sorted(await listed(engine, namespace)) == [
        "The user lives in Lisbon.",
        "The user's sister lives in Berlin.",
    ]


async def test_when_the_model_fails_the_words_are_kept_and_the_metadata_says_so(
    engine: Engine, namespace: str, model: ScriptedModel
) -> None:
    failures: dict[str, RecollectError] = {
        "Unavailable": Unavailable("down"),
        "LimitReached": LimitReached("budget"),
        "Misconfigured": Misconfigured("API key not configured"),
    }
    for named, failure in failures.items():
        model.answers.append(failure)
        added = await engine.memories.add(namespace, f"I was {named}.", "fact", ANN, {"source": "chat"})
        assert added.memory.text == f"I was {named}."
        assert added.memory.metadata == {"source": "chat", "memory_method": "verbatim", "llm_error": named}
        assert added.degraded == f"The language model did not condense this memory: {failure}"


async def test_a_text_too_long_for_a_sentence_stays_as_it_is(
    engine: Engine, namespace: str, model: ScriptedModel
) -> None:
    text = "Word. " * (MAX_CONDENSED_CHARACTERS // 6 + 1)
    assert (await add(engine, namespace, text)).memory.text == text
    assert model.asked == []


async def test_an_echo_costs_no_call(engine: Engine, namespace: str, model: ScriptedModel) -> None:
    model.will_say("The user likes tea.")
    memory = (await add(engine, namespace, "I like tea a lot.")).memory
    added = await engine.memories.add(namespace, "You like tea.", "fact", ANN, recalled=[str(memory.id)])
    assert added == Added(memory, "echo")
    assert len(model.asked) == 1


async def condensing(settings: Settings, provider: ProviderServer, **changes: Any) -> Engine:
    """An engine whose memories are written by the test's own provider."""
    return await Engine.open(provider.configure(settings, llm="openai:gpt-4o-mini", **changes))


def sentence(asked: Asked) -> Reply:
    said = asked.body["messages"][-1]["content"].rpartition("Input:\n")[2]
    return Reply(json.dumps({"memory": f"The user said: {said}", "same_as": None, "replaces": []}))


async def test_many_memories_at_once_are_all_condensed_as_fast_as_the_settings_allow(
    settings: Settings, namespace: str
) -> None:
    with provider_server() as provider:
        provider.answer = sentence
        engine = await condensing(settings, provider, llm_requests_per_second=1000)
        added = await asyncio.gather(*(add(engine, namespace, f"I own {n} books.") for n in range(40)))
        await engine.close()
    assert sorted(each.memory.text for each in added) == sorted(f"The user said: I own {n} books." for n in range(40))
    assert all(each.memory.metadata == {} for each in added)


async def test_a_memory_whose_turn_does_not_come_in_time_is_kept_in_its_own_words_and_says_so(
    settings: Settings, namespace: str
) -> None:
    with provider_server() as provider:
        provider.answer = sentence
        engine = await condensing(settings, provider, llm_requests_per_second=0.001)
        first, second = [await add(engine, namespace, text) for text in ("I like tea.", "I like rain.")]
        await engine.close()
    assert first.memory.metadata == {}
    assert second.memory.text == "I like rain."
    assert second.memory.metadata == {"memory_method": "verbatim", "llm_error": "Unavailable"}
    assert re.search(r"did not condense this memory: .* accepts the next request in \d+ s", second.degraded or "")
