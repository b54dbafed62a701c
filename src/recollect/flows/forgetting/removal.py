"""Removal: deletes items with everything derived from them, in one transaction."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from recollect import origin
from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.kinds import registry
from recollect.flows.kinds.conversations import MESSAGE_ITEM
from recollect.flows.kinds.kind import Ids, Item
from recollect.flows.kinds.long_term import PAST_MEMORY
from recollect.memory.changes import Change
from recollect.memory.log import Message
from recollect.storage.database import Database, Transaction

# Items that are read, or leave in one transaction: it takes well under a second.
ITEMS_AT_ONCE = 1_000


class Removal:
    """At most one method that takes passages in a transaction: see Passages.remove.

    Items go before their passages are looked up, so that a concurrent change has either finished or finds it gone.
    """

    def __init__(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities

    async def item(self, tx: Transaction, name: str, item_id: str, tally: Tally) -> None:
        """One item of any kind; nothing if there is none."""
        item = registry.items()[name]
        key = item.id.parse(item_id)
        if key is None:
            return
        before = tally.total
        places: dict[UUID, Message] = {}
        if item is MESSAGE_ITEM:
            # A summary that stands for the message, too, would go on telling it: its window begins anew.
            tally.add("summaries", await self._capabilities.windows.reopen(tx, key))
            places = await self._capabilities.log.by_ids(tx, [key])
        gone = await self._remove(tx, item, [key], tally)
        for message in places.values():
            await self._capabilities.changes.erase_turn(tx, message.session_id, message.position)
        if tally.total > before:
            await self._record(tx, gone)

    async def items(self, tx: Transaction, item: Item, ids: Ids, tally: Tally) -> None:
        """Items of one kind that are there, with what goes along with them."""
        await self._record(tx, await self._remove(tx, item, ids, tally))

    async def _remove(self, tx: Transaction, item: Item, ids: Ids, tally: Tally) -> dict[str, Ids]:
        """Returns all that goes, by kind."""
        others = await item.remove(self._capabilities, tx, ids, tally)
        gone = {item.name: ids, **(others or {})}
        indexed = registry.indexed()
        passages = [
            passage_id
            for kind, item_ids in gone.items()
            if kind in indexed
            for passage_id in await self._capabilities.passages.of_items(tx, kind, list(map(str, item_ids)))
        ]
        if passages:
            await self._capabilities.passages.remove(tx, passages)
        tally.add("passages", len(passages))
        for kind, item_ids in gone.items():
            await self._capabilities.held.remove(tx, kind, list(map(str, item_ids)))
        return gone

    async def _record(self, tx: Transaction, gone: Mapping[str, Ids]) -> None:
        """Nothing is left of what happened to items but that they are forgotten."""
        for kind, ids in gone.items():
            if ids:
                await self._capabilities.changes.erase(tx, kind, list(map(str, ids)))
        # A past version is part of its memory, which is told.
        told = {kind: ids for kind, ids in gone.items() if kind != PAST_MEMORY}
        forgotten = [Change("forget", kind, str(item_id)) for kind, ids in told.items() for item_id in ids]
        await self._capabilities.changes.record(tx, forgotten)

    async def next_messages(self, tx: Transaction, session_ids: Sequence[str], tally: Tally) -> bool:
        """As many messages of some sessions as go at once; True if there were none left."""
        messages = await self._capabilities.log.in_sessions(tx, session_ids, ITEMS_AT_ONCE)
        if messages:
            # That the messages are gone is told of their session, when it goes.
            gone = await self._remove(tx, MESSAGE_ITEM, messages, tally)
            await self._record(tx, {kind: ids for kind, ids in gone.items() if kind != MESSAGE_ITEM.name})
        return not messages

    async def session(self, database: Database, namespace: str, session_id: str) -> bool:
        """A session with all that was said in it; False if there is none.

        Step by step, the session itself last: an interrupted call can be repeated.
        """
        origin.require("admin")
        tally = Tally()
        existed = finished = False
        while not finished:
            async with database.transaction(namespace) as tx:
                existed = bool(await self._capabilities.sessions.lock(tx, [session_id])) or existed
                finished = await self.next_messages(tx, [session_id], tally)
                if finished:
                    await self.sessions(tx, [session_id], tally)
        return existed

    async def messages_of(self, tx: Transaction, session_id: str, tally: Tally) -> bool:
        """As many messages as go at once of a session that stays and is locked; True if these were the last."""
        messages = await self._capabilities.log.in_sessions(tx, [session_id], ITEMS_AT_ONCE)
        are_last = len(messages) < ITEMS_AT_ONCE
        if are_last:
            tally.add("summaries", await self._capabilities.windows.begin_anew(tx, session_id))
            await self._capabilities.changes.erase(tx, MESSAGE_ITEM.name, [session_id])
        if messages:
            await self.items(tx, MESSAGE_ITEM, messages, tally)
        return are_last

    async def sessions(self, tx: Transaction, session_ids: Sequence[str], tally: Tally) -> None:
        """Sessions in which nothing is said any more, and what summed them up."""
        tally.add("summaries", await self._capabilities.windows.remove_summaries(tx, session_ids))
        gone = await self._capabilities.sessions.remove(tx, session_ids)
        tally.add("sessions", len(gone))
        await self._capabilities.changes.erase(tx, MESSAGE_ITEM.name, session_ids)
        await self._record(tx, {"session": gone})
