"""The agent's second memory: the gateway over HTTP."""
