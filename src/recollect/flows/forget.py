"""Forget: takes one item out of memory for good, with everything by which it could be found."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from recollect import checks
from recollect.errors import Invalid, NotFound
from recollect.memory.documents import Documents
from recollect.memory.episodes import Episodes
from recollect.memory.insights import Insights
from recollect.memory.log import Log
from recollect.memory.passages import Passages
from recollect.storage.database import Database, Statements, Transaction

_LARGEST_SEQ = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was removed."""

    kind: str
    id: str


class Forget:
    """Removes an item and its passages in one transaction."""

    def __init__(
        self,
        database: Database,
        passages: Passages,
        log: Log,
        documents: Documents,
        insights: Insights,
        episodes: Episodes,
    ) -> None:
        self._database = database
        self._passages = passages
        self._log = log
        self._remove: dict[str, Callable[[Transaction, str], Awaitable[bool]]] = {
            "message": lambda tx, item_id: log.remove(tx, UUID(item_id)),
            "document": lambda tx, item_id: documents.remove(tx, UUID(item_id)),
            "insight": lambda tx, item_id: insights.remove(tx, int(item_id)),
            "episode": lambda tx, item_id: episodes.remove(tx, int(item_id)),
        }

    async def item(self, namespace: str, item_id: str) -> list[Forgotten]:
        """Remove the item that recall shows under this id; `insight:12` says which kind is meant.

        The other messages of a session keep their positions.
        """
        checks.short_name(item_id, "id")
        wanted, bare_id = self._parsed(item_id.strip())
        async with self._database.transaction(namespace) as tx:
            if wanted == "message":
                bare_id = await self._message_id(tx, bare_id)
            kinds = await self._passages.kinds(tx, bare_id, [wanted] if wanted else list(self._remove))
            if len(kinds) > 1:
                choice = " or ".join(f"{kind}:{bare_id}" for kind in kinds)
                raise Invalid(f"id {item_id} names more than one thing: say which one, {choice}")
            if not kinds or not await self._remove[kinds[0]](tx, bare_id):
                raise NotFound(f"Nothing is stored under the id {item_id}")
            await self._passages.remove_items(tx, kinds[0], [bare_id])
        return [Forgotten(kinds[0], bare_id)]

    def _parsed(self, item_id: str) -> tuple[str | None, str]:
        kind, colon, bare_id = item_id.partition(":")
        if not colon:
            return None, item_id
        return checks.one_of(kind, tuple(self._remove), "the kind before the colon of an id"), bare_id

    async def _message_id(self, db: Statements, bare_id: str) -> str:
        """A message goes by its UUID and, in the cognitive contract, by an integer."""
        if not (bare_id.isascii() and bare_id.isdecimal()) or int(bare_id) > _LARGEST_SEQ:
            return bare_id
        found = await self._log.by_seq(db, [int(bare_id)])
        return str(found[int(bare_id)].id) if found else bare_id
