"""Connections: clients that people connected with a key, and the codes and tokens issued to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from urllib.parse import urlsplit

from recollect.origin import Role
from recollect.storage.database import Database, Statements, Transaction
from recollect.storage.sql import Queries, Query

TokenKind = Literal["code", "access", "refresh"]


class _Sql(Queries, file="connections.sql"):
    add: Query
    add_token: Query
    find: Query
    use_up: Query
    note_use: Query
    of_namespace: Query
    works: Query
    end_tokens: Query
    end_connection: Query
    end_tokens_of_keys: Query
    end_of_keys: Query
    remove_expired: Query
    remove_ended: Query


@dataclass(frozen=True, slots=True)
class NewConnection:
    """What a person allowed a client, and what the client must present to get its tokens."""

    id: str
    key_id: str
    client_id: str
    client_name: str | None
    redirect_uri: str
    resource: str
    code_challenge: str
    role: Role


@dataclass(frozen=True, slots=True)
class Connection:
    """A connected client. Its name is what it calls itself."""

    id: str
    key_id: str
    client_name: str | None
    redirect_uri: str
    role: Role
    created_at: datetime
    last_used_at: datetime | None

    @property
    def place(self) -> str:
        """Where the client runs: a host, or the scheme of an application on a device."""
        return place_of(self.redirect_uri)


@dataclass(frozen=True, slots=True)
class Token:
    """A code or token that was issued, and its connection."""

    namespace: str
    connection_id: str
    kind: TokenKind
    role: Role
    expired: bool
    used: bool
    client_id: str
    redirect_uri: str
    resource: str
    code_challenge: str
    last_used_at: datetime | None
    """When its connection was last used, to about a minute."""
    key_digest: bytes
    key_id: str
    key_label: str | None


def place_of(redirect_uri: str) -> str:
    """The host of an address, or its scheme if it belongs to an application on a device."""
    parts = urlsplit(redirect_uri)
    return parts.hostname if parts.hostname and parts.scheme in ("http", "https") else f"{parts.scheme}:"


class StoredConnections:
    """Stores connections and the hashes of their tokens. Lookups go across namespaces, as for keys."""

    async def add(self, tx: Transaction, new: NewConnection) -> None:
        """Add a connection without tokens."""
        await tx.all(
            _Sql.add,
            id=new.id,
            key_id=new.key_id,
            client_id=new.client_id,
            client_name=new.client_name,
            redirect_uri=new.redirect_uri,
            resource=new.resource,
            code_challenge=new.code_challenge,
            role=new.role,
        )

    async def add_token(
        self, tx: Transaction, connection_id: str, digest: bytes, kind: TokenKind, role: Role, seconds: float
    ) -> None:
        """Add a code or a token."""
        values = {"connection_id": connection_id, "digest": digest, "kind": kind, "role": role}
        await tx.all(_Sql.add_token, **values, seconds=seconds)

    async def find(self, database: Database, digest: bytes) -> Token | None:
        """The code or token with this hash."""
        async with database.unscoped() as connection:
            row = await connection.fetchrow(_Sql.find.text, digest)
        return None if row is None else Token(*row)

    async def use_up(self, tx: Transaction, digest: bytes) -> bool:
        """Use up a code or refresh token; False if it was used before."""
        return await tx.first(_Sql.use_up, digest=digest) is not None

    async def note_use(self, tx: Transaction, connection_id: str) -> None:
        """Note that a client uses its connection."""
        await tx.all(_Sql.note_use, id=connection_id)

    async def of_namespace(self, db: Statements, limit: int) -> list[Connection]:
        """Connections that still work, newest first."""
        return [Connection(*row) for row in await db.all(_Sql.of_namespace, limit=limit)]

    async def works(self, db: Statements, connection_id: str) -> bool:
        """Whether a connection has a token that works."""
        return bool((await db.one(_Sql.works, id=connection_id))["works"])

    async def end(self, tx: Transaction, connection_id: str) -> bool:
        """Delete a connection and its tokens; False if there is none."""
        await tx.all(_Sql.end_tokens, id=connection_id)
        return await tx.first(_Sql.end_connection, id=connection_id) is not None

    async def end_of_keys(self, tx: Transaction, key_ids: Sequence[str]) -> None:
        """Delete the connections of some keys and their tokens."""
        await tx.all(_Sql.end_tokens_of_keys, key_ids=list(key_ids))
        await tx.all(_Sql.end_of_keys, key_ids=list(key_ids))

    async def remove_expired(self, tx: Transaction) -> None:
        """Delete expired codes and tokens, and connections that have none left."""
        await tx.all(_Sql.remove_expired)
        await tx.all(_Sql.remove_ended)
