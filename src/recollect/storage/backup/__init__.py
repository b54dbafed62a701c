"""Backup: the whole database in one file, and out of it again."""
