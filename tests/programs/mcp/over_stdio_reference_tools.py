"""A user of the MCP reference memory server who changed the command: its nine tools, a read last."""

import asyncio
import os
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client

ANN = {"name": "Ann", "entityType": "person", "observations": ["takes the ferry", "sings"]}
LEADS = {"from": "Ann", "to": "Choir", "relationType": "leads"}


async def main() -> None:
    quiet = os.environ | {"RECOLLECT_LOG_LEVEL": "WARNING"}
    server = StdioServerParameters(command="recollect", args=["mcp", "--toolsets", "graph-reference"], env=quiet)
    async with Client(stdio_client(server)) as client:

        async def call(tool: str, **arguments: Any) -> Any:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result.content
            return result.structured_content

        assert len((await client.list_tools()).tools) == 9
        assert (await call("create_entities", entities=[ANN]))["entities"] == [ANN]
        assert await call("create_relations", relations=[LEADS])
        assert await call("add_observations", observations=[{"entityName": "Ann", "contents": ["paints"]}])
        assert await call("delete_observations", deletions=[{"entityName": "Ann", "observations": ["sings"]}])
        assert (await call("open_nodes", names=["Ann"]))["relations"] == [LEADS]
        assert await call("delete_relations", relations=[LEADS])
        assert (await call("search_nodes", query="FERRY"))["entities"][0]["observations"] == [
            "takes the ferry",
            "paints",
        ]
        assert await call("delete_entities", entityNames=["Ann"])
        assert await call("read_graph") == {"entities": [], "relations": []}


asyncio.run(main())
