"""Short-term memory: the window of a session, and summaries of what no longer fits."""
