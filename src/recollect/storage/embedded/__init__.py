"""The embedded PostgreSQL: one server per home, shared by every process that holds a lease on it."""

from recollect.storage.embedded.address import Address
from recollect.storage.embedded.lease import Lease, default_home, start

__all__ = ["Address", "Lease", "default_home", "start"]
