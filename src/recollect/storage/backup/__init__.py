"""Backup: the whole database to one file and back."""
