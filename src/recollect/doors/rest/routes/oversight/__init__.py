"""Routes for those who look after a memory: what happened, where it comes from, and what is held."""
