"""Access: creates keys, and says what a key gives access to."""

import hashlib
import hmac
import re
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from recollect import checks, origin, quotas
from recollect.errors import AccessDenied, Conflict, Forbidden, Invalid, NotFound
from recollect.flows.accounts.key_uses import KeyUses
from recollect.memory.accounts.access import Credential, Key, Keys, KeyTerms
from recollect.memory.accounts.connections import StoredConnections
from recollect.memory.accounts.grants import KeyGrants
from recollect.memory.accounts.quotas import QuotaUse
from recollect.memory.changes import Changes
from recollect.origin import ROLES, Limits, Role
from recollect.quotas import ANONYMOUS, NO_QUOTA, Quota
from recollect.storage.database import Database, Transaction

# How long a process trusts what it read: a key that another process revokes works no longer than this.
CACHED_SECONDS = 2.0
MAX_CACHED = 10_000

# How long a browser stays signed in to the console.
BROWSER_SECONDS = 12 * 3600

# Begins the token of a browser that signed in. Once that has ended, the browser is not let into an open namespace
# instead: its pages and forms would act on another memory.
BROWSER_PREFIX = "in."

# As `sign_in` makes them. Nothing else is looked up.
_BROWSER_TOKEN = re.compile(re.escape(BROWSER_PREFIX) + "[A-Za-z0-9_-]{43}")

MAX_OVERLAP_SECONDS = 365 * 86_400.0

_KEY_ID = re.compile("[0-9a-f]{8}")

_FIRST = (
    "The first key of a namespace must have the role admin and no limits, or nobody could make or revoke another. "
    "On the server, `recollect keys create` makes any key."
)
_MADE = (
    "This form or request has created key {id} already. Its secret is shown only once: if it is lost, revoke that key"
)

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
    expires_at: datetime | None = None

    def __repr__(self) -> str:
        return f"NewKey(id={self.id!r})"


@dataclass(frozen=True, slots=True)
class User:
    """A user of the gateway, and the namespace the user's key opens."""

    namespace: str
    user_id: str


