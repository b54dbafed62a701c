"""Flows: where capabilities meet."""
