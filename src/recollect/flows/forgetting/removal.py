"""Removal: deletes items with everything derived from them, in one transaction."""

from collections.abc import Sequence

from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.kinds import registry
from recollect.flows.kinds.conversations import MESSAGE_ITEM
from recollect.flows.kinds.kind import Ids, Item
from recollect.storage.database import Transaction

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
        if item is MESSAGE_ITEM:
            # A summary that stands for the message, too, would go on telling it: its window begins anew.
            tally.add("summaries", await self._capabilities.windows.reopen(tx, key))
        await self.items(tx, item, [key], tally)

    async def items(self, tx: Transaction, item: Item, ids: Ids, tally: Tally) -> None:
        """Items of one kind, with what goes along with them."""
        others = await item.remove(self._capabilities, tx, ids, tally)
        indexed = registry.indexed()
        passages = [
            passage_id
            for kind, item_ids in {item.name: ids, **(others or {})}.items()
            if kind in indexed
            for passage_id in await self._capabilities.passages.of_items(tx, kind, list(map(str, item_ids)))
        ]
        if passages:
            await self._capabilities.passages.remove(tx, passages)
        tally.add("passages", len(passages))

    async def next_messages(self, tx: Transaction, session_ids: Sequence[str], tally: Tally) -> bool:
        """As many messages of some sessions as go at once; True if there were none left."""
        messages = await self._capabilities.log.in_sessions(tx, session_ids, ITEMS_AT_ONCE)
        if messages:
            await self.items(tx, MESSAGE_ITEM, messages, tally)
        return not messages

    async def sessions(self, tx: Transaction, session_ids: Sequence[str], tally: Tally) -> None:
        """Sessions in which nothing is said any more, and what summed them up."""
        tally.add("summaries", await self._capabilities.windows.remove_summaries(tx, session_ids))
        tally.add("sessions", await self._capabilities.sessions.remove(tx, session_ids))
