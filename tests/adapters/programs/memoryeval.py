"""memoryeval's 30 scenarios, without a model: by its own adapter for mem0, over our Memory, and by one over REST.

Its adapter for mem0 stays as it is: it imports `Memory` from a module named mem0, and gets ours.
"""

import asyncio
import os
import sys
import warnings
from datetime import datetime

from memeval.adapters.mem0 import Mem0Adapter
from memeval.metrics import METRIC_REGISTRY
from memeval.protocol.base import MemoryProtocol
from memeval.protocol.types import MemoryEntry, MemoryMetadata, MemoryType, SearchResult, SessionContext, WriteResult
from memeval.reporting.console import print_scorecard
from memeval.scenarios.loader import load_builtin_scenarios
from memeval.scenarios.runner import ScenarioRunner

import recollect.adapters.mem0
from recollect.adapters.connection import Connection
from recollect.errors import NotFound

SERVER = os.environ["MEMORY_SERVER"]
EVERYBODY = "memeval"

ONE_BY_ONE = (
    "five statuses under five keys stay five memories: without a language model nobody knows which are outdated"
)
NO_FLOOR = "asks for no result where the user's only memory is about something else: a search returns the nearest"
BELOW_THRESHOLD = "mem0's threshold of 0.1 leaves out a memory whose cosine to the question is lower"
# Scenarios that do not pass, and why.
KNOWN = {
    "mem0's API": {
        "Context Restoration After Gap": BELOW_THRESHOLD,
        "Privacy Isolation": NO_FLOOR,
        "Rapid Sequential Updates": ONE_BY_ONE,
        "Session: Customer Support Multi-Turn": BELOW_THRESHOLD,
    },
    "REST": {
        "Empty and Edge Cases": NO_FLOOR,
        "Privacy Isolation": NO_FLOOR,
        "Rapid Sequential Updates": ONE_BY_ONE,
    },
}


class Recollect(MemoryProtocol):
    """Keys are keys of long-term memories; sessions are sessions, with a window of messages."""

    def __init__(self) -> None:
        super().__init__()
        self._connection = Connection(SERVER)
        self._users = {EVERYBODY}
        self._sessions: set[str] = set()

    async def _call(self, operation, *arguments, **options):
        async with self._track(operation) as record:
            answer = await self._connection.call_async(*arguments, **options)
        return answer, record["latency_ms"]

    async def write(self, content, *, key=None, metadata=None, memory_type=MemoryType.SEMANTIC):
        about = metadata or MemoryMetadata()
        user = about.user_id or EVERYBODY
        self._users.add(user)
        body = {
            "messages": content,
            "category": "episodic" if memory_type is MemoryType.EPISODIC else "semantic",
            "user_id": user,
            "agent_id": about.agent_id,
            "session_id": about.session_id,
            "key": key,
            "metadata": about.extra | {"tags": list(about.tags)},
        }
        memory, ms = await self._call("write", "POST", "/ltm/memories", json=body)
        return WriteResult(memory.get("key") or memory["id"], True, ms)

    async def _named(self, key):
        found, _ = await self._call("read", "GET", "/ltm/memories", params={"key": key})
        if found["results"]:
            return found["results"][0]
        try:
            return (await self._call("read", "GET", "/ltm/memories/{}", key))[0]
        except NotFound:
            return None

    async def read(self, key):
        memory = await self._named(key)
        return memory and _entry(memory)

    async def search(self, query, *, limit=10, filters=None):
        scope = {"user_id": (filters and filters.user_id) or EVERYBODY}
        scope |= {name: getattr(filters, name) for name in ("agent_id", "session_id") if getattr(filters, name, None)}
        if not any(letter.isalnum() for letter in query):
            return []
        body = {"query": query, "limit": limit, **scope}
        found, _ = await self._call("search", "POST", "/ltm/memories/search", json=body)
        return [SearchResult(_entry(each), each["score"], rank) for rank, each in enumerate(found["results"], 1)]

    async def update(self, key, content, *, metadata=None):
        memory = await self._named(key)
        if memory is None:
            return WriteResult(key, False, 0)
        _, ms = await self._call("update", "PATCH", "/ltm/memories/{}", memory["id"], json={"data": content})
        return WriteResult(key, True, ms)

    async def delete(self, key):
        memory = await self._named(key)
        if memory is not None:
            await self._call("delete", "DELETE", "/ltm/memories/{}", memory["id"])
        return memory is not None

    async def list_all(self, *, filters=None, limit=100):
        params = {"limit": min(limit, 1000), "user_id": filters and filters.user_id}
        found, _ = await self._call("list_all", "GET", "/ltm/memories", params=params)
        return list(map(_entry, found["results"]))

    async def consolidate(self, source_keys, *, strategy="merge"):
        sources = [memory for memory in [await self._named(key) for key in source_keys] if memory]
        body = {
            "messages": "\n".join(dict.fromkeys(each["memory"] for each in sources)),
            "category": "semantic",
            "user_id": sources[0]["user_id"],
            "supersedes": [each["id"] for each in sources],
        }
        memory, ms = await self._call("consolidate", "POST", "/ltm/memories", json=body)
        return WriteResult(memory["id"], True, ms)

    async def add_message(self, session_id, message):
        self._sessions.add(session_id)
        said = {"messages": [{"role": message.role, "content": message.content}], "user_id": EVERYBODY}
        _, ms = await self._call("add_message", "POST", "/stm/{}/messages", session_id, json=said)
        return WriteResult(session_id, True, ms)

    async def get_session_context(self, session_id, query=None):
        window, _ = await self._call("get_session_context", "GET", "/stm/{}/context", session_id)
        return SessionContext(session_id, [message["content"] for message in window["messages"]])

    async def reset(self):
        for user in self._users:
            await self._connection.call_async("DELETE", "/ltm/memories", params={"user_id": user})
        for session in self._sessions:
            await self._connection.call_async("DELETE", "/stm/{}", session)
        self._sessions.clear()
        self.clear_operation_log()


