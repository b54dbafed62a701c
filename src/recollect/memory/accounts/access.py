"""Access: the keys of a namespace, stored only as hashes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from recollect.origin import Limits, Reach, Role
from recollect.quotas import NO_QUOTA, Quota
from recollect.storage.database import Database, Statements, Transaction
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="access.sql"):
    add: Query
    of_namespace: Query
    applications: Query
    users: Query
    set_quota: Query
    revoke: Query
    add_browser: Query
    remove_browsers: Query
    find_browser: Query
    exists: Query
    lock: Query
    working: Query
    end_in: Query
    note_use: Query
    guards: Query
    find: Query
    any_guards: Query
    elsewhere: Query
    count_of_user: Query
    remove_of_user: Query
    of_person: Query


@dataclass(frozen=True, slots=True)
class Key:
    """A key without its secret; one with a user belongs to a user of the gateway."""

    id: str
    label: str | None
    user_id: str | None
    created_at: datetime
    revoked_at: datetime | None
    role: Role = "admin"
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    only_user: str | None = None
    only_agent: str | None = None
    requests_per_minute: int | None = None
    rows_per_day: int | None = None
    bytes_per_day: int | None = None

    @property
    def quota(self) -> Quota:
        """Its own; what it leaves out is the deployment's."""
        return Quota(self.requests_per_minute, self.rows_per_day, self.bytes_per_day)

    @property
    def state(self) -> Literal["valid", "expired", "revoked"]:
        """Whether it works now, and if not, why."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= datetime.now(UTC) else "valid"


@dataclass(frozen=True, slots=True)
class Credential:
    """Whom a secret proved to be: a namespace, or one user in it, and what its holder may do there."""

    namespace: str
    key_id: str
    user_id: str | None
    label: str | None = None
    role: Role = "admin"
    last_used_at: datetime | None = None
    """When it was read; noted about once a minute."""
    only_user: str | None = None
    only_agent: str | None = None
    requests_per_minute: int | None = None
    rows_per_day: int | None = None
    bytes_per_day: int | None = None
    granted: Sequence[str] = ()
    """Other namespaces that it may read."""
    key_role: Role | None = None
    """The role of the key itself, if a connected client's token stands for it."""
    connection_id: str | None = None
    """The connection of the client that uses it, if the client signed in with OAuth."""

    @property
    def reach(self) -> Reach:
        """What its holder may name: its namespace, and what is granted."""
        return Reach(self.namespace, frozenset(self.granted))

    @property
    def quota(self) -> Quota:
        """Its own; what it leaves out is the deployment's."""
        return Quota(self.requests_per_minute, self.rows_per_day, self.bytes_per_day)

    @property
    def limits(self) -> Limits | None:
        """The user and the agent whose memory it is for; None for everybody's."""
        only = Limits(self.only_user, self.only_agent)
        return None if only == Limits() else only


@dataclass(frozen=True, slots=True)
class KeyTerms:
    """What a key is for and what it may do."""

    label: str | None = None
    role: Role = "admin"
    expires_at: datetime | None = None
    limits: Limits = field(default_factory=Limits)
    quota: Quota = NO_QUOTA


