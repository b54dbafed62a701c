"""Forgetting: what is deleted, what is deleted with it, and the receipt."""
