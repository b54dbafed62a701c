"""Review: what screening has found, for a person to release or to forget."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from recollect import checks, origin, trust
from recollect.errors import Invalid, NotFound
from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.forget import Forget
from recollect.flows.forgetting.receipts import Receipt
from recollect.flows.indexing.passage_writer import PassageWriter
from recollect.flows.kinds import registry
from recollect.flows.kinds.kind import SessionOwners
from recollect.flows.kinds.long_term import MEMORY
from recollect.flows.kinds.target import Target
from recollect.flows.long_term.memories import LongTermMemory
from recollect.flows.named_items import NamedItems
from recollect.memory.changes import RELEASED, Change
from recollect.memory.index.held import HeldItem, HeldPlace, State
from recollect.memory.index.passages import Source
from recollect.storage.database import Database, Transaction

STATES: tuple[State, ...] = ("held", "warned", "released")
MAX_LISTED = 200


@dataclass(frozen=True, slots=True)
class Reviewed:
    """An item of the list, and the beginning of what it says; None if it is gone."""

    item: HeldItem
    text: str | None

    @property
    def name(self) -> str:
        """Its kind and id, as other commands take them."""
        return f"{self.item.kind}:{self.item.item_id}"


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """Some of the list, the newest first, and where the next page begins; None behind the last."""

    items: list[Reviewed]
    next: HeldPlace | None


class Review:
    """Lists held items and warnings. All of it is for admins: an agent must neither read nor release what is held."""

    def __init__(
        self,
        database: Database,
        capabilities: Capabilities,
        named_items: NamedItems,
        passage_writer: PassageWriter,
        forget: Forget,
        memories: LongTermMemory,
    ) -> None:
        self._database = database
        self._capabilities = capabilities
        self._named_items = named_items
        self._passage_writer = passage_writer
        self._forget = forget
        self._memories = memories

    async def page(
        self, namespace: str, state: str | None = None, limit: int = 50, behind: HeldPlace | None = None
    ) -> ReviewPage:
        """What somebody should look at, or the items in one state; the newest first."""
        origin.require("admin")
        origin.require_no_limits()
        checks.between(limit, 1, MAX_LISTED, "limit")
        if state is not None:
            checks.one_of(state, STATES, "state")
        wanted = [each for each in STATES if (each == state if state else each != "released")]
        async with self._database.reading(namespace) as db:
            items = await self._capabilities.held.page(db, wanted, limit + 1, behind)
            targets = [Target(item.kind, item.item_id) for item in items[:limit]]
            found = await self._named_items.found(db, targets)
        shown = [
            Reviewed(item, found[target].text if target in found else None)
            for item, target in zip(items, targets, strict=False)
        ]
        last = items[limit - 1] if len(items) > limit else None
        return ReviewPage(shown, None if last is None else HeldPlace(last.at, last.kind, last.item_id))

    async def release(self, namespace: str, name: str) -> HeldItem:
        """Let an item be recalled despite the reasons against it. It stays released until its text changes."""
        origin.require("admin")
        origin.require_no_limits()
        target = _named(name)
        async with self._database.transaction(namespace) as tx:
            held = await self._capabilities.held.lock(tx, target.kind or "", target.id)
            if held is None or held.state == "released":
                raise NotFound(f"{target} is not held or warned about: `recollect review list` shows what is")
            if held.state == "held" and (source := await self._source(tx, held)) is not None:
                await self._capabilities.passages.release(tx, source)
            await self._capabilities.held.release(tx, held.kind, held.item_id, origin.current().author)
            told = registry.named()[held.kind].feed
            if told is not None and held.kind != "message":
                change = Change("update", told.name, held.item_id, {RELEASED: held.reasons})
                await self._capabilities.changes.record(tx, [change])
        self._passage_writer.changed(namespace)
        return held._replace(state="released")

    async def forget(self, namespace: str, name: str) -> Receipt:
        """Delete an item for good. What a held memory took the place of is in force again."""
        target = await self._listed(namespace, name)
        if target.kind == MEMORY:
            await self._memories.bring_back(namespace, target.id)
        return await self._forget.forget(namespace, target)

    async def count(self, namespace: str, name: str) -> Receipt:
        """What would be deleted with an item."""
        return await self._forget.count(namespace, await self._listed(namespace, name))

    async def _listed(self, namespace: str, name: str) -> Target:
        origin.require("admin")
        origin.require_no_limits()
        target = _named(name)
        async with self._database.reading(namespace) as db:
            if not await self._capabilities.held.find(db, target.kind or "", [target.id]):
                raise NotFound(f"{target} is not in the list: `recollect forget` deletes any item")
        return target

    async def _source(self, tx: Transaction, held: HeldItem) -> Source | None:
        """The passages of a held item as it is now; None if it has none."""
        kind = registry.named()[held.kind]
        item = registry.items()[held.kind]
        if item.source is None:
            return None
        key: Any = item.id.parse(held.item_id)
        before = UUID(int=key.int - 1) if isinstance(key, UUID) else key - 1
        fields = await self._capabilities.records.one(tx, kind.record, before, held.item_id)
        if fields is None:
            raise NotFound(f"{held.kind}:{held.item_id} is gone")
        owners: SessionOwners = {}
        if held.kind == "message":
            owners = await self._capabilities.sessions.owners_of(tx, [fields["session_id"]])
        source = item.source(fields, owners)
        default = trust.of_item(held.kind, fields.get("role"))
        return source if source is None or held.trust == default else replace(source, trust=held.trust)


def _named(name: str) -> Target:
    target = Target.named(name)
    if target.kind not in registry.items():
        raise Invalid(f"Name an item of the list, such as message:ID, not {name!r}")
    return target
