"""NodePassages: makes the observations of nodes available to search, each as a passage of its node."""

from collections.abc import Sequence
from datetime import UTC, datetime

from recollect.flows.kinds.cognitive import NODE, observed
from recollect.memory.cognitive.entities import Entities, KnownNode
from recollect.memory.index.passages import Passages, Source
from recollect.storage.database import Transaction


class NodePassages:
    """Writes what the indexer then embeds."""

    def __init__(self, entities: Entities, passages: Passages) -> None:
        self._entities = entities
        self._passages = passages

    async def add(self, tx: Transaction, ids: Sequence[int]) -> None:
        """Make new nodes findable."""
        await self._write(tx, ids, None)

    async def renew(self, tx: Transaction, ids: Sequence[int]) -> None:
        """Make nodes findable by what is now known of them, and by nothing else.

        For questions about an earlier time they are not found any more: nobody knows what was observed when.
        """
        passages = await self._passages.of_items(tx, NODE, list(map(str, ids)))
        if passages:
            await self._passages.remove(tx, passages)
        await self._write(tx, ids, datetime.now(UTC))

    async def judge(self, tx: Transaction, ids: Sequence[int]) -> None:
        """Screen nodes of which something other than observations is new."""
        if not ids or not self._passages.screens:
            return
        sources = [_source(node) for node in await self._entities.known(tx, ids)]
        shown = {source.item_id for source in await self._passages.screen(tx, sources)}
        for source in sources:
            if source.excerpts:
                known = await self._passages.of_items(tx, NODE, [source.item_id])
                if bool(known) != (source.item_id in shown):
                    await self.renew(tx, [int(source.item_id)])

    async def _write(self, tx: Transaction, ids: Sequence[int], since: datetime | None) -> None:
        await self._passages.add(tx, [_source(node, since) for node in await self._entities.known(tx, ids)])


def _source(node: KnownNode, since: datetime | None = None) -> Source:
    """A node, as it is to be found again."""
    return observed(node.id, node.name, node.label, node.properties, node.created_at, since)
