"""Kinds of memory: one entry each, which export, import, recall, forgetting and status read."""