class Access:
    """Keys of namespaces and of users. Secrets are 256 random bits, so that one round of SHA-256 protects them."""

    def __init__(
        self,
        database: Database,
        keys: Keys,
        grants: KeyGrants,
        connections: StoredConnections,
        use: QuotaUse,
        changes: Changes,
    ) -> None:
        self._database = database
        self._keys = keys
        self._grants = grants
        self._connections = connections
        self._use = use
        self._changes = changes
        self._credentials = TtlCache[bytes, Credential]()
        self._browsers = TtlCache[bytes, Credential]()
        self._open = TtlCache[str, bool]()
        self._working = TtlCache[tuple[str, str], bool]()
        self.uses = KeyUses(database, keys)

    async def close(self) -> None:
        """Stop noting when keys are used."""
        await self.uses.close()

    async def create_key(
        self,
        namespace: str,
        label: str | None = None,
        role: Role = "admin",
        expires_at: datetime | None = None,
        limits: Limits | None = None,
        quota: Quota = NO_QUOTA,
        new_id: str | None = None,
    ) -> NewKey:
        """A key that opens a namespace, or the memory of one user or agent in it, for what its role may do.

        Whoever chooses its id with `new_key_id` can send the same request twice: only the first makes a key.
        """
        origin.require_no_quota()
        checks.one_of(role, ROLES, "role")
        only = limits or Limits()
        checks.optional_identifier(only.user, "user")
        checks.optional_identifier(only.agent, "agent")
        if only.user == ANONYMOUS:
            raise Invalid(f"user {ANONYMOUS} is reserved for sessions without a user: choose another")
        until = checks.optional_future(expires_at, "expires_at")
        quotas.check(quota)
        terms = KeyTerms(checks.optional_text(label, "label"), role, until, only, quota)
        async with self._database.transaction(namespace) as tx:
            # On the command line another key can always be made; a caller over HTTP could lock itself out.
            has_all_rights = role == "admin" and only == Limits()
            if origin.current().reach is not None and not has_all_rights and not await self._keys.guard(tx):
                raise Invalid(_FIRST)
            made = await self._add(tx, "rk", terms, None, new_id)
        self.clear_cache()
        return made

    async def rotate(self, namespace: str, key_id: str, overlap_seconds: float, new_id: str | None = None) -> NewKey:
        """Another key for the same purpose and, if the old one expires, for as long; the old one works a while yet."""
        origin.require_no_quota()
        checks.number_between(overlap_seconds, 0, MAX_OVERLAP_SECONDS, "overlap in seconds")
        async with self._database.transaction(namespace) as tx:
            if new_id is not None and await self._keys.exists(tx, new_id):
                raise Conflict(_MADE.format(id=new_id))
            old = await locked_key(tx, self._keys, key_id, "cannot be rotated: revoke it and create the user again")
            await self._refuse_granted(tx, key_id)
            limits = Limits(old.only_user, old.only_agent)
            until = None if old.expires_at is None else datetime.now(UTC) + (old.expires_at - old.created_at)
            made = await self._add(tx, "rk", KeyTerms(old.label, old.role, until, limits, old.quota), None, new_id)
            opened = await self._grants.copy(tx, key_id, made.id)
            await self._keys.end_in(tx, key_id, overlap_seconds)
        for each in opened:
            origin.touch(each, "change", "grant", [made.id])
        self.clear_cache()
        return made

    async def _refuse_granted(self, tx: Transaction, key_id: str) -> None:
        """Over HTTP nobody gets the grants of another key: its successor's secret would open what it may read."""
        caller = origin.current()
        if caller.reach is not None and caller.key_id != key_id and await self._grants.held(tx, [key_id]):
            raise Forbidden(
                f"Key {key_id} may read other namespaces, so only its holder can rotate it, or `recollect keys rotate` "
                "on the server"
            )

    async def create_user_key(self, namespace: str, user_id: str) -> NewKey:
        """A key with which the gateway knows one user."""
        origin.require_no_quota()
        if user_id == ANONYMOUS:
            raise Invalid(f"user_id {ANONYMOUS} is reserved for sessions without a user: choose another")
        checks.identifier(user_id, "user_id")
        async with self._database.transaction(namespace) as tx:
            made = await self._add(tx, "uk", KeyTerms(), user_id)
        self.clear_cache()
        return made

    async def keys(self, namespace: str) -> list[Key]:
        """The keys of a namespace, without their secrets."""
        async with self._database.reading(namespace) as db:
            return await self._keys.of_namespace(db)

    async def applications(self, namespace: str, limit: int, skip: int = 0) -> list[Key]:
        """Some keys that open the whole namespace: those that are not revoked first, then the newest."""
        async with self._database.reading(namespace) as db:
            return await self._keys.applications(db, limit, skip)

    async def own(self, namespace: str) -> Key | None:
        """The key of the present caller, if one is used."""
        key_id = origin.current().key_id
        if key_id is None:
            return None
        with origin.own_work():  # whatever limits a key has, itself it may see
            async with self._database.reading(namespace) as db:
                return await self._keys.working(db, key_id)

    async def users(self, namespace: str, limit: int, after: str = "", prefix: str = "") -> list[Key]:
        """The last key of each user of the gateway, in the order of their ids, behind one of them."""
        async with self._database.reading(namespace) as db:
            return await self._keys.users(db, limit, after, prefix)

    async def revoke(self, namespace: str, key_id: str) -> None:
        """Revoke a key."""
        async with self._database.transaction(namespace) as tx:
            revoked = await self._keys.revoke(tx, key_id)
        self.clear_cache()
        if not revoked:
            raise no_active_key(namespace, key_id)

    async def credential(self, secret: str) -> Credential | None:
        """Whom a secret proves to be, or None."""
        return await self.by_digest(digest(secret))

    async def by_digest(self, hashed: bytes) -> Credential | None:
        """Whom the hash of a secret belongs to, or None."""
        known = self._credentials.get(hashed)
        if known is None:
            with origin.own_work():
                known = await self._keys.find(self._database, hashed)
            if known is not None:
                self._credentials.put(hashed, known)
                self.uses.note(known)
        return known

    async def key_of_person(self, namespace: str, person: str) -> Credential:
        """The key of a person whom the proxy signed in, limited to that user's memory; created if there is none."""
        with origin.own_work():
            async with self._database.reading(namespace) as db:
                hashed = await self._keys.of_person(db, person)
        hashed = hashed or await self._add_key_of_person(namespace, person)
        with origin.own_work():
            known = await self.by_digest(hashed)
        if known is None:
            raise Conflict("Your key was revoked just now: try again")
        return known

    async def _add_key_of_person(self, namespace: str, person: str) -> bytes:
        """The hash of a new key of a person, or of the one that a concurrent sign-in has created."""
        terms = KeyTerms(f"signed in: {checks.identifier(person, 'user')}", "write", None, Limits(person))
        if person == ANONYMOUS:
            raise Invalid(f"user {ANONYMOUS} is reserved for sessions without a user: sign in as somebody else")
        made = None
        with origin.own_work():
            async with self._database.transaction(namespace) as tx:
                await self._changes.hold(tx)
                hashed = await self._keys.of_person(tx, person)
                if hashed is None:
                    made = await self._add(tx, "rk", terms, None)
                    hashed = digest(made.secret)
        if made is not None:
            origin.touch(namespace, "change", "key", [made.id])
            self.clear_cache()
        return hashed

    async def sign_in(self, secret: str, instead_of: str | None = None) -> str | None:
        """A token for a browser, which stands for the key for some hours; None if that is no key of a namespace.

        The token that the browser had until now ends.
        """
        key = await self.credential(secret)
        if key is None or key.user_id is not None:
            return None
        earlier = None if instead_of is None else await self.browser(instead_of)
        if earlier is not None and instead_of is not None:
            await self.sign_out(earlier.namespace, instead_of)
        token = BROWSER_PREFIX + secrets.token_urlsafe(32)
        with origin.own_work():
            async with self._database.transaction(key.namespace) as tx:
                await self._keys.remove_browsers(tx)
                await self._keys.add_browser(tx, secrets.token_hex(8), digest(token), key, BROWSER_SECONDS)
        self._browsers.clear()
        return token

    async def browser(self, token: str) -> Credential | None:
        """The key that a browser's token stands for, or None."""
        if not _BROWSER_TOKEN.fullmatch(token):
            return None
        hashed = digest(token)
        known = self._browsers.get(hashed)
        if known is None:
            known = await self._keys.find_browser(self._database, hashed)
            if known is not None:
                self._browsers.put(hashed, known)
                self.uses.note(known)
        return known

    async def sign_out(self, namespace: str, token: str) -> None:
        """End what a browser's token stands for."""
        with origin.own_work():
            async with self._database.transaction(namespace) as tx:
                await self._keys.remove_browsers(tx, digest(token))
        self.clear_cache()

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

    async def is_still_admitted(self, namespace: str, key_id: str | None) -> bool:
        """Whether somebody who came in with a key, or into an open namespace, would be let in again; for streams."""
        if key_id is None:
            return await self.is_open(namespace)
        known = self._working.get((namespace, key_id))
        if known is None:
            with origin.own_work():
                async with self._database.reading(namespace) as db:
                    known = await self._keys.working(db, key_id) is not None
            self._working.put((namespace, key_id), known)
        return known

    async def is_last(self, namespace: str, key_id: str) -> bool:
        """Whether a namespace would be open if this key were revoked."""
        guarding = [each.id for each in await self.keys(namespace) if each.revoked_at is None and each.user_id is None]
        return guarding == [key_id]

    async def has_admin(self, namespace: str) -> bool:
        """Whether a key works that may do everything in the whole namespace."""
        keys = await self.keys(namespace)
        return any(
            key.state == "valid" and key.role == "admin" and key.user_id is key.only_user is key.only_agent is None
            for key in keys
        )

    async def has_keys(self) -> bool:
        """Whether anybody could be let in by a key."""
        return await self._keys.guard_anything(self._database)

    async def keys_elsewhere(self, namespace: str, limit: int) -> dict[str, int]:
        """How many keys in use other namespaces have, by namespace; for operators."""
        return await self._keys.elsewhere(self._database, namespace, limit)

    async def _add(
        self, tx: Transaction, prefix: str, terms: KeyTerms, user_id: str | None, new_id: str | None = None
    ) -> NewKey:
        if new_id is not None and not _KEY_ID.fullmatch(new_id):
            raise Invalid("The id of a new key must be eight digits or letters from a to f")
        key_id = new_id or new_key_id()
        secret = f"{prefix}_{key_id}_{secrets.token_urlsafe(32)}"
        key = await self._keys.add(tx, key_id, digest(secret), terms, user_id)
        if key is None and user_id is None:
            raise Conflict(_MADE.format(id=key_id))
        if key is None:
            raise Conflict(
                f"User {user_id} already has a key, which is shown only once. "
                "If it is lost, revoke it in the console or with `recollect keys revoke ID`, and create the user again."
            )
        return NewKey(key.id, secret, key.created_at, key.expires_at)

    async def keys_of_user(self, namespace: str, user_id: str) -> int:
        """How many keys a user of the gateway has or had."""
        async with self._database.reading(namespace) as db:
            return await self._keys.count_of_user(db, user_id)

    async def remove_user(self, namespace: str, user_id: str) -> int:
        """Delete the keys of a user, revoked ones too; returns how many there were."""
        async with self._database.transaction(namespace) as tx:
            removed = await self._keys.remove_of_user(tx, user_id)
            await self._connections.end_of_keys(tx, removed)
            await self._use.remove_of_user(tx, user_id)
        self.clear_cache()
        return len(removed)

    def clear_cache(self) -> None:
        """Look keys up again: they, or their grants and quotas, have changed."""
        self._credentials.clear()
        self._browsers.clear()
        self._open.clear()
        self._working.clear()


