"""A graph whose second process remembers the first, by its checkpointer and its store; other doors recall it, too."""

import asyncio
import os
import subprocess
import sys
from operator import add
from typing import Annotated, Any, TypedDict

import httpx
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from mcp import Client

from recollect.adapters.langgraph import RecollectSaver, RecollectStore

URL = os.environ["MEMORY_SERVER"]
SAID = "I would rather fly in the morning than at night."


class State(TypedDict):
    said: Annotated[list[str], add]
    known: list[str]


def note(state: State, runtime: Runtime[None]) -> dict[str, Any]:
    assert runtime.store is not None
    runtime.store.put(("users", "anna", "facts"), f"fact {len(state['said'])}", {"said": state["said"][-1]})
    return {}


def remember(state: State, runtime: Runtime[None]) -> dict[str, Any]:
    assert runtime.store is not None
    found = runtime.store.search(("users", "anna"), query="When does she like to travel?", limit=1)
    return {"known": [item.value["said"] for item in found]}


def graph(store: RecollectStore, saver: RecollectSaver) -> Any:
    built = StateGraph(State)
    built.add_node("note", note)
    built.add_node("remember", remember)
    built.add_edge(START, "note")
    built.add_edge("note", "remember")
    built.add_edge("remember", END)
    return built.compile(checkpointer=saver, store=store)


THREAD = {"configurable": {"thread_id": "anna's thread"}}

with RecollectStore(URL, user_id="anna") as store, RecollectSaver(URL, user_id="anna") as saver:
    agent = graph(store, saver)
    if "SECOND" not in os.environ:
        assert agent.invoke({"said": [SAID], "known": []}, THREAD)["known"] == [SAID]
        again = os.environ | {"SECOND": "yes"}
        subprocess.run([sys.executable, "-c", sys.orig_argv[2]], env=again, check=True, timeout=120)
        # What the other process said is in this one's thread.
        assert agent.get_state(THREAD).values["said"] == [SAID, "Where did we stop?", "And now?"]
        assert len(list(agent.get_state_history(THREAD))) == 12
    else:
        # A process that has never seen the thread goes on with it, synchronously and not.
        answered = agent.invoke({"said": ["Where did we stop?"]}, THREAD)
        assert (answered["said"], answered["known"]) == ([SAID, "Where did we stop?"], [SAID])
        answered = asyncio.run(agent.ainvoke({"said": ["And now?"]}, THREAD))
        assert answered["said"][-1] == "And now?"
        [fork] = [each for each in agent.get_state_history(THREAD) if each.values.get("said") == [SAID]][-2:-1]
        assert agent.get_state(fork.config).values["said"] == [SAID]

question = {"query": "When does she like to travel?", "user_id": "anna", "top_k": 1}
found = httpx.post(f"{URL}/recall", json=question, timeout=60).json()["memories"]
assert (found[0]["kind"], found[0]["text"]) == ("record", f"said: {SAID}")


async def by_mcp() -> None:
    async with Client(f"{URL}/mcp") as client:
        answer = await client.call_tool("recall", {"query": "When does she like to travel?"})
        assert SAID in str(answer.structured_content)


asyncio.run(by_mcp())
if "SECOND" not in os.environ:
    forgotten = httpx.delete(f"{URL}/users/anna", timeout=60).json()["rows"]
    assert (forgotten["records"], forgotten["checkpoints"]) == (3, 12)
    with RecollectSaver(URL) as saver:
        assert saver.get_tuple(THREAD) is None
