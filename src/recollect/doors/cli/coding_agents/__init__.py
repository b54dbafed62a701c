"""Hooks and MCP entries for coding agents: what is written where, and the command that the hooks run."""
