"""Pinned memories at every door: by themselves, beside what a recall finds, and beside a search of the gateway."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from recollect import Invalid, MemoryManager
from recollect.engine import Engine
from recollect.flows.long_term.memory_requests import Options
from recollect.memory.memories import MemoryScope
from recollect.settings import Settings
from tests.gateway_clients import new_user
from tests.rest_servers import serving

NUTS = "Ann is allergic to nuts."
FERRY = "Ann takes the ferry to work."


async def ok(http: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    answer = await http.request(method, path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


async def store(engine: Engine, namespace: str, user: str = "ann") -> None:
    await engine.memories.add(namespace, FERRY, "fact", MemoryScope(user_id=user))
    await engine.memories.add(namespace, NUTS, "fact", MemoryScope(user_id=user), options=Options(pinned=True))


def said(memories: list[dict[str, Any]], field: str = "text") -> list[str]:
    return [memory[field] for memory in memories]


async def test_the_route_has_its_own_answer_and_is_no_id(engine: Engine, namespace: str) -> None:
    await store(engine, namespace)
    async with serving(engine) as http:
        answer = await ok(http, "GET", "/ltm/memories/pinned?user_id=ann")
        assert said(answer["results"], "memory") == [NUTS]
        assert answer["omitted"] == 0
        assert await ok(http, "GET", "/ltm/memories/pinned?user_id=ann&token_budget=1") == {"results": [], "omitted": 1}
        assert (await ok(http, "GET", "/ltm/memories/pinned?user_id=ben"))["results"] == []
        for query in ("", "?user_id=ann&token_budget=0"):
            assert (await http.get("/ltm/memories/pinned" + query)).status_code == 422


async def test_recall_has_them_beside_the_results_only_if_asked(engine: Engine, namespace: str) -> None:
    await store(engine, namespace)
    asked = {"query": "How does Ann get to work?", "user_id": "ann"}
    async with serving(engine) as http:
        without = await ok(http, "POST", "/recall", asked)
        found = await ok(http, "POST", "/recall", asked | {"include_pinned": True})
        assert "pinned" not in without
        assert said(found["pinned"]["memories"]) == [NUTS]
        assert found["pinned"]["omitted"] == 0
        # The ranking does not know of it.
        ids = [[memory["id"] for memory in answer["memories"]] for answer in (without, found)]
        assert ids[0] == ids[1]
        # They share a budget: half of it at most is theirs.
        tight = await ok(http, "POST", "/recall", asked | {"include_pinned": True, "token_budget": 8})
        assert (tight["pinned"]["memories"], tight["pinned"]["omitted"]) == ([], 1)
        assert said(tight["memories"]) == [FERRY]
        shared = await ok(http, "POST", "/recall", asked | {"include_pinned": True, "token_budget": 16})
        assert said(shared["pinned"]["memories"]) == [NUTS]
        assert said(shared["memories"]) == [FERRY]
        refused = await http.post("/recall", json={"query": "nuts", "include_pinned": True})
        assert refused.status_code == 422
        assert "At least one of user_id, agent_id, or session_id" in refused.text


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_the_library_has_them_by_themselves_and_beside_a_recall(engine: Engine, settings: Settings) -> None:
    async with MemoryManager(settings) as memory:
        user = f"ann-{uuid4()}"
        new = await memory.add_memory(NUTS, user_id=user, pinned=True)
        await memory.add_memory(FERRY, user_id=user)
        pinned = await memory.pinned_memories(user_id=user)
        assert ([each.id for each in pinned.memories], pinned.omitted) == ([new.id], 0)
        assert (await memory.pinned_memories(user_id=user, token_budget=1)).omitted == 1
        found = await memory.recall("How does Ann get to work?", user_id=user, include_pinned=True)
        assert found.pinned == pinned
        assert found.memories[0].text == FERRY
        assert (await memory.recall("ferry", user_id=user)).pinned is None
        with pytest.raises(Invalid, match="At least one of user_id"):
            await memory.pinned_memories()


async def test_a_gateway_search_has_them_if_asked_in_the_body_or_by_a_header(engine: Engine, namespace: str) -> None:
    await store(engine, namespace)
    async with serving(engine) as http:
        anna = await new_user(http, "ann")
        search = {"query": "?!", "scope": ["resources"]}
        assert await anna.ok("/memories/search", **search) == {"results": []}
        (memory,) = (await anna.ok("/memories/search", **search, include_pinned=True))["pinned"]
        assert memory["text"] == NUTS
        http.headers["X-Recollect-Include-Pinned"] = "true"
        assert (await anna.ok("/memories/search", **search))["pinned"] == [memory]
        # Long-term memories are of the default app and project, as in a search.
        assert (await anna.ok("/memories/search", **search, app_id="other"))["pinned"] == []
        ben = await new_user(http, "ben")
        assert (await ben.ok("/memories/search", **search))["pinned"] == []


async def test_the_context_of_a_session_has_those_of_the_session_and_its_user_if_asked(
    engine: Engine, namespace: str
) -> None:
    await store(engine, namespace)
    quiz = MemoryScope(session_id="quiz")
    await engine.memories.add(namespace, "This is a quiz.", "fact", quiz, options=Options(pinned=True))
    async with serving(engine) as http:
        talk = {"messages": [{"role": "user", "content": "Hello."}], "user_id": "ann"}
        await ok(http, "POST", "/stm/quiz/messages", talk)
        await ok(http, "POST", "/stm/other/messages", talk | {"user_id": "ben"})
        without = await ok(http, "GET", "/stm/quiz/context")
        context = await ok(http, "GET", "/stm/quiz/context?include_pinned=true")
        assert said(context.pop("pinned")["memories"]) == ["This is a quiz.", NUTS]
        assert context == without
        for nothing in ("other", "unknown"):
            pinned = (await ok(http, "GET", f"/stm/{nothing}/context?include_pinned=true"))["pinned"]
            assert pinned == {"memories": [], "omitted": 0}
