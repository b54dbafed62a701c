"""An agent with the memory as its MCP server over HTTP; a read last."""

import asyncio

from mcp import Client


async def main() -> None:
    async with Client("http://127.0.0.1:8000/mcp") as client:
        assert (await client.list_tools()).tools
        await client.call_tool("remember", {"text": "The spare key is under the flowerpot."})
        found = await client.call_tool("recall", {"query": "Where is the key?"})
        assert "flowerpot" in str(found.structured_content)


asyncio.run(main())
