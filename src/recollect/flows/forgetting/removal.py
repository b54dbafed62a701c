"""Removal: takes items out of memory with everything that was derived from them, within one transaction."""

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from recollect import checks
from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.receipts import Tally
from recollect.storage.database import Transaction

# Items that are read, or leave in one transaction: it takes well under a second.
ITEMS_AT_ONCE = 1_000


class Removal:
    """At most one method that takes passages in a transaction: see Passages.remove.

    Items go before their passages are looked up, so that whoever is changing one has either finished or finds it gone.
    """

    def __init__(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities
        self._by_uuid: dict[str, Callable[[Transaction, UUID, Tally], Awaitable[None]]] = {
            "message": self._message,
            "document": self._document,
            "memory": lambda tx, item_id, tally: self.memories(tx, [item_id], tally),
            "resource": lambda tx, item_id, tally: self.resources(tx, [item_id], tally),
        }
        self._by_number: dict[str, Callable[[Transaction, int, Tally], Awaitable[None]]] = {
            "insight": self._insight,
            "episode": self._episode,
            "working": self._working_item,
            "stale": self._stale_item,
            "node": self._node,
        }

    async def item(self, tx: Transaction, kind: str, item_id: str, tally: Tally) -> None:
        """One item of any kind; nothing if there is none."""
        if kind in self._by_uuid:
            key = as_uuid(item_id)
            if key is not None:
                await self._by_uuid[kind](tx, key, tally)
        else:
            number = as_number(item_id)
            if number is not None:
                await self._by_number[kind](tx, number, tally)

    async def messages(self, tx: Transaction, ids: Sequence[UUID], tally: Tally) -> None:
        """Messages, and the insights that were made from nothing else."""
        numbers = await self._capabilities.log.remove(tx, ids)
        tally.add("messages", len(numbers))
        gone = tally.made_from(await self._capabilities.insights.made_from(tx, numbers))
        await self._take_insights(tx, gone, tally)
        await self._take_passages(tx, {"message": ids, "insight": gone}, tally)

    async def next_messages(self, tx: Transaction, session_ids: Sequence[str], tally: Tally) -> bool:
        """As many messages of some sessions as go at once; True if there were none left."""
        messages = await self._capabilities.log.in_sessions(tx, session_ids, ITEMS_AT_ONCE)
        if messages:
            await self.messages(tx, messages, tally)
        return not messages

    async def sessions(self, tx: Transaction, session_ids: Sequence[str], tally: Tally) -> None:
        """Sessions in which nothing is said any more, and what summed them up."""
        tally.add("summaries", await self._capabilities.windows.remove_summaries(tx, session_ids))
        tally.add("sessions", await self._capabilities.sessions.remove(tx, session_ids))

    async def memories(self, tx: Transaction, ids: Sequence[UUID], tally: Tally) -> None:
        """Memories, and all that ever happened to them."""
        memories, history = await self._capabilities.memories.erase(tx, ids)
        tally.add("memories", memories)
        tally.add("memory_history", history)
        await self._take_passages(tx, {"memory": ids}, tally)

    async def resources(self, tx: Transaction, ids: Sequence[UUID], tally: Tally) -> None:
        """Texts under a URI."""
        tally.add("resources", await self._capabilities.resources.remove(tx, ids))
        await self._take_passages(tx, {"resource": ids}, tally)

    async def _message(self, tx: Transaction, message_id: UUID, tally: Tally) -> None:
        """A summary that stands for the message, too, would go on telling it: its window begins anew."""
        tally.add("summaries", await self._capabilities.windows.reopen(tx, message_id))
        await self.messages(tx, [message_id], tally)

    async def _document(self, tx: Transaction, document_id: UUID, tally: Tally) -> None:
        tally.add("documents", await self._capabilities.documents.remove(tx, document_id))
        await self._take_passages(tx, {"document": [document_id]}, tally)

    async def _insight(self, tx: Transaction, insight_id: int, tally: Tally) -> None:
        await self._take_insights(tx, [insight_id], tally)
        await self._take_passages(tx, {"insight": [insight_id]}, tally)

    async def _episode(self, tx: Transaction, episode_id: int, tally: Tally) -> None:
        tally.add("episodes", await self._capabilities.episodes.remove(tx, episode_id))
        await self._take_passages(tx, {"episode": [episode_id]}, tally)

    async def _working_item(self, tx: Transaction, item_id: int, tally: Tally) -> None:
        tally.add("working_items", await self._capabilities.working.remove(tx, item_id))

    async def _stale_item(self, tx: Transaction, item_id: int, tally: Tally) -> None:
        tally.add("stale_items", await self._capabilities.working.remove_stale(tx, item_id))

    async def _node(self, tx: Transaction, node_id: int, tally: Tally) -> None:
        nodes, edges = await self._capabilities.graph.remove(tx, node_id)
        tally.add("graph_nodes", nodes)
        tally.add("graph_edges", edges)

    async def _take_insights(self, tx: Transaction, ids: Sequence[int], tally: Tally) -> None:
        """Insights, what judges said of them, and the pointers of nodes; not their passages."""
        if not ids:
            return
        gone = await self._capabilities.insights.remove(tx, ids)
        tally.add("insights", len(gone))
        tally.add("judge_scores", await self._capabilities.judging.remove_of_documents(tx, gone))
        await self._capabilities.graph.unlink(tx, gone)

    async def _take_passages(
        self, tx: Transaction, items: dict[str, Sequence[UUID] | Sequence[int]], tally: Tally
    ) -> None:
        ids = [
            passage_id
            for kind, item_ids in items.items()
            for passage_id in await self._capabilities.passages.of_items(tx, kind, list(map(str, item_ids)))
        ]
        await self._capabilities.passages.remove(tx, ids)
        tally.add("passages", len(ids))


def as_uuid(item_id: str) -> UUID | None:
    """The UUID that a text is, or None."""
    try:
        return UUID(item_id)
    except ValueError:
        return None


def as_number(item_id: str) -> int | None:
    """The number that a text is, if an item can have it."""
    if not (item_id.isascii() and item_id.isdecimal()) or int(item_id) > checks.LARGEST_ID:
        return None
    return int(item_id)
