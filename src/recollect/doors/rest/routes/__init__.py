"""The routes, one module per contract or purpose."""
