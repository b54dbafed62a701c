"""The embedded PostgreSQL: one server per home, shared by every process that holds a lease on it."""
