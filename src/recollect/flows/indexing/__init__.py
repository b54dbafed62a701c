"""Indexing: which model embeds a namespace, what it embeds, and when."""
