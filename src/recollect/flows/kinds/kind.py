"""What an entry says of a kind of memory: how it is stored, imported, found, removed, owned and counted."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from recollect import checks
from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.kinds.rules import Fields, Rule
from recollect.memory.changes import Change, Recorded
from recollect.memory.index.passages import Source
from recollect.memory.sessions import SessionOwner
from recollect.storage.database import Statements, Transaction
from recollect.storage.record import Record

MAX_SHOWN_CHARACTERS = 2_000
"""Of a text in the feed: whole texts may have 16 MB, and a page of the feed has hundreds."""

Ids = Sequence[Any]
"""UUIDs or numbers, as the kind has them."""

SessionOwners = Mapping[str, SessionOwner]
"""Whose the sessions are that messages are in."""


@dataclass(frozen=True, slots=True)
class IdType:
    """How an id is read from text (None if it cannot be one), and what stands before all ids."""

    parse: Callable[[str], Any]
    before_all: Any


MakeSource = Callable[[Fields, SessionOwners], Source | None]

Count = Callable[[Capabilities, Statements, Ids, Tally], Awaitable[None]]
"""Adds to a tally what the removal of items would."""


@dataclass(frozen=True, slots=True)
class Owned:
    """How to find and count the items that a user owns."""

    of_user: Callable[..., Awaitable[Ids]]
    """A page of ids: takes the capabilities, where to read, `user_id`, `behind` and `limit`."""
    count: Count


@dataclass(frozen=True, slots=True)
class Item:
    """What can be named, `episode:12`, and forgotten, and, if it has a source, recalled."""

    name: str
    id: IdType
    remove: Callable[[Capabilities, Transaction, Ids, Tally], Awaitable[Mapping[str, Ids] | None]]
    """Removes items but not their passages; returns other items, by name, that went with them."""
    source: MakeSource | None = None
    """Makes the passages of a record; None for one that is not to be found."""
    owned: Owned | None = None
    """None where no item belongs to a user."""
    judged: MakeSource | None = None
    """What is screened of an item that is read without being recalled."""


Contents = Callable[[Capabilities, Statements, Sequence[Recorded]], Awaitable[Mapping[int, dict[str, Any]]]]
"""What changed items are now, by the numbers of the changes; those that are gone are left out."""


@dataclass(frozen=True, slots=True)
class InFeed:
    """How the feed of changes names a kind, reads its items, and tells that records were imported."""

    name: str
    contents: Contents
    imported: Callable[[Sequence[Fields]], list[Change]]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of memory."""

    record: Record
    rules: Mapping[str, Rule]
    """What the fields of an imported record may hold."""
    check: Callable[[Fields], None] = lambda _: None
    """What an imported record must be as a whole."""
    later: frozenset[str] = frozenset()
    """Fields that exports of earlier versions lack; without them they have the table's default."""
    references: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Fields that name other records, the name of their kind, and the field that they are named by."""
    item: Item | None = None
    """None for a record that is only a part of others."""
    part_source: MakeSource | None = None
    """Makes the passages of such a part."""
    feed: InFeed | None = None
    """None for a record that the feed of changes does not tell of."""
    shown_as: str | None = None
    """Its name where it is counted, if that is not its table's."""
    shown_with: tuple[str, ...] = ()
    """Other tables whose bytes count as its own."""

    @property
    def name(self) -> str:
        """The name of its records in an export."""
        return self.record.name

    @property
    def source(self) -> MakeSource | None:
        """Makes the passages of a record; None where nothing of it is to be found."""
        return self.part_source if self.item is None else self.item.source


def in_feed(name: str, record: Record) -> InFeed:
    """A kind whose every record is an item of its own, known by its id."""

    async def contents(
        memory: Capabilities, db: Statements, changes: Sequence[Recorded]
    ) -> Mapping[int, dict[str, Any]]:
        found = await memory.records.shown(db, record, {change.item_id for change in changes}, MAX_SHOWN_CHARACTERS)
        return {change.number: found[change.item_id] for change in changes if change.item_id in found}

    return InFeed(name, contents, each_imported(name))


def each_imported(name: str) -> Callable[[Sequence[Fields]], list[Change]]:
    """Tells of each record by its id."""
    return lambda records: [Change("import", name, str(fields["id"])) for fields in records]


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


UUIDS = IdType(as_uuid, UUID(int=0))
NUMBERS = IdType(as_number, 0)


def as_json(value: object) -> str | None:
    """Metadata of a record as passages keep it."""
    return None if value is None else json.dumps(value, ensure_ascii=False)
