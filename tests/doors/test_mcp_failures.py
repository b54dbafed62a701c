"""What a client of the MCP door is told when something breaks on our side."""

import asyncio
import json
import logging
from typing import Any

import httpx
import pytest
from mcp import Client, MCPError
from mcp.types import INVALID_REQUEST, TextContent
from pydantic import BaseModel

from recollect.doors.caller import Caller
from recollect.doors.mcp.errors import as_object
from recollect.doors.mcp.route import LoadedRoute
from recollect.doors.mcp.server import RecollectServer
from recollect.doors.mcp.tool import READS, Tools, bound
from recollect.doors.rest.app import create_app
from recollect.engine import Engine
from tests.rest_servers import serving

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

BROKEN = Tools(as_object)
EVENTS = {"Accept": "application/json, text/event-stream"}
PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class Never(BaseModel):
    """What a broken tool does not return."""


@BROKEN.tool("Break", READS)
async def breaks(caller: Caller) -> Never:
    """Fail in a way that nobody foresaw."""
    raise RuntimeError("hunter2")


async def text(client: Client, tool: str, **arguments: str) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_a_database_that_does_not_answer_is_said_in_each_contracts_words(engine: Engine) -> None:
    async with Client(RecollectServer(engine)) as client:
        await engine.database.close()
        problem = json.loads(await text(client, "update_working_memory", content="text"))
        assert (problem["error"], problem["tool"]) == ("Database operation failed", "update_working_memory")
        assert (await text(client, "get_conversation", conversation_id="c")).startswith(
            "Error: The database connection was lost"
        )
        with pytest.raises(MCPError) as caught:
            await client.read_resource("memory://working-memory")
        assert caught.value.code == -32603
        assert caught.value.data["error"] == "Database operation failed"


async def test_what_nobody_foresaw_goes_to_the_log_and_not_to_the_client(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    server = RecollectServer(engine)
    (tool,) = bound(BROKEN.definitions, lambda request: Caller(engine, engine.settings.namespace))
    server._tool_manager._tools[tool.name] = tool
    with caplog.at_level(logging.ERROR):
        async with Client(server) as client:
            answered = await text(client, "breaks")
    assert json.loads(answered)["error"] == "Tool execution failed"
    assert "hunter2" not in answered
    assert "hunter2" in caplog.text


NO_MESSAGES: list[tuple[Any, str]] = [
    ({}, '"jsonrpc": "2.0"'),
    ([{}], "must be one JSON-RPC message"),
    ("ping", "must be one JSON-RPC message"),
    (PING | {"jsonrpc": "1.0"}, '"jsonrpc": "2.0"'),
    (PING | {"id": 1.5}, '"id" must be'),
    (PING | {"id": "x" * 256}, '"id" is longer than'),
    (PING | {"method": 5}, '"method" must be'),
    (PING | {"method": "x" * 100_000}, '"method" must be'),
    (PING | {"params": []}, '"params" must be'),
    ({"jsonrpc": "2.0", "id": 1}, 'must have a "method"'),
    ({"jsonrpc": "2.0", "result": {}}, 'must have the "id"'),
    ({"jsonrpc": "2.0", "id": 1, "error": {"code": "x"}}, 'must have a "method"'),
]


async def test_what_is_no_message_is_refused_in_a_sentence(engine: Engine) -> None:
    async with serving(engine, headers=EVENTS) as http:
        for message, sentence in NO_MESSAGES:
            answer = await http.post("/mcp", json=message)
            assert answer.status_code == 400, message
            assert answer.json()["error"]["code"] == INVALID_REQUEST
            assert sentence in answer.json()["error"]["message"]
            assert len(answer.text) < 300
        assert (await http.post("/mcp", json=PING)).status_code == 200
        assert (await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "result": {}})).status_code == 202


async def test_a_stream_that_opens_while_the_server_stops_is_ended(engine: Engine) -> None:
    route = LoadedRoute(engine, ())
    app = create_app(engine, route.routes)
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")
    async with route.running(), client as http:
        assert (await http.post("/mcp", json=PING, headers=EVENTS)).status_code == 200
        route.end_streams()
        async with asyncio.timeout(30):
            answer = await http.get("/mcp", headers=EVENTS)
    assert answer.status_code == 503


async def test_a_request_that_waits_for_the_sdk_ends_when_the_server_stops(engine: Engine) -> None:
    route = LoadedRoute(engine, ())  # never loaded
    app = create_app(engine, route.routes)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        request = asyncio.create_task(client.post("/mcp", json=PING))
        async with asyncio.timeout(30):
            while not request.done():
                route.end_streams()
                await asyncio.sleep(0)
        answer = await request
    assert answer.status_code == 503
    assert answer.json()["detail"] == "The server is shutting down: try again in a moment"
