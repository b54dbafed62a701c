"""Grants: let a key of one namespace read others, so that one recall can search them together."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from recollect import checks, origin
from recollect.errors import Forbidden, Invalid, LimitReached, NotFound
from recollect.flows.accounts.access import Access, no_active_key
from recollect.memory.accounts.access import Keys
from recollect.memory.accounts.grants import Grant, KeyGrants
from recollect.memory.index.search import Search
from recollect.storage.database import Database

# Grants that one key can hold.
MAX_GRANTS = 100


class Grants:
    """Gives keys read access to other namespaces."""

    def __init__(self, database: Database, grants: KeyGrants, keys: Keys, access: Access, search: Search) -> None:
        self._database = database
        self._grants = grants
        self._keys = keys
        self._access = access
        self._search = search

    async def grant(self, namespace: str, key_namespace: str, key_id: str, expires_at: datetime | None = None) -> Grant:
        """Let a key of another namespace read this one. Granting it again replaces the expiry."""
        until = checks.optional_future(expires_at, "expires_at")
        checks.namespace(namespace)
        origin.require("admin", namespace)
        if namespace == key_namespace:
            raise Invalid(f"Key {key_id} is a key of namespace {namespace} and reads it already")
        async with self._database.reading(key_namespace) as db:
            key = await self._keys.working(db, key_id)
            held = await self._grants.held(db, [key_id])
        if key is None:
            raise no_active_key(key_namespace, key_id)
        if key.user_id is not None:
            raise Forbidden(
                f"Key {key_id} belongs to gateway user {key.user_id} and opens that user's memories alone: "
                "grant a key of an application"
            )
        if key.only_user is not None or key.only_agent is not None:
            raise Forbidden(
                f"Key {key_id} is limited to one user or agent, whom the other namespace does not know: "
                "grant a key without limits"
            )
        if len(held) >= MAX_GRANTS and namespace not in [each.namespace for each in held]:
            raise LimitReached(
                f"Key {key_id} already reads {MAX_GRANTS} other namespaces, which is the most: take back a grant with "
                "`recollect keys ungrant`"
            )
        async with self._database.transaction(namespace) as tx:
            granted = await self._grants.add(tx, key_namespace, key_id, until)
        origin.touch(key_namespace, "change", "key", [key_id])
        self._access.clear_cache()
        return granted

    async def has_nothing(self, namespace: str) -> bool:
        """Whether nothing can be found in a namespace: its name may be misspelt."""
        async with self._database.reading(namespace) as db:
            return not await self._search.is_filled(db)

    async def end(self, namespace: str, key_namespace: str, key_id: str) -> None:
        """Take back a grant; servers apply it within two seconds."""
        async with self._database.transaction(namespace) as tx:
            ended = await self._grants.remove(tx, key_namespace, key_id)
        self._access.clear_cache()
        if not ended:
            raise NotFound(
                f"Key {key_id} of namespace {key_namespace} has no grant to read namespace {namespace}: "
                f"see `recollect keys list --namespace {key_namespace}`"
            )
        origin.touch(key_namespace, "change", "key", [key_id])

    async def readers(self, namespace: str, limit: int) -> list[Grant]:
        """Keys of other namespaces that may read this one."""
        async with self._database.reading(namespace) as db:
            return await self._grants.readers(db, limit)

    async def held(self, namespace: str, key_ids: Sequence[str]) -> dict[str, list[Grant]]:
        """The grants that keys of a namespace hold, by key id; a key with limits is granted none."""
        if origin.current().limits is not None:
            return {}
        async with self._database.reading(namespace) as db:
            grants = await self._grants.held(db, key_ids)
        by_key = defaultdict(list)
        for grant in grants:
            by_key[grant.key_id].append(grant)
        return by_key
