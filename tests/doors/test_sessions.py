"""`/sessions`: what chat frameworks store comes back as it was, in order, and is in the one log with all the rest."""

import asyncio
import io
import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from recollect.engine import Engine
from recollect.flows.gateway import Owner, Said
from tests.flows.test_forget_proof import everything, telling
from tests.rest_servers import serving

# Keys in no order, a whole number beside a float, a huge one, half a character, NUL: in a text, all of it is kept.
EXACT = '{"z": 1, "a": {"c": 1.0, "b": 1e-7}, "n": 123456789012345678901234567890, "half": "\\ud800", "nul": "\\u0000"}'
CALL = {"type": "function_call", "name": "get_weather", "arguments": '{"city": "Lyon"}', "rank": 2.0, "by": None}


async def ok(http: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    answer = await http.request(method, path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


async def say(http: httpx.AsyncClient, session: str, *texts: str, user: str = "ann") -> list[dict[str, Any]]:
    messages = [{"role": "user", "text": text} for text in texts]
    answer = await ok(http, "POST", f"/sessions/{session}/messages", {"messages": messages, "user_id": user})
    return list(answer["messages"])


async def texts(http: httpx.AsyncClient, session: str, query: str = "") -> list[str]:
    return [message["text"] for message in (await ok(http, "GET", f"/sessions/{session}/messages{query}"))["messages"]]


async def test_a_payload_comes_back_as_it_was_and_the_text_beside_it_is_found(engine: Engine, namespace: str) -> None:
    async with serving(engine) as http:
        messages = [
            {"role": "user", "text": "Is it raining in Lyon?", "payload": EXACT, "speaker": "Ann"},
            {"role": "tool", "payload": CALL, "at": "2026-02-14T12:00:00Z", "metadata": {"turn": 1}},
            {"role": "assistant", "text": "It pours.", "payload": ["text", 1, 1.0, False]},
        ]
        stored = await ok(http, "POST", "/sessions/s/messages", {"messages": messages, "user_id": "ann"})
        read = await ok(http, "GET", "/sessions/s/messages")
        assert read == stored
        payloads = [message["payload"] for message in read["messages"]]
        assert payloads == [EXACT, CALL, ["text", 1, 1.0, False]]
        assert list(payloads[1]) == list(CALL)
        assert [type(value) for value in payloads[2]] == [str, int, float, bool]
        assert [message["text"] for message in read["messages"]] == ["Is it raining in Lyon?", "", "It pours."]
        assert [message["role"] for message in read["messages"]] == ["user", "tool", "assistant"]
        await engine.indexer.flush(namespace)  # they share no word
        found = await ok(http, "POST", "/recall", {"query": "raining in Lyon", "user_id": "ann"})
        assert {memory["text"] for memory in found["memories"]} == {"Is it raining in Lyon?", "It pours."}
        # A window is for a model, which cannot read what says nothing.
        window = await ok(http, "GET", "/stm/s/context")
        assert [message["content"] for message in window["messages"]] == ["Is it raining in Lyon?", "It pours."]


async def test_messages_are_read_in_pages_from_either_end(engine: Engine) -> None:
    async with serving(engine) as http:
        ids = [message["id"] for message in await say(http, "s", *"abcdef")]
        assert await texts(http, "s", "?limit=2") == ["a", "b"]
        assert await texts(http, "s", f"?limit=2&after={ids[1]}") == ["c", "d"]
        assert await texts(http, "s", "?limit=2&newest=true") == ["e", "f"]
        assert await texts(http, "s", f"?limit=2&newest=true&before={ids[4]}") == ["c", "d"]
        assert await texts(http, "s", f"?after={ids[0]}&before={ids[3]}") == ["b", "c"]
        assert await texts(http, "s", f"?after={ids[5]}") == []
        assert await texts(http, "nothing-was-said-here") == []
        answer = await http.get(f"/sessions/another/messages?after={ids[0]}")
        assert answer.status_code == 404


async def test_a_batch_is_stored_whole_or_not_at_all(engine: Engine) -> None:
    async with serving(engine) as http:
        for wrong in ({"role": "user"}, {"role": "user", "text": " "}, {"text": "x"}, {"role": "", "text": "x"}):
            body = {"messages": [{"role": "user", "text": "first"}, wrong]}
            assert (await http.post("/sessions/s/messages", json=body)).status_code == 422, wrong
        assert await texts(http, "s") == []
        own = {"role": "user", "text": "once", "id": "0198b2a6-6a35-7c7e-9f6e-2f1f5d1c9a51", "payload": {"a": 1}}
        for _ in range(2):
            await ok(http, "POST", "/sessions/s/messages", {"messages": [own]})
        assert await texts(http, "s") == ["once"]
        other = {"messages": [own | {"payload": {"a": 2}}]}
        assert (await http.post("/sessions/s/messages", json=other)).status_code == 409


async def test_popped_messages_go_to_one_caller_each_and_nothing_is_left_of_them(
    engine: Engine, namespace: str
) -> None:
    async with serving(engine) as http:
        await say(http, "s", "one", "two", "three zyxomlurk", "four quvantrel")
        popped = await asyncio.gather(*(ok(http, "DELETE", "/sessions/s/messages/last") for _ in range(3)))
        assert {answer["message"]["text"] for answer in popped} == {"two", "three zyxomlurk", "four quvantrel"}
        assert await texts(http, "s") == ["one"]
        assert telling(await everything(engine, namespace), "zyxomlurk", "quvantrel") == []
        await say(http, "s", "five")
        assert await texts(http, "s") == ["one", "five"]
        for _ in range(2):
            await ok(http, "DELETE", "/sessions/s/messages/last")
        assert await ok(http, "DELETE", "/sessions/s/messages/last") == {"message": None}


async def test_one_message_is_removed_by_its_id_and_only_from_its_own_session(engine: Engine, namespace: str) -> None:
    async with serving(engine) as http:
        first, _ = await say(http, "s", "one zyxomlurk", "two")
        path = f"/messages/{first['id']}"
        assert (await http.delete("/sessions/other" + path)).status_code == 404
        assert (await ok(http, "DELETE", "/sessions/s" + path))["message"] == first
        assert await texts(http, "s") == ["two"]
        assert telling(await everything(engine, namespace), "zyxomlurk") == []
        assert (await http.delete("/sessions/s" + path)).status_code == 404


async def test_messages_and_the_metadata_of_several_sessions_are_written_together_or_not_at_all(engine: Engine) -> None:
    async with serving(engine) as http:
        for session in ("s", "app"):
            await ok(http, "POST", "/sessions", {"id": session, "user_id": "ann", "metadata": {"kept": 1, "set": 1}})
        told = {"messages": [{"role": "user", "text": "one", "payload": 1}]}
        changed = {"metadata": {"set": None}, "other_metadata": {"app": {"set": None}}}
        await ok(http, "POST", "/sessions/s/messages", {**told, **changed, "keep_null": True})
        for session in ("s", "app"):
            assert (await ok(http, "GET", f"/sessions/{session}"))["metadata"] == {"kept": 1, "set": None}
        for lost, status in (
            ({"metadata": {"set": 3}, "other_metadata": {"nowhere": {}}}, 404),
            ({"expected": {"set": 4}, "other_metadata": {"app": {"set": 3}}}, 409),
        ):
            assert (await http.post("/sessions/s/messages", json={**told, **lost})).status_code == status
        assert (await ok(http, "GET", "/sessions/app"))["metadata"] == {"kept": 1, "set": None}
        assert await texts(http, "s") == ["one"]
        kept = await ok(http, "PATCH", "/sessions/s", {"metadata": {"kept": None}, "keep_null": True})
        assert kept["metadata"] == {"kept": None, "set": None}
        assert (await ok(http, "PATCH", "/sessions/s", {"metadata": {"set": None}}))["metadata"] == {"kept": None}


async def test_clearing_keeps_the_session_and_deleting_does_not(engine: Engine, namespace: str) -> None:
    async with serving(engine) as http:
        await ok(http, "PUT", "/sessions/s", {"user_id": "ann", "metadata": {"stage": 1}})
        await say(http, "s", "zyxomlurk", "two")
        await ok(http, "PUT", "/stm/s/config", {"strategy": "token_threshold", "max_tokens": 1})
        await ok(http, "GET", "/stm/s/context")
        assert await ok(http, "DELETE", "/sessions/s/messages") == {"removed": 2}
        assert await ok(http, "DELETE", "/sessions/s/messages") == {"removed": 0}
        assert telling(await everything(engine, namespace), "zyxomlurk") == []
        assert (await ok(http, "GET", "/sessions/s"))["metadata"] == {"stage": 1}
        await say(http, "s", "three")
        window = await ok(http, "GET", "/stm/s/context")
        assert [message["content"] for message in window["messages"]] == ["three"]
        assert await ok(http, "DELETE", "/sessions/s") == {"deleted": True}
        assert await ok(http, "DELETE", "/sessions/s") == {"deleted": False}
        assert (await http.get("/sessions/s")).status_code == 404


async def test_sessions_are_listed_by_user_and_agent_the_last_active_first(engine: Engine) -> None:
    async with serving(engine) as http:
        for number in range(5):
            await say(http, f"s{number}", "hello")
        await say(http, "s1", "again")
        await ok(http, "POST", "/sessions", {"id": "other", "user_id": "ben", "agent_id": "planner"})
        seen, cursor = [], ""
        while cursor is not None:
            page = await ok(http, "GET", f"/sessions?user_id=ann&limit=2{cursor and f'&cursor={cursor}'}")
            seen += [session["id"] for session in page["sessions"]]
            cursor = page["next"]
        assert seen == ["s1", "s4", "s3", "s2", "s0"]
        (found,) = (await ok(http, "GET", "/sessions?agent_id=planner"))["sessions"]
        assert (found["id"], found["user_id"]) == ("other", "ben")
        assert len((await ok(http, "GET", "/sessions"))["sessions"]) == 6
        assert (await http.get("/sessions?cursor=AAAA")).status_code == 422


async def test_metadata_is_replaced_or_merged_and_the_user_stays(engine: Engine) -> None:
    async with serving(engine) as http:
        first = {"user_id": "ann", "title": "Trip", "metadata": {"stage": 1, "cart": {"a": 1}}}
        assert (await ok(http, "PUT", "/sessions/s", first))["metadata"] == first["metadata"]
        change = {"metadata": {"stage": None, "cart": {"b": 2}, "new": True}}
        changed = await ok(http, "PATCH", "/sessions/s", change)
        assert changed["metadata"] == {"cart": {"b": 2}, "new": True}
        assert (changed["title"], changed["user_id"]) == ("Trip", "ann")
        assert (await ok(http, "PUT", "/sessions/s", {"metadata": {}}))["title"] is None
        assert (await http.put("/sessions/s", json={"user_id": "ben"})).status_code == 409
        assert (await http.post("/sessions", json={"id": "s"})).status_code == 409
        assert (await http.patch("/sessions/unknown", json=change)).status_code == 404
        keys = [f"k{number}" for number in range(8)]
        await asyncio.gather(*(ok(http, "PATCH", "/sessions/s", {"metadata": {key: 1}}) for key in keys))
        assert (await ok(http, "GET", "/sessions/s"))["metadata"] == dict.fromkeys(keys, 1)


async def test_messages_and_metadata_are_written_in_one_step_if_nobody_was_faster(engine: Engine) -> None:
    def body(revision: int, expected: int | None) -> dict[str, Any]:
        said = [{"role": "user", "text": f"revision {revision}", "payload": revision}]
        return {"messages": said, "metadata": {"revision": revision}, "expected": {"revision": expected}}

    async with serving(engine) as http:
        for revision, expected in ((1, None), (2, 1)):
            await ok(http, "POST", "/sessions/s/messages", body(revision, expected) | {"user_id": "ann"})
        for expected in (None, 1):
            assert (await http.post("/sessions/s/messages", json=body(3, expected))).status_code == 409
        answers = await asyncio.gather(*(http.post("/sessions/s/messages", json=body(3, 2)) for _ in range(4)))
        assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
        assert await texts(http, "s") == ["revision 1", "revision 2", "revision 3"]
        session = await ok(http, "GET", "/sessions/s")
        assert (session["metadata"], session["user_id"]) == ({"revision": 3}, "ann")
        # What is refused begins no session.
        assert (await http.post("/sessions/new/messages", json=body(2, 1))).status_code == 409
        assert (await http.get("/sessions/new")).status_code == 404
        change = {"metadata": {"revision": None}, "expected": {"revision": 2}}
        assert (await http.patch("/sessions/s", json=change)).status_code == 409
        await ok(http, "PATCH", "/sessions/s", change | {"expected": {"revision": 3}})
        found = await ok(http, "POST", "/recall", {"query": "revision", "user_id": "ann"})
        assert len(found["memories"]) == 3


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_chat_of_the_gateway_is_only_for_its_user_to_change(engine: Engine, namespace: str) -> None:
    await engine.gateway.add(Owner(namespace, "ann"), "chat:1", [Said("ann", "user", 1, "hello")])
    async with serving(engine) as http:
        (chat,) = (await ok(http, "GET", "/sessions?user_id=ann"))["sessions"]
        path = f"/sessions/{chat['id']}"
        for method, place, body in (
            ("PUT", "", {}),
            ("PATCH", "", {}),
            ("DELETE", "/messages", None),
            ("DELETE", "/messages/last", None),
            ("DELETE", f"/messages/{uuid4()}", None),
            ("POST", "/messages", {"messages": [{"role": "user", "text": "x"}]}),
        ):
            answer = await http.request(method, path + place, json=body)
            assert answer.status_code == 422, (method, place)
        assert await texts(http, chat["id"]) == ["hello"]


async def test_messages_with_payloads_are_exported_and_come_back(engine: Engine, namespace: str) -> None:
    async with serving(engine) as http:
        await ok(http, "POST", "/sessions/s/messages", {"messages": [{"role": "tool", "payload": EXACT}]})
        lines = [line async for line in engine.exporting.lines(namespace)]
        copy = f"{namespace}-copy"
        await engine.importing.run(io.BytesIO("\n".join(lines).encode()), copy)
        (message,) = await engine.sessions.messages(copy, "s", 10)
        assert (message.content, json.loads(message.payload or "")) == ("", EXACT)
