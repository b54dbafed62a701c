"""Capabilities: each a pair of x.py and x.sql, none of which imports another."""
