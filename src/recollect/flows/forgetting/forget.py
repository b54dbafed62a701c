"""Forget: permanently deletes an item, a session, a user or a namespace, and reports what was deleted."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from recollect import checks, origin, telemetry
from recollect.errors import Conflict, Invalid, NotFound, RecollectError
from recollect.flows.accounts.access import Access
from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.counts import Counts
from recollect.flows.forgetting.receipts import Progress, Receipt, Tally
from recollect.flows.forgetting.removal import ITEMS_AT_ONCE, Removal
from recollect.flows.indexing.giant_indexes import GiantIndexes
from recollect.flows.kinds import registry
from recollect.flows.kinds.kind import UUIDS, as_number, as_uuid
from recollect.flows.kinds.long_term import MEMORY_ITEM
from recollect.flows.kinds.target import NAMESPACE, SESSION, USER, Target
from recollect.flows.search.nomination import Nomination
from recollect.flows.search.twins import Twins
from recollect.flows.short_term.window_stores import WindowStore
from recollect.storage import erasure
from recollect.storage.database import Database, Transaction

# Sessions that leave together, a thousand messages in each transaction.
SESSIONS_AT_ONCE = 100

# What one call forgets.
MAX_AT_ONCE = 50

# How often to go through a namespace that is still being written to.
_PASSES = 3

_UNKNOWN = {
    USER: "No data for user {id}",
    SESSION: "Unknown session {id}",
    NAMESPACE: "No data in namespace {id}",
}


class _Rehearsed(Exception):
    """Undoes what was only to be counted."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What became of several targets.

    `missing` were not there any more. With a `problem`, `left` were not forgotten, or not wholly the first of them.
    """

    receipts: list[Receipt]
    missing: list[Target]
    left: list[Target] = field(default_factory=list)
    problem: RecollectError | None = None


class Forget:
    """Forgets in steps, each a short transaction that leaves memory sound: an interrupted call can be repeated."""

    def __init__(
        self,
        database: Database,
        capabilities: Capabilities,
        removal: Removal,
        store: WindowStore,
        access: Access,
        nomination: Nomination,
        indexes: GiantIndexes,
    ) -> None:
        self._database = database
        self._capabilities = capabilities
        self._removal = removal
        self._twins = Twins(database, nomination, capabilities.passages)
        self._counts = Counts(database, capabilities, store, access)
        self._store = store
        self._access = access
        self._indexes = indexes

    @telemetry.memory_operation("delete_memory", lambda receipt: receipt.total)
    async def forget(
        self, namespace: str, target: Target, progress: Progress | None = None, *, twins: bool = False
    ) -> Receipt:
        """Remove all of it, with everything by which it could be found; `progress` gets the number of deleted rows.

        With `twins`, items that say the same go, too; without, the receipt names them.
        """
        origin.require("admin")
        _check(namespace, target, twins)
        tally = Tally(progress)
        async with self._database.transaction(namespace) as tx:
            await self._capabilities.jobs.clear(tx)
        if target.kind == USER:
            await self._user(namespace, target.id, tally)
        elif target.kind == SESSION:
            await self._those_sessions(namespace, [target.id], tally, of_users=True)
        elif target.kind == NAMESPACE:
            await self._whole(namespace, tally)
        else:
            return await self._items(namespace, target, tally, twins=twins)
        return _known(tally.receipt(str(target)), target)

    async def several(self, namespace: str, targets: Sequence[Target], *, twins: bool = False) -> Forgotten:
        """Forget one after another. A failure ends it, but does not lose the receipts of what went before."""
        _check_number(targets)
        receipts: list[Receipt] = []
        missing: list[Target] = []
        for place, target in enumerate(targets):
            try:
                receipts.append(await self.forget(namespace, target, twins=twins))
            except NotFound:
                missing.append(target)
                if len(missing) == len(targets):
                    raise
            except RecollectError as problem:
                if not receipts:
                    raise
                return Forgotten(receipts, missing, list(targets[place:]), problem)
        return Forgotten(receipts, missing)

    async def count_several(self, namespace: str, targets: Sequence[Target], *, twins: bool = False) -> list[Receipt]:
        """Count what would be deleted with each; delete nothing."""
        _check_number(targets)
        return [await self.count(namespace, target, twins=twins) for target in targets]

    async def item(self, namespace: str, item_id: str, *, twins: bool = False) -> Receipt:
        """Remove what a name calls: see Target.named. The other messages of a session keep their positions."""
        return await self.forget(namespace, Target.named(item_id), twins=twins)

    async def count(self, namespace: str, target: Target, *, twins: bool = False) -> Receipt:
        """Count what would be deleted; delete nothing."""
        _check(namespace, target, twins)
        tally = Tally()
        if target.kind == USER:
            await self._counts.user(namespace, target.id, tally)
        elif target.kind == SESSION:
            await self._counts.sessions(namespace, [target.id], tally, of_users=True)
        elif target.kind == NAMESPACE:
            await self._counts.whole(namespace, tally)
        else:
            return await self._items(namespace, target, tally, twins=twins, rehearse=True)
        return _known(tally.receipt(str(target)), target)

    async def _items(
        self, namespace: str, target: Target, tally: Tally, *, twins: bool, rehearse: bool = False
    ) -> Receipt:
        """One item, and its twins if they are wanted; it goes last: a second call finds them by it."""
        async with self._database.reading(namespace) as db:
            if target.kind == "message" and (number := as_number(target.id)) is not None:
                # A message goes by its UUID and, in the cognitive contract, by an integer.
                if message := (await self._capabilities.log.by_seq(db, [number])).get(number):
                    target = Target("message", str(message.id))
            elif target.kind is None:
                kinds = await self._capabilities.passages.kinds(db, target.id, registry.recalled())
                if len(kinds) > 1:
                    choice = " or ".join(f"{kind}:{target.id}" for kind in kinds)
                    raise Invalid(f"id {target.id} is ambiguous: use {choice}")
                target = Target(kinds[0], target.id) if kinds else target
        same: list[Target] = []
        if target.kind is not None:
            # What is not found by its words has no twins.
            stored_id = str(as_uuid(target.id) or target.id)
            same = [Target(target.kind, twin) for twin in await self._twins.of(namespace, target.kind, stored_id)]
        for item in [*(same if twins else ()), target]:
            await self._item(namespace, item, tally, rehearse=rehearse)
            tally.tell()
        left = () if twins else tuple(map(str, same))
        return _known(replace(tally.receipt(str(target)), twins_left=left), target)

    async def _item(self, namespace: str, target: Target, tally: Tally, *, rehearse: bool) -> None:
        if target.kind is None:
            return
        try:
            async with self._database.transaction(namespace) as tx:
                await self._removal.item(tx, target.kind, target.id, tally)
                if rehearse:
                    raise _Rehearsed
        except _Rehearsed:
            pass

    async def _user(self, namespace: str, user_id: str, tally: Tally) -> None:
        """The key goes first, so that its user soon adds nothing more: see Access on how soon."""
        tally.add("api_keys", await self._access.remove_user(namespace, user_id))
        while True:
            async with self._database.reading(namespace) as db:
                some = await self._capabilities.sessions.some_of_user(db, user_id, SESSIONS_AT_ONCE)
            if not some:
                break
            await self._those_sessions(namespace, some, tally, of_users=False)
        for item, owned in registry.owned():
            async for page in self._counts.pages_of_user(namespace, item, owned, user_id):
                async with self._database.transaction(namespace) as tx:
                    await self._removal.items(tx, item, page, tally)
                tally.tell()
        tally.add("giants", await self._indexes.drop(namespace, lambda giant: giant.owner == user_id))

    async def _those_sessions(
        self, namespace: str, session_ids: Sequence[str], tally: Tally, *, of_users: bool
    ) -> None:
        """Sessions with all that was said and summed up in them, and with the memories that they hold.

        Without `of_users`, memories that a user holds as well are left to that user. The sessions go last: by them, a
        second call finds what the first one left.
        """
        buffered = await self._store.external_sessions(namespace, session_ids)
        for session_id in buffered:
            await self._store.delete(namespace, session_id)
        tally.add("buffers", len(buffered))
        finished = False
        while not finished:
            async with self._database.transaction(namespace) as tx:
                finished = await self._next_of_sessions(tx, session_ids, tally, of_users=of_users)
            tally.tell()

    async def _next_of_sessions(
        self, tx: Transaction, session_ids: Sequence[str], tally: Tally, *, of_users: bool
    ) -> bool:
        """Remove the next messages, else the next memories, else the sessions themselves; True then."""
        await self._capabilities.sessions.lock(tx, session_ids)
        if not await self._removal.next_messages(tx, session_ids, tally):
            return False
        memories = await self._capabilities.memories.in_sessions(
            tx, session_ids, UUIDS.before_all, ITEMS_AT_ONCE, of_users=of_users
        )
        if memories:
            await self._removal.items(tx, MEMORY_ITEM, memories, tally)
            return False
        await self._removal.sessions(tx, session_ids, tally)
        return True

    async def _whole(self, namespace: str, tally: Tally) -> None:
        buffered = await self._store.external_sessions(namespace, None)
        for session_id in buffered:
            await self._store.delete(namespace, session_id)
        tally.add("buffers", len(buffered))
        tally.add("giants", await self._indexes.drop(namespace, lambda _: True))

        def gone(table: str, rows: int) -> None:
            tally.add(table, rows)
            tally.tell()

        async with self._database.transaction(namespace) as tx:
            await self._capabilities.key_grants.remove_held(tx)
        for _ in range(_PASSES):
            if not await erasure.erase(self._database, namespace, gone):
                break
        else:
            raise Conflict(f"Another process is still writing to namespace {namespace}: stop it and try again")
        self._access.clear_cache()


def _check(namespace: str, target: Target, twins: bool) -> None:
    if twins and target.kind in (SESSION, USER, NAMESPACE):
        raise Invalid(f"twins applies only to a single item: omit it for {target}")
    if target.kind in (SESSION, USER):
        checks.identifier(target.id, f"{target.kind}_id")
    elif target.kind == NAMESPACE:
        if checks.namespace(target.id) != namespace:
            raise Invalid(f"Cannot delete namespace {target.id}: the request is for namespace {namespace}")
    else:
        checks.short_name(str(target), "id")


def _check_number(targets: Sequence[Target]) -> None:
    if len(targets) > MAX_AT_ONCE:
        raise Invalid(f"Forget at most {MAX_AT_ONCE} items at once")


def _known(receipt: Receipt, target: Target) -> Receipt:
    if not receipt.rows:
        raise NotFound(_UNKNOWN.get(target.kind or "", "No item has the id {name}").format(id=target.id, name=target))
    return receipt
