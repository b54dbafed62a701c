"""An agent of the OpenAI Agents SDK remembers: in a second process, and its words are found over REST and MCP."""

import asyncio
import os
import subprocess
import sys

import httpx
from agents import Agent, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from mcp import Client

from recollect.adapters.openai_agents import RecollectSession

SERVER = os.environ["MEMORY_SERVER"]


@function_tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"In {city} it is raining."


def session() -> RecollectSession:
    return RecollectSession("trip/openai", user_id="emil", url=SERVER)


async def begin() -> None:
    """One turn with a tool, in a process of its own."""
    model = ScriptedModel(
        [
            [function_call("get_weather", {"city": "Lyon"}, call_id="call-1")],
            [assistant_message("Take an umbrella to Lyon.")],
        ]
    )
    agent = Agent(name="Travel", model=model, tools=[get_weather])
    result = await Runner.run(agent, "What should I pack for the trip to Lyon?", session=session())
    assert result.final_output == "Take an umbrella to Lyon."


async def go_on() -> None:
    """The next turn: the model gets all of the first, the tool's call and its answer among it."""
    model = ScriptedModel([[assistant_message("An umbrella.")]])
    await Runner.run(Agent(name="Travel", model=model), "What was it again?", session=session())
    assert model.last_call is not None
    given = [item.get("type", item.get("role")) for item in model.last_call.input]
    assert given == ["user", "function_call", "function_call_output", "message", "user"], given


async def find() -> None:
    """Other programs know it, too."""
    asked = {"query": "What belongs into the suitcase?", "user_id": "emil"}
    found = httpx.post(f"{SERVER}/recall", json=asked, timeout=60).raise_for_status().json()["memories"]
    assert "Take an umbrella to Lyon." in [memory["text"] for memory in found], found
    async with Client(f"{SERVER}/mcp") as client:
        answer = await client.call_tool("recall", {"query": "Is it raining in Lyon?"})
        assert "In Lyon it is raining." in str(answer.structured_content), answer
    before = await session().get_items()
    assert await session().pop_item() == before[-1]
    assert await session().get_items(limit=2) == before[-3:-1]
    await session().clear_session()
    assert await session().get_items() == []


if "BEGIN" in os.environ:
    asyncio.run(begin())
else:
    subprocess.run(sys.orig_argv, env=os.environ | {"BEGIN": "yes"}, check=True)
    asyncio.run(go_on())
    asyncio.run(find())
