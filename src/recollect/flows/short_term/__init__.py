"""Short-term memory: the window of a session and what is left out of it."""
