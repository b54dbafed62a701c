"""A chain of LangChain remembers: in a second process, in both forms, and its words are found over REST and MCP."""

import asyncio
import os
import subprocess
import sys

import httpx
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables.history import RunnableWithMessageHistory
from mcp import Client

from recollect.adapters.langchain_history import RecollectChatHistory

SERVER = os.environ["MEMORY_SERVER"]
SESSION = {"configurable": {"session_id": "trip/langchain"}}


def history(session_id: str) -> RecollectChatHistory:
    return RecollectChatHistory(session_id, user_id="emil", url=SERVER)


def chain(*answers: str) -> RunnableWithMessageHistory:
    model = GenericFakeChatModel(messages=iter(map(AIMessage, answers)))
    return RunnableWithMessageHistory(model, history)


async def find() -> None:
    asked = {"query": "What belongs into the suitcase?", "user_id": "emil"}
    found = httpx.post(f"{SERVER}/recall", json=asked, timeout=60).raise_for_status().json()["memories"]
    assert "Take an umbrella to Lyon." in [memory["text"] for memory in found], found
    async with Client(f"{SERVER}/mcp") as client:
        told = await client.call_tool("recall", {"query": "What to take to Lyon?"})
        assert "Take an umbrella to Lyon." in str(told.structured_content), told


async def both_forms() -> None:
    """What a chain stores with tools, bytes of no text and half of a character."""
    messages: list[BaseMessage] = [
        HumanMessage(
            [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
        ),
        AIMessage("", tool_calls=[{"name": "look", "args": {"b": 1.0, "a": None}, "id": "c"}]),
        ToolMessage("A picture.\x00 \ud800", tool_call_id="c", artifact={"size": 1e-7}),
        AIMessage("A picture.", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    ]
    mine = history("forms")
    await mine.aadd_messages(messages[:2])
    await asyncio.to_thread(mine.add_messages, messages[2:])
    assert await mine.aget_messages() == mine.messages == messages
    await mine.aclear()
    assert mine.messages == []
    httpx.post(f"{SERVER}/stm/forms/messages", json={"messages": [{"role": "user", "content": "Hello!"}]}, timeout=60)
    assert mine.messages == [HumanMessage("Hello!")]
    mine.clear()


if "BEGIN" in os.environ:
    chain("Take an umbrella to Lyon.").invoke([HumanMessage("What should I pack?")], SESSION)
else:
    subprocess.run(sys.orig_argv, env=os.environ | {"BEGIN": "yes"}, check=True)
    asyncio.run(chain("An umbrella.").ainvoke([HumanMessage("What was it again?")], SESSION))
    said = [message.content for message in history("trip/langchain").messages]
    assert said == ["What should I pack?", "Take an umbrella to Lyon.", "What was it again?", "An umbrella."], said
    asyncio.run(find())
    asyncio.run(both_forms())
