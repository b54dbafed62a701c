"""Provenance: the class of trust that something inherits from what it is made from."""

from collections.abc import Sequence

from recollect import trust
from recollect.flows.kinds.target import Target
from recollect.memory.index.held import Held
from recollect.memory.index.passages import Passages
from recollect.storage.database import Database
from recollect.trust import Trust


class Provenance:
    """Looks sources up where their class is kept: with their passages, or with the note that they are held."""

    def __init__(self, database: Database, passages: Passages, held: Held) -> None:
        self._database = database
        self._passages = passages
        self._held = held

    async def lowest(self, namespace: str, names: Sequence[str]) -> Trust | None:
        """The lowest class of some sources, such as `message:ID`, that are there; None of none."""
        if not names:
            return None
        by_kind: dict[str, list[str]] = {}
        for target in map(Target.named, names):
            by_kind.setdefault(target.kind or "", []).append(target.id)
        classes: list[Trust] = []
        async with self._database.reading(namespace) as db:
            for kind, ids in by_kind.items():
                found = await self._passages.trusts(db, kind, ids)
                held = await self._held.find(db, kind, ids)
                noted = {item_id: trust.of_item(kind, None, item.trust) for item_id, item in held.items()}
                classes += [found.get(each) or noted.get(each) or trust.of_item(kind) for each in ids]
        return trust.lowest(classes)
