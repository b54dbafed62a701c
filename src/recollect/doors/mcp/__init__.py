"""The MCP door: tools and resources for agents, over stdio and Streamable HTTP."""
