"""An agent of Pydantic AI remembers: in a second process, over REST and MCP; and the store does as the makers' own."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import httpx
from mcp import Client
from pydantic_ai import Agent, ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationStore, InMemoryConversationStore
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import BinaryContent, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from recollect.adapters.pydantic_ai import RecollectConversationStore

SERVER = os.environ["MEMORY_SERVER"]
MOMENT = datetime(2026, 2, 14, 12, 0, 0, 123456, tzinfo=UTC)


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """A model that asks for the weather once, and tells how much it was given."""
    if info.function_tools and len(messages) == 1:
        return ModelResponse([ToolCallPart("get_weather", {"city": "Lyon"})])
    return ModelResponse([TextPart(f"Take an umbrella to Lyon, after {len(messages)} messages.")])


agent = Agent(FunctionModel(answer))


@agent.tool_plain
def get_weather(city: str) -> str:
    return f"In {city} it is raining."


async def talk(store: ConversationStore, question: str) -> str:
    conversation = await store.load("trip/pydantic", scope="emil") or Conversation(conversation_id="trip/pydantic")
    result = await agent.run(question, conversation=conversation)
    await store.save(result, scope="emil")
    return result.output


async def find() -> None:
    asked = {"query": "What belongs into the suitcase?", "user_id": "emil"}
    found = httpx.post(f"{SERVER}/recall", json=asked, timeout=60).raise_for_status().json()["memories"]
    assert any("umbrella" in memory["text"] for memory in found), found
    async with Client(f"{SERVER}/mcp") as client:
        told = await client.call_tool("recall", {"query": "Is it raining in Lyon?"})
        assert "In Lyon it is raining." in str(told.structured_content), told


def exchange(number: int) -> list[ModelMessage]:
    """A question and its answer, the same each time, with much that is easily lost."""
    paper = BinaryContent(b"\x00\xff\x10", media_type="application/pdf")
    call = ToolCallPart("t", {"b": 1.0, "a": [None, 1e-7], "nul": "\x00"}, "c")
    return [
        ModelRequest([UserPromptPart([f"Question {number}\x00", paper], timestamp=MOMENT)]),
        ModelResponse([TextPart(f"Answer {number}"), call], timestamp=MOMENT),
    ]


async def outcome(work: Awaitable[object]) -> object:
    """What came of it, without what is made anew each time."""
    try:
        done = await work
    except (ConversationConflict, UserError, LookupError) as problem:
        return type(problem).__name__
    if isinstance(done, Conversation):
        return done.messages, done.usage, done.conversation_id
    return len(done) if isinstance(done, list) else done


async def try_out(store: ConversationStore, tell: Callable[[object], None]) -> None:
    """Everything that a store is asked for, in the way of two writers who meet."""
    tell(await outcome(store.load("one")))
    first = Conversation(messages=exchange(1), conversation_id="one")
    tell(await outcome(store.save(first, scope="anna")))
    tell(await outcome(store.save(Conversation(messages=exchange(9), conversation_id="one"))))
    other = await store.load("one", scope="anna")
    assert other is not None
    first.messages += [*exchange(2), ModelRequest([ToolReturnPart("t", {"x": 2.0}, "c", timestamp=MOMENT)])]
    tell(await outcome(store.save(first)))
    other.messages += exchange(3)
    tell(await outcome(store.save(other)))
    tell(await outcome(store.save(first, scope="ben")))
    for limit in (None, 0, 1, 3, -1):
        tell(await outcome(store.load("one", limit=limit)))
    tell(await outcome(store.load("one", scope="ben")))
    rewritten = await store.load("one")
    assert rewritten is not None
    tell(await outcome(store.branch("one", at=2, expected_revision=rewritten.revision)))
    tell(await outcome(store.branch("one", at=2, expected_revision=rewritten.revision)))
    branched = await store.load("one")
    assert branched is not None
    branched.messages += exchange(4)
    tell(await outcome(store.save(branched)))
    tell(await outcome(store.fork("one", at=3, new_conversation_id="two")))
    tell(await outcome(store.fork("one", new_conversation_id="two")))
    tell(await outcome(store.fork("two", new_conversation_id="three", scope="ben")))
    fork = await store.load("three")
    assert fork is not None
    fork.messages += exchange(5)
    tell(await outcome(store.save(fork)))
    for scope in (None, "anna", "ben", "nobody"):
        listed = [record.conversation_id for record in await store.list_conversations(scope=scope)]
        tell([name for name in listed if name in ("one", "two", "three")])
    tell([record.conversation_id for record in await store.list_conversations(limit=2)])
    left = (await store.list_conversations(scope="anna"))[-1].branches
    line = await store.load_entries("one")
    assert line is not None
    tell((len(left), len(line)))
    for gone in ("one", "two", "nothing", "three"):
        tell(await outcome(store.delete(gone)))
        for name in ("one", "two", "three"):
            tell(await outcome(store.load(name)))
    try:
        await store.read_entry(line[0].id)
    except LookupError:
        tell("its entries are gone")


async def compare(store: ConversationStore) -> None:
    theirs: list[object] = []
    ours: list[object] = []
    await try_out(InMemoryConversationStore(), theirs.append)
    await try_out(store, ours.append)
    assert len(ours) == len(theirs)
    for place, (expected, got) in enumerate(zip(theirs, ours, strict=True)):
        assert got == expected, f"{place}: {got} instead of {expected}"
    print(f"{len(ours)} outcomes as those of the store in memory")


async def at_once(store: ConversationStore) -> None:
    """Of ten who save the same conversation, one does."""
    await store.save(Conversation(messages=exchange(1), conversation_id="race"))
    copies = [await store.load("race") for _ in range(10)]
    for number, copy in enumerate(copies):
        assert copy is not None
        copy.messages += exchange(number)
    outcomes = await asyncio.gather(*(outcome(store.save(copy)) for copy in copies if copy is not None))
    assert sorted(map(str, outcomes)) == ["2", *["ConversationConflict"] * 9], outcomes
    loaded = await store.load("race")
    assert loaded is not None
    assert len(loaded.messages) == 4


async def long_history(store: ConversationStore) -> None:
    """More messages than one request returns."""
    messages = [message for number in range(1_300) for message in exchange(number)]
    await store.save(Conversation(messages=messages, conversation_id="long"))
    loaded = await store.load("long")
    assert loaded is not None
    assert loaded.messages == messages


server = RecollectConversationStore(SERVER)
if "BEGIN" in os.environ:
    assert asyncio.run(talk(server, "What should I pack?")).endswith("after 3 messages.")
else:
    subprocess.run(sys.orig_argv, env=os.environ | {"BEGIN": "yes"}, check=True)
    assert asyncio.run(talk(server, "And what else?")).endswith("after 5 messages.")
    asyncio.run(find())
    asyncio.run(compare(server))
    asyncio.run(compare(RecollectConversationStore()))
    asyncio.run(at_once(server))
    asyncio.run(long_history(server))
