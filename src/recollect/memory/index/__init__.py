"""The search index: passages, their vectors, and the statistics of their words."""
