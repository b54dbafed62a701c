"""Where the embedded server listens, as arguments of asyncpg.connect."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Address:
    """One database of the embedded server, seen by one role; there is no password, the directory is private."""

    socket_dir: Path
    port: int
    user: str
    database: str

    @property
    def target(self) -> dict[str, Any]:
        """Keyword arguments for asyncpg.connect and asyncpg.create_pool."""
        return {"host": str(self.socket_dir), "port": self.port, "user": self.user, "database": self.database}
