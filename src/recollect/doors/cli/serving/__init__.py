"""Commands that serve: HTTP, MCP over standard input, and the agent in a terminal."""
