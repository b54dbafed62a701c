"""Access: the keys of a namespace, stored only as hashes."""

from dataclasses import dataclass
from datetime import datetime

from recollect.storage.database import Database, Statements, Transaction
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="access.sql"):
    add: Query
    of_namespace: Query
    revoke: Query
    guards: Query
    find: Query
    any_guards: Query
    elsewhere: Query
    count_of_user: Query
    remove_of_user: Query


@dataclass(frozen=True, slots=True)
class Key:
    """A key without its secret; one with a user belongs to a user of the gateway."""

    id: str
    label: str | None
    user_id: str | None
    created_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class Credential:
    """Whom a secret proved to be: a namespace, or one user in it."""

    namespace: str
    key_id: str
    user_id: str | None
    label: str | None = None


class Keys:
    """Stores hashes of keys. Finding one looks across namespaces, since the key is what names the namespace."""

    async def add(
        self, tx: Transaction, key_id: str, digest: bytes, label: str | None, user_id: str | None
    ) -> Key | None:
        """A new key, or None if this user has one already."""
        row = await tx.first(_Sql.add, key_id=key_id, digest=digest, label=label, user_id=user_id)
        return None if row is None else Key(*row)

    async def of_namespace(self, db: Statements) -> list[Key]:
        """Every key there ever was, oldest first."""
        return [Key(*row) for row in await db.all(_Sql.of_namespace)]

    async def revoke(self, tx: Transaction, key_id: str) -> bool:
        """False when there is no such key, or it is revoked already."""
        return await tx.first(_Sql.revoke, key_id=key_id) is not None

    async def guard(self, db: Statements) -> bool:
        """Whether the namespace has a key that opens it."""
        return bool((await db.one(_Sql.guards))["guarded"])

    async def find(self, database: Database, digest: bytes) -> Credential | None:
        """Whom a hash belongs to."""
        async with database.unscoped() as connection:
            row = await connection.fetchrow(_Sql.find.text, digest)
        return None if row is None else Credential(*row)

    async def guard_anything(self, database: Database) -> bool:
        """Whether there is a key at all."""
        async with database.unscoped() as connection:
            return bool(await connection.fetchval(_Sql.any_guards.text))

    async def elsewhere(self, database: Database, namespace: str, limit: int) -> dict[str, int]:
        """Other namespaces with keys in use, and how many."""
        async with database.unscoped() as connection:
            rows = await connection.fetch(_Sql.elsewhere.text, namespace, limit)
        return {row["namespace"]: row["keys"] for row in rows}

    async def count_of_user(self, db: Statements, user_id: str) -> int:
        """How many keys a user has or had."""
        return int((await db.one(_Sql.count_of_user, user_id=user_id))["keys"])

    async def remove_of_user(self, tx: Transaction, user_id: str) -> int:
        """Delete what is known of a user's keys; returns how many there were."""
        return len(await tx.all(_Sql.remove_of_user, user_id=user_id))
