"""Records and checkpoints over REST: values as they were sent, faults in a sentence, and recall at other doors."""

import json
from typing import Any

import httpx
import pytest
from mcp import Client

from recollect.engine import Engine
from tests.gateway_clients import new_user
from tests.rest_servers import listening

SEAT = {"path": ["travel"], "key": "seat"}
PACKED = {"type": "bytes", "body": "AAEC"}
POINT: dict[str, Any] = {"checkpoint_id": "1", "checkpoint": PACKED}

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


async def test_a_record_is_recalled_at_every_other_door(engine: Engine, namespace: str) -> None:
    said = {"wants": "a chair beside the glass, with a view"}
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        user = await new_user(http, "anna")
        put = {"user_id": "anna", "operations": [{"op": "put", "value": said} | SEAT]}
        (stored,) = (await http.post("/records/batch", json=put)).json()["answers"]
        assert "value" not in stored["record"]
        question = "Which seat does she prefer?"
        (found,) = (await http.post("/recall", json={"query": question, "user_id": "anna"})).json()["memories"]
        assert (found["kind"], found["id"], found["metadata"]) == ("record", stored["record"]["id"], SEAT)
        text = f"wants: {said['wants']}"
        assert await user.texts(question) == [text]
        async with Client(f"{url}/mcp") as client:
            by_mcp = await client.call_tool("recall", {"query": question})
            assert text in str(by_mcp.structured_content)
        assert [memory.text for memory in (await engine.recall.recall(namespace, question)).memories] == [text]


async def test_a_value_is_answered_as_it_was_sent(engine: Engine) -> None:
    value = '{"b": 1.0, "a": [1e+22, 0.1, 1180591620717411303424, null, true], "text": "naïve ☕ \\" \u2028"}'
    body = '{"operations": [{"op": "put", "path": ["a"], "key": "k", "value": VALUE}]}'.replace("VALUE", value)
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        headers = {"Content-Type": "application/json"}
        assert (await http.post("/records/batch", content=body.encode(), headers=headers)).status_code == 200
        got = await http.post("/records/batch", json={"operations": [{"op": "get", "path": ["a"], "key": "k"}]})
        assert json.dumps(got.json()["answers"][0]["record"]["value"]) == json.dumps(json.loads(value))


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("/records/batch", {"operations": []}, "operations"),
        ("/records/batch", {"operations": [{"op": "swap"} | SEAT]}, "'swap'"),
        ("/records/batch", {"operations": [{"op": "put"} | SEAT]}, "value"),
        ("/records/batch", {"operations": [{"op": "get", "path": [], "key": "k"}]}, "path"),
        ("/records/batch", {"operations": [{"op": "search", "filter": {"a": {"$in": [1]}}}]}, "operator"),
        ("/records/batch", {"operations": [{"op": "search", "limit": "10"}]}, "limit"),
        ("/checkpoints/t", POINT | {"checkpoint": {"type": "bytes", "body": "no base64!"}}, "base64"),
        ("/checkpoints/t", POINT | {"values": {"a": PACKED}}, "no version"),
        ("/checkpoints/prune", {"thread_ids": ["t"], "strategy": "all"}, "strategy"),
    ],
)
async def test_a_fault_is_told_with_its_place(engine: Engine, path: str, body: dict[str, Any], place: str) -> None:
    method = "PUT" if path == "/checkpoints/t" else "POST"
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        answer = await http.request(method, path, json=body)
        assert answer.status_code == 422
        assert place in answer.text
