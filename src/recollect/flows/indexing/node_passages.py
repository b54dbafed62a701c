"""NodePassages: makes the observations of nodes available to search, each as a passage of its node."""

from collections.abc import Sequence
from datetime import UTC, datetime

from recollect.flows.kinds.cognitive import NODE, observed
from recollect.memory.cognitive.entities import Entities
from recollect.memory.index.passages import Passages
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

    async def _write(self, tx: Transaction, ids: Sequence[int], since: datetime | None) -> None:
        sources = [
            observed(node.id, node.name, node.type, node.observations, node.created_at, since)
            for node in await self._entities.by_ids(tx, ids)
        ]
        await self._passages.add(tx, [source for source in sources if source is not None])
