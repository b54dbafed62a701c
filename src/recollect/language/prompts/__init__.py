"""Prompts of agents: whether one is worth a search, and how memories are quoted beside it."""