def _entry(memory):
    return MemoryEntry(
        key=memory.get("key") or memory["id"],
        content=memory["memory"],
        memory_type=MemoryType.EPISODIC if memory["metadata"]["category"] == "episodic" else MemoryType.SEMANTIC,
        metadata=MemoryMetadata(user_id=memory["user_id"], session_id=memory["session_id"]),
        created_at=datetime.fromisoformat(memory["created_at"]),
    )


async def report(name, adapter):
    """Whether all scenarios passed but those of which it is known why they do not."""
    results = []
    for scenario in load_builtin_scenarios():
        known = [dimension for dimension in scenario.dimensions_tested if dimension in METRIC_REGISTRY]
        metrics = [METRIC_REGISTRY[each](threshold=scenario.thresholds.get(each, 0.5)) for each in known]
        results.append(await ScenarioRunner().run(scenario, adapter, metrics))
    print_scorecard(results, name)
    failed = {}
    for result in results:
        if not result.passed:
            steps = [(each.data, each.assertion_details) for each in result.assertion_failures]
            failed[result.scenario.name] = steps + [(each.metric_name, each.reason) for each in result.metric_failures]
    await adapter.reset()
    for scenario, why in failed.items():
        print(scenario, *why, sep="\n    ")
    print(f"told: {name}: {len(results) - len(failed)} of {len(results)} scenarios")
    for scenario in failed.keys() & KNOWN[name].keys():
        print(f"told:   does not pass: {scenario}: {KNOWN[name][scenario]}")
    return failed.keys() == KNOWN[name].keys()


async def main():
    sys.modules["mem0"] = recollect.adapters.mem0
    adapters = {"mem0's API": Mem0Adapter(config={"recollect": {"url": SERVER}}), "REST": Recollect()}
    return all([await report(name, adapter) for name, adapter in adapters.items()])


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    raise SystemExit(not asyncio.run(main()))
