"""The routes, one module a contract or purpose."""
