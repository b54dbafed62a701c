"""Forgetting: what goes, what goes with it, and the receipt."""