class TtlCache(Generic[K, V]):
    """What was learnt a moment ago, mostly from the database; bounded, because callers choose the keys."""

    def __init__(self, seconds: float = CACHED_SECONDS) -> None:
        self._seconds = seconds
        self._entries: dict[K, tuple[float, V]] = {}

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        return entry[1] if entry is not None and entry[0] > time.monotonic() else None

    def put(self, key: K, value: V) -> None:
        if len(self._entries) >= MAX_CACHED:
            self._entries.clear()
        self._entries[key] = (time.monotonic() + self._seconds, value)

    def clear(self) -> None:
        self._entries.clear()


async def locked_key(tx: Transaction, keys: Keys, key_id: str, why_not_of_a_user: str) -> Key:
    """Lock an application's key, which must be active, until the transaction ends."""
    key = await keys.lock(tx, key_id)
    if key is None:
        if (of_user := await keys.working(tx, key_id)) is not None:
            raise Forbidden(f"Key {key_id} belongs to gateway user {of_user.user_id} and {why_not_of_a_user}")
        raise no_active_key(tx.namespace, key_id)
    return key


def no_active_key(namespace: str, key_id: str) -> NotFound:
    """What is said of a key that is unknown, revoked or expired."""
    return NotFound(
        f"Namespace {namespace} has no active key {key_id}: see `recollect keys list --namespace {namespace}`"
    )


def new_key_id() -> str:
    """An id for a key that is not made yet."""
    return secrets.token_hex(4)


def digest(secret: str) -> bytes:
    """What is stored of a secret."""
    return hashlib.sha256(secret.encode(errors="replace")).digest()
