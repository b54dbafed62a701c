"""Citations: where the words that a question asks for stand in the whole text of what was found."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from recollect import checks, tasks
from recollect.flows.kinds.long_term import PAST_MEMORY
from recollect.flows.kinds.target import Target
from recollect.flows.named_items import NamedItems
from recollect.language import words
from recollect.language.passages import bounds
from recollect.memory.index.search import Nominee
from recollect.memory.memories import Memories, memory_of
from recollect.storage.database import Database

# Items that are read at once: a whole text may have 16 MB.
READ_AT_ONCE = 10
# A longer text is cut again in a thread.
_SHORT_CHARACTERS = 10_000


class Citation(NamedTuple):
    """A word of an item that the question asks for: its first character in the whole text, and behind its last."""

    start: int
    end: int


class Cited(NamedTuple):
    """The citations of one passage, and the words as they are written there."""

    citations: tuple[Citation, ...] = ()
    words: tuple[str, ...] = ()


class Citations:
    """Reads the items that passages are of: only their whole texts tell where a passage begins."""

    def __init__(self, database: Database, items: NamedItems, memories: Memories) -> None:
        self._database = database
        self._items = items
        self._memories = memories

    async def of(
        self, namespace: str, passages: Sequence[Nominee], terms: Collection[str], as_of: datetime | None
    ) -> dict[tuple[str, int], Cited]:
        """What each passage of a namespace has of some terms; nothing of an item that has changed since."""
        found: dict[tuple[str, int], Cited] = {}
        for first in range(0, len(passages), READ_AT_ONCE):
            some = passages[first : first + READ_AT_ONCE]
            targets = {each.id: Target(each.kind, each.item_id) for each in some if each.kind != PAST_MEMORY}
            past = {each.id: UUID(memory_of(each.item_id)) for each in some if each.kind == PAST_MEMORY}
            async with self._database.reading(namespace) as db:
                items = await self._items.found(db, list(targets.values()), checks.MAX_TEXT_BYTES)
                versions = await self._memories.find(db, list(past.values()), as_of) if past else {}
            texts = {passage: items[target].text for passage, target in targets.items() if target in items}
            texts |= {passage: versions[memory].text for passage, memory in past.items() if memory in versions}
            for passage in some:
                whole = texts.get(passage.id, "")
                if len(whole) > _SHORT_CHARACTERS:
                    found[passage.key] = await tasks.in_thread(cited, whole, passage.part, passage.text, terms)
                else:
                    found[passage.key] = cited(whole, passage.part, passage.text, terms)
        return found


def cited(whole: str, part: int, passage: str, terms: Collection[str]) -> Cited:
    """Where the words of a passage stand that are indexed under some terms, in the whole text that it is a part of.

    The text is cut once more: by its number, a passage that repeats is found where it is.
    """
    start, end = bounds(whole, part) or (0, 0)
    # Only in white space may the two differ.
    if whole[start:end].split() != passage.split():
        # Cut by an earlier version, or changed meanwhile.
        start = whole.find(passage)
        end = start + len(passage)
        if start < 0:
            return Cited()
    found = in_passage(whole[start:end], terms)
    return found._replace(citations=tuple(Citation(start + first, start + last) for first, last in found.citations))


def in_passage(passage: str, terms: Collection[str]) -> Cited:
    """Where words stand in a passage itself that are indexed under some terms."""
    places = [Citation(first, last) for first, last in words.places(passage, terms)]
    return Cited(tuple(places), tuple(passage[first:last] for first, last in places))
