"""Screening: the way of every text into the search index, where those that seem to steer a model are held back."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal

from recollect import origin, trust
from recollect.language.defence.disguises import hidden_letters
from recollect.language.defence.orders import sets_agent, suspicions
from recollect.memory.index.held import Held, NewlyHeld
from recollect.memory.index.passages import Excerpt, Passages, Said, Source
from recollect.steps import in_steps
from recollect.storage.database import Transaction

Mode = Literal["off", "warn", "enforce"]

# A long name or metadata is read in parts, which overlap by more than an order is long.
PART_CHARACTERS, OVERLAP = 2_000, 400

# Fewer characters that a passage shares with the end of the one before are chance.
LEAST_REPEATED = 8

_ENDS_WITH_WORD = re.compile(r"(?:^|\s)\S{1,59}$")

# Of one item; the first few say enough.
MAX_REASONS = 5


def texts_of(source: Source) -> Iterator[str]:
    """All that readers are shown of an item, in parts that are quickly read."""
    passages = [excerpt.text for excerpt in source.excerpts]
    yield from passages
    yield from map(_seam, passages, passages[1:])
    names = {excerpt.name.strip() for excerpt in source.excerpts} | {source.speaker or "", source.key or ""}
    for text in sorted(name for name in names if name):
        yield from _parts(text)
    for encoded in (source.metadata, source.beside):
        if encoded not in (None, "{}"):
            yield from _parts(encoded or "")


def _seam(first: str, second: str) -> str:
    """Where one passage ends and the next begins, without what the next one repeats."""
    repeated = next((size for size in range(OVERLAP, LEAST_REPEATED, -1) if first.endswith(second[:size])), 0)
    # A run of characters, such as an encoded text, is cut anywhere.
    joint = " " if repeated or _ENDS_WITH_WORD.search(first) else ""
    return f"{first[-OVERLAP:]}{joint}{second[repeated : repeated + OVERLAP]}"


def _parts(text: str) -> Iterator[str]:
    for start in range(0, max(len(text) - OVERLAP, 1), PART_CHARACTERS - OVERLAP):
        yield text[start : start + PART_CHARACTERS]


def judging(source: Source) -> Iterator[tuple[str, list[str]] | None]:
    """The suspicious texts of an item, each with the reasons; None for a text that is not."""
    of_class = trust.of_item(source.kind, source.role, source.trust)
    for text in texts_of(source):
        if of_class == trust.OPERATOR:
            # Orders to a model are what an operator writes.
            hidden = hidden_letters(text)
            reasons = [] if hidden is None else [hidden]
        else:
            reasons = suspicions(text, is_foreign=of_class in trust.FOREIGN)
        yield (text, reasons) if reasons else None
    if source.key is not None and of_class in trust.FOREIGN and (reason := sets_agent(source.key)) is not None:
        yield (source.key, [reason])


class ScreenedPassages(Passages):
    """Writes passages and notes suspicious items, which with `enforce` have no passages until they are released."""

    screens = True

    def __init__(self, held: Held, mode: Mode) -> None:
        self._held = held
        self._mode = mode

    def suspicions(self, message: Said, excerpts: Sequence[Excerpt]) -> Iterator[object | None]:
        """What is suspicious about a message that is to be stored, in short steps."""
        new = Source("message", "", tuple(excerpts), datetime.min, role=message.role, trust=message.trust)
        return judging(replace(new, speaker=message.speaker, metadata=message.metadata))

    async def add(self, tx: Transaction, sources: Sequence[Source]) -> None:
        """Make items findable, but for those that are held."""
        await super().add(tx, await self.screen(tx, sources))

    async def relabel(self, tx: Transaction, source: Source) -> None:
        """Judge an item by what its passages are to carry, too: they go if it is held now, and come if it was."""
        if not await self.screen(tx, [source]):
            await self.remove_items(tx, source.kind, [source.item_id])
        elif await self.of_items(tx, source.kind, [source.item_id]):
            await super().relabel(tx, source)
        else:
            await super().add(tx, [source])

    async def screen(self, tx: Transaction, sources: Sequence[Source]) -> list[Source]:
        """Note suspicious items; returns those that may be shown."""
        judged = [(source, [] if source.is_unsuspicious else await in_steps(judging(source))) for source in sources]
        suspect = [self._noted(source, found) for source, found in judged if found]
        released = await self._released(tx, suspect)
        noted = [item for item in suspect if (item.kind, item.item_id) not in released]
        await self._forget_others(tx, sources, {(item.kind, item.item_id) for item in suspect})
        if noted:
            await self._held.put(tx, noted)
        kept_back = {(item.kind, item.item_id) for item in noted if item.state == "held"}
        return [source for source in sources if (source.kind, source.item_id) not in kept_back]

    async def release(self, tx: Transaction, source: Source) -> None:
        """Make an item findable, however suspicious it is."""
        await super().add(tx, [source])

    async def _released(self, tx: Transaction, suspect: Sequence[NewlyHeld]) -> set[tuple[str, str]]:
        """Those of some items that somebody has released and that have not changed since."""
        known = {
            (kind, item_id): item
            for kind in {item.kind for item in suspect}
            for item_id, item in (
                await self._held.find(tx, kind, [each.item_id for each in suspect if each.kind == kind])
            ).items()
        }
        return {
            (item.kind, item.item_id)
            for item in suspect
            if (before := known.get((item.kind, item.item_id))) is not None
            and before.state == "released"
            and before.digest == item.digest
        }

    async def _forget_others(self, tx: Transaction, sources: Sequence[Source], suspect: set[tuple[str, str]]) -> None:
        """Drop the notes on items that are not suspicious any more. A message never changes."""
        changed: dict[str, list[str]] = {}
        for source in sources:
            if source.kind != "message" and (source.kind, source.item_id) not in suspect:
                changed.setdefault(source.kind, []).append(source.item_id)
        for kind, item_ids in changed.items():
            await self._held.remove(tx, kind, item_ids)

    def _noted(self, source: Source, found: Sequence[tuple[str, list[str]]]) -> NewlyHeld:
        by = source.by or origin.current()
        reasons = list(dict.fromkeys(reason for _, reasons in found for reason in reasons))
        return NewlyHeld(
            source.kind,
            source.item_id,
            "held" if self._mode == "enforce" else "warned",
            reasons[:MAX_REASONS],
            trust.of_item(source.kind, source.role, source.trust),
            hashlib.sha256("\x00".join(text for text, _ in found).encode()).digest(),
            by.author,
            by.door,
        )
