"""mem0's API over a server with a language model: several facts in one call, and what is known gives way."""

import warnings
from typing import Any, Literal

import pytest

from recollect.adapters.mem0 import AsyncMemory
from recollect.engine import Engine
from recollect.errors import Invalid, Unavailable
from tests.flows.test_condensed_memories import ScriptedModel
from tests.flows.test_facts import fact
from tests.rest_servers import listening

CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "I moved to Lyon, and I don't eat fish any more."},
]
ANN: dict[str, Any] = {"filters": {"user_id": "ann"}}


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


@pytest.fixture
def model(engine: Engine) -> ScriptedModel:
    model = ScriptedModel()
    engine.facts._llm = model
    return model


async def texts(memory: AsyncMemory) -> set[str]:
    return {each["memory"] for each in (await memory.get_all(**ANN))["results"]}


async def test_facts_are_added_and_those_that_are_known_are_no_results(engine: Engine, model: ScriptedModel) -> None:
    async with listening(engine) as url, AsyncMemory({"custom_instructions": "Only food."}, url=url) as memory:
        lyon, fish = "The user moved to Lyon.", "The user eats no fish."
        model.answers.append({"facts": [fact(lyon), fact(fish, "preference")]})
        added = (await memory.add(CHAT, user_id="ann"))["results"]
        assert [(each["memory"], each["event"]) for each in added] == [(lyon, "ADD"), (fish, "ADD")]
        assert set(added[0]) == {"id", "memory", "event"}
        model.answers.append({"facts": [fact(fish, "preference"), fact("The user lives in Paris.")]})
        (paris,) = (await memory.add(CHAT, user_id="ann", prompt="Only places."))["results"]
        assert await texts(memory) == {lyon, fish, paris["memory"]}
        first, second = model.asked
        assert "Only food." in first.user
        assert "Only places." in second.user
        assert "Be kind." not in first.user


async def test_a_model_that_fails_is_told_and_the_messages_are_stored(engine: Engine, model: ScriptedModel) -> None:
    async with listening(engine) as url, AsyncMemory(url=url) as memory:
        model.answers.append(Unavailable("no answer from the provider"))
        with pytest.warns(UserWarning, match="no answer from the provider"):
            await memory.add(CHAT, user_id="ann")
        assert await texts(memory) == {CHAT[1]["content"]}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = await memory.add(CHAT, user_id="ann", infer=False)
        assert [each["event"] for each in again["results"]] == ["NONE"]


async def test_a_configuration_that_is_none_is_refused() -> None:
    with pytest.raises(Invalid, match="config must be a dict"):
        AsyncMemory(["qdrant"])
