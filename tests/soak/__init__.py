"""Every door at once for minutes, with a database that restarts and an indexer that is killed."""
