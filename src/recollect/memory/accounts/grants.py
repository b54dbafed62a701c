"""Grants: which keys of other namespaces may read a namespace. A grant is a row of the namespace that it opens."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recollect.storage.database import Statements, Transaction
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="grants.sql"):
    add: Query
    remove: Query
    readers: Query
    held: Query
    copy: Query
    remove_held: Query


@dataclass(frozen=True, slots=True)
class Grant:
    """A namespace, and a key of another one that may read it."""

    namespace: str
    key_namespace: str
    key_id: str
    created_at: datetime
    expires_at: datetime | None
    label: str | None = None
    """What the key is for."""
    last_used_at: datetime | None = None


class KeyGrants:
    """Stores grants. Looking up a key also finds the grants it holds."""

    async def add(self, tx: Transaction, key_namespace: str, key_id: str, expires_at: datetime | None) -> Grant:
        """Let a key of another namespace read this one."""
        values = {"key_namespace": key_namespace, "key_id": key_id, "expires_at": expires_at}
        return Grant(*await tx.one(_Sql.add, **values))

    async def remove(self, tx: Transaction, key_namespace: str, key_id: str) -> bool:
        """Take back a grant; False if there was none."""
        return await tx.first(_Sql.remove, key_namespace=key_namespace, key_id=key_id) is not None

    async def readers(self, db: Statements, limit: int) -> list[Grant]:
        """Keys of other namespaces that may read this one."""
        return [Grant(*row) for row in await db.all(_Sql.readers, limit=limit)]

    async def held(self, db: Statements, key_ids: Sequence[str]) -> list[Grant]:
        """The grants that keys of the namespace hold."""
        return [Grant(*row) for row in await db.all(_Sql.held, key_ids=key_ids)]

    async def copy(self, tx: Transaction, key_id: str, copy_id: str) -> list[str]:
        """Give another key of the namespace the same grants; returns the namespaces that these open."""
        return [row["namespace"] for row in await tx.all(_Sql.copy, key_id=key_id, copy_id=copy_id)]

    async def remove_held(self, tx: Transaction) -> None:
        """Delete the grants that keys of the namespace hold."""
        await tx.all(_Sql.remove_held)
