"""MemoryStores: makes, lists, changes, archives and deletes stores."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recollect import checks, origin
from recollect.errors import Invalid
from recollect.flows.capabilities import Capabilities
from recollect.flows.defence.masking import MasksSecrets, masks
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.forgetting.removal import Removal
from recollect.flows.kinds.stores import FILE_ITEM, STORE, STORE_ITEM
from recollect.flows.stores import rules
from recollect.flows.stores.pages import Page
from recollect.memory.changes import Change
from recollect.memory.stores import Store, StoreFilter, slot_of
from recollect.storage.database import Database, Transaction

MAX_LISTED = 100

Moment = tuple[datetime, UUID]
"""A place in a list in the order of time."""

SINCE, UNTIL = "created_at[gte]", "created_at[lte]"

OWNER = "user_id"
"""The key of the metadata that names the user to whom a store belongs."""

# Each may have 100 kB: hundreds of passages.
FILES_AT_ONCE = 100


class MemoryStores(MasksSecrets):
    """Stores without what is in them; see Files."""

    def __init__(self, database: Database, capabilities: Capabilities, removal: Removal) -> None:
        self._database = database
        self._stores = capabilities.stores
        self._files = capabilities.store_files
        self._changes = capabilities.changes
        self._removal = removal

    @masks("name", "description", "metadata")
    async def create(
        self,
        namespace: str,
        name: str,
        description: str = "",
        metadata: Mapping[str, str] | None = None,
        *,
        if_absent: bool = False,
    ) -> Store:
        """A new store. With `user_id` in its metadata it belongs to that user, and is found and forgotten with them.

        With `if_absent`, a store of this name and user that takes changes is returned instead, if there is one.
        """
        rules.store_name(name)
        rules.description(description)
        encoded = rules.metadata(metadata or {})
        user_id = checks.optional_identifier((metadata or {}).get(OWNER), f"metadata.{OWNER}")
        async with self._database.transaction(namespace) as tx:
            known = await self._stores.first_of_name(tx, name, user_id) if if_absent else None
            if known is not None:
                return known
            slot = slot_of(name, user_id) if if_absent else None
            store = await self._stores.add(tx, name, description, encoded, user_id, slot)
            if store is not None:
                await self._changes.record(tx, [Change("add", STORE, str(store.id))])
                return store
            # Somebody made it at this very moment.
            return rules.known(await self._stores.first_of_name(tx, name, user_id), rules.STORE, name)

    async def find(self, namespace: str, store_id: str) -> Store:
        """A store by its id, `memstore_...`."""
        async with self._database.reading(namespace) as db:
            store = await self._stores.find(db, rules.required_id(rules.STORE, store_id))
        return rules.known(store, rules.STORE, store_id)

    async def newest(
        self, namespace: str, chosen: StoreFilter, behind: Moment | None, limit: int
    ) -> Page[Store, Moment]:
        """Stores, newest first, from behind a place in that list."""
        checks.between(limit, 1, MAX_LISTED, "limit")
        for name, value in (("name", chosen.name), (OWNER, chosen.user_id)):
            checks.storable(value or "", name)
        since, until = checks.optional_utc(chosen.since, SINCE), checks.optional_utc(chosen.until, UNTIL)
        async with self._database.reading(namespace) as db:
            found = await self._stores.newest(db, replace(chosen, since=since, until=until), behind, limit + 1)
        return Page.of(found, limit, lambda store: (store.created_at, store.id))

    @masks("name", "description", "metadata")
    async def change(
        self,
        namespace: str,
        store_id: str,
        name: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, str | None] | None = None,
    ) -> Store:
        """Change what is given; of the metadata, keys that are given, and null removes one."""
        async with self._database.transaction(namespace) as tx:
            store = await self._locked(tx, store_id)
            require_open(store)
            merged = {**store.metadata, **(metadata or {})}
            kept = {key: value for key, value in merged.items() if value is not None}
            if kept.get(OWNER) != store.user_id:
                raise Invalid(f"metadata.{OWNER} of a store cannot be changed: create another store")
            changed = await self._stores.change(
                tx,
                store.id,
                rules.store_name(store.name if name is None else name),
                rules.description(store.description if description is None else description),
                rules.metadata(kept),
            )
            await self._changes.record(tx, [Change("update", STORE, str(store.id))])
        return changed

    async def archive(self, namespace: str, store_id: str) -> Store:
        """Let nobody write into a store any more, for good. What is in it can be read and deleted."""
        async with self._database.transaction(namespace) as tx:
            store = await self._locked(tx, store_id)
            archived = await self._stores.archive(tx, store.id)
            if archived is not None:
                await self._changes.record(tx, [Change("update", STORE, str(store.id))])
        return archived or store

    async def delete(self, namespace: str, store_id: str) -> None:
        """Forget a store with all that is and was in it. A call that was interrupted can be repeated."""
        origin.require("admin")
        store = await self.archive(namespace, store_id)
        tally = Tally()
        while True:
            async with self._database.transaction(namespace) as tx:
                some = await self._files.some(tx, store.id, FILES_AT_ONCE)
                await self._removal.items(tx, *((FILE_ITEM, some) if some else (STORE_ITEM, [store.id])), tally)
            if not some:
                return

    async def _locked(self, tx: Transaction, store_id: str) -> Store:
        store = await self._stores.lock(tx, rules.required_id(rules.STORE, store_id))
        return rules.known(store, rules.STORE, store_id)


def require_open(store: Store) -> None:
    """Refuse to write into an archived store."""
    if store.archived_at is not None:
        raise Invalid(f"The memory store {rules.shown(rules.STORE, store.id)} is archived: it takes no more changes")
