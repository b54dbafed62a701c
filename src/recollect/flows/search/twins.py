"""Twins: duplicates from the same speaker, which recall shows as one."""

from recollect.flows.search.nomination import Nomination
from recollect.language import words
from recollect.language.sameness import gist
from recollect.memory.index.passages import Part, Passages
from recollect.memory.index.search import Nominee, Scope
from recollect.storage.database import Database

# Items that are compared with one; of a text that was stored more often than that, some are omitted.
MAX_COMPARED = 1000

Saying = tuple[str, str, str | None, str | None, str]


def saying(passage: Nominee | Part) -> Saying:
    """What a passage says and who says it: the same for all that differ only in ways that say nothing."""
    return (passage.kind, passage.owner, passage.speaker, passage.role, gist(passage.text))


class Twins:
    """Finds the twins of an item among those that share its words."""

    def __init__(self, database: Database, nomination: Nomination, passages: Passages) -> None:
        self._database = database
        self._nomination = nomination
        self._passages = passages

    async def of(self, namespace: str, kind: str, item_id: str) -> list[str]:
        """The ids of other items of the same kind whose passages all say the same as this one's, in order."""
        async with self._database.searching(namespace) as db:
            parts = (await self._passages.parts(db, kind, [item_id])).get(item_id, [])
        if not parts:
            return []
        scope = Scope(owner=parts[0].owner, kinds=(kind,))
        _, near = await self._nomination.by_words(namespace, words.query_terms(parts[0].text), scope, MAX_COMPARED)
        async with self._database.searching(namespace) as db:
            others = set((await self._passages.items(db, near)).values()) - {item_id}
            parts_of = await self._passages.parts(db, kind, sorted(others))
        said = list(map(saying, parts))
        return [other for other, theirs in parts_of.items() if list(map(saying, theirs)) == said]
