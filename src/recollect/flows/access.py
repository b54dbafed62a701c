"""Access: creates keys, and says what a key gives access to."""

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from recollect import checks
from recollect.errors import AccessDenied, Conflict, Invalid, NotFound
from recollect.flows.remember import ANONYMOUS
from recollect.memory.accounts.access import Credential, Key, Keys
from recollect.storage.database import Database

# So long may this process believe what it read: a key that another process revokes works no longer than this.
BELIEVED_SECONDS = 2.0
MAX_BELIEVED = 10_000

# One sentence for every reason: it must not tell which part was wrong.
NOT_ADMITTED = "user_id or user_key is not valid"


K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key at the one moment when its secret is known."""

    id: str
    secret: str
    created_at: datetime

    def __repr__(self) -> str:
        return f"NewKey(id={self.id!r})"


@dataclass(frozen=True, slots=True)
class User:
    """A user of the gateway, and the namespace the user's key opens."""

    namespace: str
    user_id: str


class Access:
    """Keys of namespaces and of users. Secrets are 256 random bits, so that one round of SHA-256 protects them."""

    def __init__(self, database: Database, keys: Keys) -> None:
        self._database = database
        self._keys = keys
        self._credentials = _TtlCache[bytes, Credential]()
        self._open = _TtlCache[str, bool]()

    async def create_key(self, namespace: str, label: str | None = None) -> NewKey:
        """A key that opens a whole namespace."""
        return await self._create(namespace, "rk", checks.optional_text(label, "label"), None)

    async def create_user_key(self, namespace: str, user_id: str) -> NewKey:
        """A key with which the gateway knows one user."""
        if user_id == ANONYMOUS:
            raise Invalid(f"user_id {ANONYMOUS} is reserved for sessions without a user: choose another")
        return await self._create(namespace, "uk", None, checks.identifier(user_id, "user_id"))

    async def keys(self, namespace: str) -> list[Key]:
        """The keys of a namespace, without their secrets."""
        async with self._database.reading(namespace) as db:
            return await self._keys.of_namespace(db)

    async def revoke(self, namespace: str, key_id: str) -> None:
        """Revoke a key."""
        async with self._database.transaction(namespace) as tx:
            revoked = await self._keys.revoke(tx, key_id)
        self._forget()
        if not revoked:
            raise NotFound(f"Namespace {namespace} has no active key {key_id}: see `recollect keys list`")

    async def credential(self, secret: str) -> Credential | None:
        """Whom a secret proves to be, or None."""
        digest = _digest(secret)
        known = self._credentials.get(digest)
        if known is None:
            known = await self._keys.find(self._database, digest)
            if known is not None:
                self._credentials.put(digest, known)
        return known

    async def user_of(self, user_id: str, user_key: str) -> User:
        """The user whom both halves of a credential name; a wrong half is not told from the other."""
        found = await self.credential(user_key)
        expected = "" if found is None or found.user_id is None else found.user_id
        if (
            not hmac.compare_digest(expected.encode(), user_id.encode(errors="replace"))
            or found is None
            or not expected
        ):
            raise AccessDenied(NOT_ADMITTED)
        return User(found.namespace, expected)

    async def is_open(self, namespace: str) -> bool:
        """Whether a namespace has no key, so that who reaches this machine's loopback may use it."""
        known = self._open.get(namespace)
        if known is None:
            async with self._database.reading(namespace) as db:
                known = not await self._keys.guard(db)
            self._open.put(namespace, known)
        return known

    async def has_keys(self) -> bool:
        """Whether anybody could be let in by a key."""
        return await self._keys.guard_anything(self._database)

    async def keys_elsewhere(self, namespace: str, limit: int) -> dict[str, int]:
        """How many keys in use other namespaces have, by namespace; for operators."""
        return await self._keys.elsewhere(self._database, namespace, limit)

    async def _create(self, namespace: str, prefix: str, label: str | None, user_id: str | None) -> NewKey:
        key_id = secrets.token_hex(4)
        secret = f"{prefix}_{key_id}_{secrets.token_urlsafe(32)}"
        async with self._database.transaction(namespace) as tx:
            key = await self._keys.add(tx, key_id, _digest(secret), label, user_id)
        self._forget()
        if key is None:
            raise Conflict(
                f"User {user_id} already has a key, which is shown only once. "
                "If it is lost: `recollect keys list`, `recollect keys revoke ID`, then create the user again."
            )
        return NewKey(key.id, secret, key.created_at)

    async def keys_of_user(self, namespace: str, user_id: str) -> int:
        """How many keys a user of the gateway has or had."""
        async with self._database.reading(namespace) as db:
            return await self._keys.count_of_user(db, user_id)

    async def remove_user(self, namespace: str, user_id: str) -> int:
        """Delete the keys of a user, revoked ones too; returns how many there were."""
        async with self._database.transaction(namespace) as tx:
            removed = await self._keys.remove_of_user(tx, user_id)
        self._forget()
        return removed

    def clear_cache(self) -> None:
        """Keys were deleted in another way: believe nothing that was read before."""
        self._forget()

    def _forget(self) -> None:
        self._credentials.clear()
        self._open.clear()


class _TtlCache(Generic[K, V]):
    """What was read from the database a moment ago; bounded, because callers choose the keys."""

    def __init__(self) -> None:
        self._entries: dict[K, tuple[float, V]] = {}

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        return entry[1] if entry is not None and entry[0] > time.monotonic() else None

    def put(self, key: K, value: V) -> None:
        if len(self._entries) >= MAX_BELIEVED:
            self._entries.clear()
        self._entries[key] = (time.monotonic() + BELIEVED_SECONDS, value)

    def clear(self) -> None:
        self._entries.clear()


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()
