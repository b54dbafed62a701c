"""What a client of the MCP door is told when something breaks on our side."""

import json
import logging

import pytest
from mcp import Client, MCPError
from mcp.types import TextContent
from pydantic import BaseModel

from recollect.doors.caller import Caller
from recollect.doors.mcp.errors import as_object
from recollect.doors.mcp.server import RecollectServer
from recollect.doors.mcp.tool import READS, Tools, bound
from recollect.engine import Engine

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

BROKEN = Tools(as_object)


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
