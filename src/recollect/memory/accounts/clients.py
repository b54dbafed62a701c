"""Clients: programs that registered with the server so that people can connect them; shared by all namespaces."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recollect.storage.database import Transaction
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="clients.sql"):
    add: Query
    find: Query
    note_use: Query
    count_unused: Query
    remove_unused: Query


@dataclass(frozen=True, slots=True)
class Client:
    """What a client says about itself, and the hash of its secret if it has one."""

    id: str
    name: str | None
    redirect_uris: tuple[str, ...]
    secret_digest: bytes | None
    created_at: datetime


class OAuthClients:
    """Stores clients, in transactions that belong to no namespace."""

    async def add(
        self, tx: Transaction, client_id: str, name: str | None, redirect_uris: Sequence[str], digest: bytes | None
    ) -> Client:
        """Add a client."""
        values = {"client_id": client_id, "name": name, "redirect_uris": list(redirect_uris)}
        row = await tx.one(_Sql.add, **values, secret_digest=digest)
        return Client(row["id"], row["name"], tuple(row["redirect_uris"]), row["secret_digest"], row["created_at"])

    async def find(self, tx: Transaction, client_id: str) -> Client | None:
        """The client with this id."""
        row = await tx.first(_Sql.find, client_id=client_id)
        if row is None:
            return None
        return Client(row["id"], row["name"], tuple(row["redirect_uris"]), row["secret_digest"], row["created_at"])

    async def note_use(self, tx: Transaction, client_id: str) -> None:
        """Note that a client got tokens."""
        await tx.all(_Sql.note_use, client_id=client_id)

    async def count_unused(self, tx: Transaction, kept_seconds: float, most: int) -> int:
        """How many clients that were never connected are this new, up to a bound."""
        return int((await tx.one(_Sql.count_unused, kept_seconds=kept_seconds, most=most))["clients"])

    async def remove_unused(
        self, tx: Transaction, most: int, kept_seconds: float, unused_days: int, idle_days: int
    ) -> None:
        """Delete clients that were never connected, if too many or too old, and those that have been idle too long.

        A client that is newer than `kept_seconds` is kept even if there are too many: somebody may be connecting it.
        """
        limits = {"most": most, "kept_seconds": kept_seconds, "unused_days": unused_days, "idle_days": idle_days}
        await tx.all(_Sql.remove_unused, **limits)
