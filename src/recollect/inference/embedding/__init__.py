"""Models that turn text into vectors."""
