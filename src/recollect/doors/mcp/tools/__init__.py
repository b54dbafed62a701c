"""The tools, one module a toolset."""
