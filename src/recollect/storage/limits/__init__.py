"""Keys that are limited to a user or an agent: what they may run."""