class Keys:
    """Stores hashes of keys. Finding one looks across namespaces, since the key is what names the namespace."""

    async def add(
        self, tx: Transaction, key_id: str, digest: bytes, terms: KeyTerms, user_id: str | None
    ) -> Key | None:
        """A new key, or None if its id is taken or this user has one already."""
        row = await tx.first(
            _Sql.add,
            key_id=key_id,
            digest=digest,
            label=terms.label,
            user_id=user_id,
            role=terms.role,
            expires_at=terms.expires_at,
            only_user=terms.limits.user,
            only_agent=terms.limits.agent,
            **terms.quota.numbers(),
        )
        return None if row is None else Key(**row)

    async def exists(self, db: Statements, key_id: str) -> bool:
        """Whether there is or was a key of this id."""
        return bool((await db.one(_Sql.exists, key_id=key_id))["found"])

    async def lock(self, tx: Transaction, key_id: str) -> Key | None:
        """A key that works now, held until the transaction ends; None for one of a user of the gateway."""
        row = await tx.first(_Sql.lock, key_id=key_id)
        return None if row is None else Key(**row)

    async def working(self, db: Statements, key_id: str) -> Key | None:
        """A key that works now, also one of a user of the gateway."""
        row = await db.first(_Sql.working, key_id=key_id)
        return None if row is None else Key(**row)

    async def end_in(self, tx: Transaction, key_id: str, seconds: float) -> None:
        """Let a key expire in so many seconds, if it does not before."""
        await tx.all(_Sql.end_in, key_id=key_id, seconds=seconds)

    async def note_use(self, tx: Transaction, key_id: str, seconds: float) -> None:
        """Note that a key is used, unless that was noted in the last seconds."""
        await tx.all(_Sql.note_use, key_id=key_id, seconds=seconds)

    async def of_namespace(self, db: Statements) -> list[Key]:
        """Every key there ever was, oldest first."""
        return [Key(**row) for row in await db.all(_Sql.of_namespace)]

    async def applications(self, db: Statements, limit: int, skip: int) -> list[Key]:
        """Some of those that are no user's: first what is not revoked, the newest first."""
        return [Key(**row) for row in await db.all(_Sql.applications, limit=limit, skip=skip)]

    async def users(self, db: Statements, limit: int, after: str, prefix: str) -> list[Key]:
        """The last key of each of some users, in the order of their ids."""
        return [Key(**row) for row in await db.all(_Sql.users, limit=limit, after=after, prefix=prefix)]

    async def set_quota(self, tx: Transaction, key_id: str, quota: Quota) -> Key:
        """Give a key that is locked another quota of its own."""
        return Key(**await tx.one(_Sql.set_quota, key_id=key_id, **quota.numbers()))

    async def revoke(self, tx: Transaction, key_id: str) -> bool:
        """False when there is no such key, or it is revoked already."""
        return await tx.first(_Sql.revoke, key_id=key_id) is not None

    async def add_browser(
        self, tx: Transaction, browser_id: str, digest: bytes, key: Credential, seconds: float
    ) -> None:
        """A browser that stands for a key for a while."""
        values = {"browser_id": browser_id, "digest": digest, "label": key.label, "key_id": key.key_id}
        await tx.all(_Sql.add_browser, **values, seconds=seconds)

    async def remove_browsers(self, tx: Transaction, digest: bytes | None = None) -> None:
        """End one, and those whose time is over."""
        await tx.all(_Sql.remove_browsers, digest=digest)

    async def find_browser(self, database: Database, digest: bytes) -> Credential | None:
        """The key that a browser stands for."""
        async with database.unscoped() as connection:
            row = await connection.fetchrow(_Sql.find_browser.text, digest)
        return None if row is None else Credential(**row)

    async def guard(self, db: Statements) -> bool:
        """Whether the namespace has a key that opens it."""
        return bool((await db.one(_Sql.guards))["guarded"])

    async def find(self, database: Database, digest: bytes) -> Credential | None:
        """Whom a hash belongs to."""
        async with database.unscoped() as connection:
            row = await connection.fetchrow(_Sql.find.text, digest)
        return None if row is None else Credential(**row)

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

    async def remove_of_user(self, tx: Transaction, user_id: str) -> list[str]:
        """Delete what is known of a user's keys; returns their ids."""
        return [row["id"] for row in await tx.all(_Sql.remove_of_user, user_id=user_id)]

    async def of_person(self, db: Statements, person: str) -> bytes | None:
        """The hash of the key that was made for somebody whom a proxy signed in."""
        row = await db.first(_Sql.of_person, person=person)
        return None if row is None else bytes(row["digest"])
