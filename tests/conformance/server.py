"""The server that the conformance suite talks to: ours, made by our own factories, with the suite's fixtures added.

Transport, middleware, resources and error handling are those of `recollect serve`; our own tools and resources are
listed and validated beside the fixtures. Only the suite's requests from the server to a 2025 client need sessions.
"""

import asyncio
import socket
import sys
from typing import Annotated, Any

import mcp.types as types
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from recollect.doors.mcp.server import RecollectServer, http_routes
from recollect.doors.rest.app import create_app
from recollect.engine import Engine
from tests.conformance import content, dialogue
from tests.conformance.events import EventList

MODERN = "2026-07-28"

SESSIONS: dict[str, Any] = {"stateless_http": False, "event_store": EventList(), "retry_interval": 100}

# What the suite wants to find again, word for word, in `tools/list`.
JSON_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def conformance_server(engine: Engine) -> MCPServer[Any]:
    server = RecollectServer(engine, subscriptions=None)
    content.add_to(server)
    dialogue.add_to(server)
    _add_schemas(server)
    _add_what_2026_removed(server)
    return server


def _add_schemas(server: MCPServer[Any]) -> None:
    def json_schema_2020_12_tool() -> str:
        """Has a schema that uses much of JSON Schema 2020-12."""
        return "Nothing to see"

    @server.tool()
    def test_header_parameter(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    ) -> str:
        """Takes a parameter that HTTP clients repeat in a header."""
        return region

    tool = Tool.from_function(json_schema_2020_12_tool)
    server._tool_manager._tools[tool.name] = tool.model_copy(update={"parameters": JSON_SCHEMA})


def _add_what_2026_removed(server: MCPServer[Any]) -> None:
    async def acknowledge(context: Any, params: Any) -> types.EmptyResult:
        return types.EmptyResult()

    low = server._lowlevel_server
    low.add_request_handler("logging/setLevel", types.SetLevelRequestParams, acknowledge)
    low.add_request_handler("resources/subscribe", types.SubscribeRequestParams, acknowledge)
    low.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, acknowledge)


async def main(revision: str) -> None:
    """Serve on a free port, print the address, and go on until a signal."""
    engine = await Engine.open()
    server = conformance_server(engine)
    sessions = {} if revision == MODERN else SESSIONS
    routes = http_routes(server, **sessions)
    app = create_app(engine, routes, server.session_manager.run)
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
