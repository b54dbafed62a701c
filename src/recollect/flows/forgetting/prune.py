"""Prune: deletes long-term memories that have not changed for a while, but never pinned ones."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from recollect import checks, origin, telemetry
from recollect.errors import Invalid
from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.receipts import Progress, Receipt, Tally
from recollect.flows.indexing.passage_writer import PassageWriter
from recollect.flows.kinds.kind import UUIDS
from recollect.flows.kinds.long_term import MEMORY, PAST_MEMORY
from recollect.flows.long_term.memory_writer import MemoryWriter
from recollect.memory.changes import Change
from recollect.memory.memories import CATEGORIES
from recollect.memory.unchanged import Unchanged, UnchangedMemory
from recollect.storage.database import Database, Statements

# Memories that are counted at once, or deleted in one transaction.
PRUNED_AT_ONCE = 100
PRUNED = {"because": "pruned"}


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was deleted, or would be: rows of each kind, and memories by user (None: of no user) and by category."""

    receipt: Receipt
    by_user: dict[str | None, int]
    by_category: dict[str, int]


@dataclass(slots=True)
class _Found:
    tally: Tally
    users: Counter[str | None] = field(default_factory=Counter)
    categories: Counter[str] = field(default_factory=Counter)

    def pruned(self, unchanged: Unchanged) -> Pruned:
        """The result, with the largest counts first."""
        what = f"memories not changed since {unchanged.before:%Y-%m-%d %H:%M} UTC"
        return Pruned(self.tally.receipt(what), dict(self.users.most_common()), dict(self.categories.most_common()))


def not_changed_for(
    seconds: float, user_id: str | None = None, agent_id: str | None = None, category: str | None = None
) -> Unchanged:
    """Memories that have not changed for so many seconds, or Invalid."""
    if not seconds > 0:
        raise Invalid("The age must be greater than 0: otherwise all memories would be deleted")
    for name, value in (("user_id", user_id), ("agent_id", agent_id)):
        if value is not None:
            checks.identifier(value, name)
    if category is not None:
        checks.one_of(category, CATEGORIES, "category")
    try:
        before = datetime.now(UTC) - timedelta(seconds=seconds)
    except OverflowError as problem:
        raise Invalid("The age goes back to before the year 1: choose a lower one") from problem
    return Unchanged(before, user_id, agent_id, category)


class Prune:
    """Deletes in steps, each a short transaction: an interrupted call can be repeated."""

    def __init__(self, database: Database, capabilities: Capabilities, passage_writer: PassageWriter) -> None:
        self._database = database
        self._unchanged = capabilities.unchanged
        self._memories = capabilities.memories
        self._passages = capabilities.passages
        self._changes = capabilities.changes
        self._writer = MemoryWriter(capabilities.memories, capabilities.passages, capabilities.held, passage_writer)

    async def count(self, namespace: str, unchanged: Unchanged) -> Pruned:
        """Count what would be deleted; delete nothing."""
        found = _Found(Tally())
        async for page in self._pages(namespace, unchanged):
            async with self._database.reading(namespace) as db:
                await self._add(db, page, found)
        return found.pruned(unchanged)

    @telemetry.memory_operation("delete_memory", lambda pruned: pruned.receipt.total)
    async def prune(self, namespace: str, unchanged: Unchanged, progress: Progress | None = None) -> Pruned:
        """Delete them with their past versions; `progress` gets the number of deleted rows."""
        origin.require("admin")
        found = _Found(Tally(progress))
        async for page in self._pages(namespace, unchanged):
            async with self._database.transaction(namespace) as tx:
                held = await self._memories.lock(tx, [each.id for each in page])
                # Skips what was changed or pinned meanwhile: that moves `since`.
                same = [each for each in page if each.id in held and held[each.id].since == each.since]
                await self._add(tx, same, found)
                gone = await self._writer.remove(tx, [each.id for each in same], "delete")
                await self._changes.record(tx, [Change("delete", MEMORY, str(each), PRUNED) for each in gone])
            found.tally.tell()
        return found.pruned(unchanged)

    async def _pages(self, namespace: str, unchanged: Unchanged) -> AsyncIterator[Sequence[UnchangedMemory]]:
        behind = UUIDS.before_all
        while True:
            async with self._database.reading(namespace) as db:
                page = await self._unchanged.page(db, unchanged, behind, PRUNED_AT_ONCE)
            if not page:
                return
            yield page
            behind = page[-1].id

    async def _add(self, db: Statements, memories: Sequence[UnchangedMemory], found: _Found) -> None:
        ids = [each.id for each in memories]
        versions = await self._memories.versions(db, ids)
        found.tally.add("memories", len(ids))
        found.tally.add("memory_versions", len(versions))
        for kind, items in ((MEMORY, list(map(str, ids))), (PAST_MEMORY, versions)):
            found.tally.add("passages", await self._passages.count_of_items(db, kind, items))
        found.users.update(each.user_id for each in memories)
        found.categories.update(each.category for each in memories)
