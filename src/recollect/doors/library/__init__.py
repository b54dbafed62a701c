"""The Python library door."""
