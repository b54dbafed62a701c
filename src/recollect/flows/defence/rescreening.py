"""Screens what is stored already: texts from before the defence was on, or from a process that has it off."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect import origin
from recollect.errors import Misconfigured
from recollect.flows.capabilities import Capabilities
from recollect.flows.defence.screening import Mode, judging
from recollect.flows.indexing.passage_writer import PassageWriter
from recollect.flows.kinds import registry
from recollect.flows.kinds.conversations import MESSAGE
from recollect.flows.kinds.kind import Kind, MakeSource, SessionOwners
from recollect.flows.kinds.long_term import MEMORY_VERSION, as_trusted_as_memories
from recollect.memory.index.passages import Source
from recollect.memory.records import FIRST, Place
from recollect.steps import in_steps
from recollect.storage.database import Database, Transaction

Progress = Callable[[int], None]
"""Takes how many items have been screened."""


@dataclass(frozen=True, slots=True)
class Screened:
    """How many items were screened, and how many of them are held or warned of since."""

    items: int
    held: int
    warned: int


class Rescreening:
    """Judges every item of a namespace by the rules for new ones. What a person has released stays released."""

    def __init__(
        self, database: Database, capabilities: Capabilities, passage_writer: PassageWriter, mode: Mode
    ) -> None:
        self._database = database
        self._capabilities = capabilities
        self._passage_writer = passage_writer
        self._mode = mode

    def require_on(self) -> None:
        """Refuse to screen by rules that are off."""
        if self._mode == "off":
            raise Misconfigured("Nothing is screened: set RECOLLECT_DEFENCE to warn or enforce, then run this again")

    async def run(self, namespace: str, progress: Progress | None = None) -> Screened:
        """Screen everything; page by page, so it can be interrupted and run again."""
        origin.require("admin")
        origin.require_no_limits()
        self.require_on()
        found: Counter[str] = Counter()
        for kind in registry.KINDS:
            place: Place | None = FIRST
            while _judged(kind) is not None and place is not None:
                # Read where it is written, so that a change meanwhile is hardly ever judged by what it replaced.
                async with self._database.transaction(namespace) as tx:
                    records, place = await self._capabilities.records.page(tx, kind.record, None, place)
                    found += await self._screen(tx, await self._sources(tx, kind, records))
                found["items"] += len(records)
                if progress is not None:
                    progress(found["items"])
        self._passage_writer.changed(namespace)
        return Screened(found["items"], found["held"], found["warned"])

    async def _sources(self, tx: Transaction, kind: Kind, records: Sequence[str]) -> list[Source]:
        parsed: list[Mapping[str, Any]] = [json.loads(record) for record in records]
        owners: SessionOwners = {}
        if kind is MESSAGE:
            sessions = {fields["session_id"] for fields in parsed}
            owners = await self._capabilities.sessions.owners_of(tx, sorted(sessions))
        make = _judged(kind)
        made = [] if make is None else [make(fields, owners) for fields in parsed]
        sources = [source for source in made if source is not None]
        if kind is MEMORY_VERSION:
            return await as_trusted_as_memories(tx, self._capabilities.memories, sources)
        return sources

    async def _screen(self, tx: Transaction, sources: Sequence[Source]) -> Counter[str]:
        """Judge those that are not held, and take away the passages of those that are from now on."""
        if not sources:
            return Counter()
        kind, held, passages = sources[0].kind, self._capabilities.held, self._capabilities.passages
        known = await held.find(tx, kind, [source.item_id for source in sources])
        open_to_all = [each for each in sources if each.item_id not in known or known[each.item_id].state != "held"]
        suspect = [each for each in open_to_all if each.item_id in known or any(await in_steps(judging(each)))]
        shown = {source.item_id for source in await passages.screen(tx, suspect)}
        if hidden := [source.item_id for source in suspect if source.item_id not in shown]:
            await passages.remove_items(tx, kind, hidden)
        now = await held.find(tx, kind, sorted(shown))
        warned = sum(item.state == "warned" and item_id not in known for item_id, item in now.items())
        return Counter(held=len(hidden), warned=warned)


def _judged(kind: Kind) -> MakeSource | None:
    """What is judged of the records of a kind; None where nothing is shown of them."""
    return kind.source or (None if kind.item is None else kind.item.judged)
