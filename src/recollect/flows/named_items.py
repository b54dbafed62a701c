"""Items of every kind by their names, such as `message:ID`: what each says, and what it was made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from recollect.errors import Invalid
from recollect.flows.capabilities import Capabilities
from recollect.flows.kinds import registry
from recollect.flows.kinds.conversations import MESSAGE_ITEM
from recollect.flows.kinds.kind import MAX_SHOWN_CHARACTERS, as_number, as_uuid
from recollect.flows.kinds.long_term import MEMORY
from recollect.flows.kinds.target import SESSION, USER, Target
from recollect.memory.log import Message
from recollect.memory.memories import StoredMemory
from recollect.storage.database import Database, Statements

_MESSAGE = MESSAGE_ITEM.name
_SHOWN_ID_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class NamedItem:
    """An item that is there."""

    target: Target
    """Its kind, and its id as it is stored."""
    text: str
    """The beginning of a long one."""
    at: datetime
    speaker: str | None = None
    sources: tuple[Target, ...] = ()
    memory: StoredMemory | None = None
    message: Message | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    """What else the feed shows of an item that is neither a memory nor a message."""

    @property
    def session_id(self) -> str | None:
        """Where a message was said."""
        return None if self.message is None else self.message.session_id


class NamedItems:
    """Finds items by their names."""

    def __init__(self, database: Database, capabilities: Capabilities) -> None:
        self._database = database
        self._capabilities = capabilities

    async def required(self, namespace: str, names: Sequence[str]) -> list[str]:
        """The names of items as they are stored; refused if one is not there."""
        if not names:
            return []
        targets = list(dict.fromkeys(map(Target.named, names)))
        async with self._database.reading(namespace) as db:
            found = await self.found(db, targets)
        for target in targets:
            if target not in found:
                shown = str(target)[:_SHOWN_ID_CHARACTERS]
                raise Invalid(f"Unknown source {shown}: store it before what is made from it")
        return list(dict.fromkeys(str(found[target].target) for target in targets))

    async def found(
        self, db: Statements, targets: Sequence[Target], most: int = MAX_SHOWN_CHARACTERS
    ) -> dict[Target, NamedItem]:
        """Those of some items that are there, by the name they were asked by; so many characters of each text."""
        found: dict[Target, NamedItem] = {}
        for kind in dict.fromkeys(target.kind for target in targets):
            if kind in registry.named():
                of_kind = [target for target in targets if target.kind == kind]
                found |= await self._of_kind(db, kind, of_kind, most)
        return found

    async def _of_kind(
        self, db: Statements, kind: str, targets: Sequence[Target], most: int
    ) -> dict[Target, NamedItem]:
        if kind == _MESSAGE:
            return await self._messages(db, targets, most)
        parse = registry.items()[kind].id.parse
        ids = {target: parsed for target in targets if (parsed := parse(target.id)) is not None}
        if kind == MEMORY:
            stored = await self._capabilities.memories.find(db, list(ids.values()))
            items = {str(memory.id): of_memory(memory, most) for memory in stored.values()}
        else:
            items = await self._others(db, kind, ids, most)
        return {target: items[str(item_id)] for target, item_id in ids.items() if str(item_id) in items}

    async def _messages(self, db: Statements, targets: Sequence[Target], most: int) -> dict[Target, NamedItem]:
        """A message goes by its UUID and, in the cognitive contract, by a number."""
        ids = {target: parsed for target in targets if (parsed := as_uuid(target.id)) is not None}
        numbers = {target: number for target in targets if (number := as_number(target.id)) is not None}
        by_id = await self._capabilities.log.by_ids(db, list(ids.values())) if ids else {}
        by_number = await self._capabilities.log.by_seq(db, list(numbers.values())) if numbers else {}
        found = {target: message for target, item_id in ids.items() if (message := by_id.get(item_id))}
        found |= {target: message for target, number in numbers.items() if (message := by_number.get(number))}
        return {
            target: NamedItem(
                Target(_MESSAGE, str(message.id)),
                message.content[:most],
                message.created_at,
                message.speaker or message.role,
                message=message,
            )
            for target, message in found.items()
        }

    async def _others(self, db: Statements, kind: str, ids: dict[Target, Any], most: int) -> dict[str, NamedItem]:
        """What the feed shows of a kind says enough."""
        record = registry.named()[kind].record
        names = [str(item_id) for item_id in ids.values()]
        rows = await self._capabilities.records.dated(db, record, names, most)
        return {
            item_id: NamedItem(
                Target(kind, item_id),
                content["text"],
                at,
                sources=tuple(Target(_MESSAGE, str(number)) for number in content.get("source_ids", ())),
                about={name: value for name, value in content.items() if name not in ("text", "source_ids")},
            )
            for item_id, (content, at) in rows.items()
        }


def one_item(name: str) -> Target:
    """The item that a name calls; its kind is None if the name is an id alone."""
    target = Target.named(name)
    if target.kind in (SESSION, USER):
        raise Invalid(f"{target.kind}:ID names no single item: pass an id as recall shows it, such as memory:ID")
    return target


def of_memory(memory: StoredMemory, most: int) -> NamedItem:
    """A memory as an item, with so many characters of its text."""
    return NamedItem(
        Target(MEMORY, str(memory.id)),
        memory.text[:most],
        memory.created_at,
        # What an imported memory names as its source need not be a name.
        sources=tuple(Target(*name.partition(":")[::2]) for name in memory.sources),
        memory=memory,
    )
