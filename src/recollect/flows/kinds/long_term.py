"""Documents, long-term memories with their history, and resources."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect import checks, origin, trust
from recollect.errors import Invalid
from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.kinds import rules
from recollect.flows.kinds.kind import (
    MAX_SHOWN_CHARACTERS,
    UUIDS,
    Ids,
    InFeed,
    Item,
    Kind,
    Owned,
    SessionOwners,
    as_json,
    each_imported,
    in_feed,
)
from recollect.flows.kinds.rules import Fields
from recollect.memory import documents, memories, resources
from recollect.memory.changes import Recorded
from recollect.memory.index.passages import Source, analyse
from recollect.storage.database import Statements, Transaction

MEMORY = "memory"
PAST_MEMORY = "past_memory"
"""The kind of the passages of past versions, which only questions about the past find."""


def check_memory(fields: Fields) -> None:
    """A memory belongs to somebody."""
    if not (fields["user_id"] or fields["agent_id"] or fields["session_id"]):
        raise Invalid("the memory has no user_id, agent_id or session_id: it needs one of them")


def document_source(fields: Fields, _: SessionOwners) -> Source:
    """The whole text."""
    at = datetime.fromisoformat(fields["created_at"])
    return Source("document", fields["id"], analyse(fields["content"]), at, metadata=as_json(fields["metadata"]))


def memory_source(fields: Fields, _: SessionOwners) -> Source | None:
    """The text of a memory in force."""
    if fields["superseded_by"] is not None:
        return None
    return Source(
        MEMORY,
        fields["id"],
        analyse(fields["text"]),
        datetime.fromisoformat(fields["created_at"]),
        owner=fields["user_id"] or "",
        agent_id=fields["agent_id"],
        session_id=fields["session_id"],
        position=fields.get("position"),
        category=fields["category"],
        metadata=as_json(fields["metadata"]),
        since=_moment(fields.get("since") or fields["created_at"]),
        valid_from=_moment(fields.get("valid_from")),
        valid_until=_moment(fields.get("valid_until")),
        expires_at=_moment(fields.get("expires_at")),
        key=fields.get("key"),
        trust=fields.get("trust"),
    )


async def as_trusted_as_memories(
    tx: Transaction, stored: memories.Memories, versions: Sequence[Source]
) -> list[Source]:
    """Past versions come from where their memories do."""
    of = {version.item_id: UUID(memories.memory_of(version.item_id)) for version in versions}
    found = await stored.find(tx, sorted(set(of.values())))
    return [replace(each, trust=found[of[each.item_id]].trust) for each in versions if of[each.item_id] in found]


def version_source(fields: Fields, _: SessionOwners) -> Source:
    """The text that a memory had, for questions about that time."""
    return Source(
        PAST_MEMORY,
        memories.past_item(fields["memory_id"], fields["number"]),
        analyse(fields["text"]),
        datetime.fromisoformat(fields["created_at"]),
        owner=fields["user_id"] or "",
        agent_id=fields["agent_id"],
        session_id=fields["session_id"],
        position=fields["position"],
        category=fields["category"],
        metadata=as_json(fields["metadata"]),
        since=_moment(fields["since"]),
        ended_at=_moment(fields["until"]),
        valid_from=_moment(fields["valid_from"]),
        valid_until=_moment(fields["valid_until"]),
        expires_at=_moment(fields["expires_at"]),
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def resource_source(fields: Fields, _: SessionOwners) -> Source:
    """The text, with the words of its title."""
    return Source(
        "resource",
        fields["id"],
        analyse(fields["content"], fields["title"]),
        datetime.fromisoformat(fields["updated_at"]),
        owner=fields["user_id"],
        metadata=as_json(fields["metadata"]),
        realm=fields["realm"],
    )


async def remove_documents(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> None:
    """Whole texts."""
    tally.add("documents", sum([await memory.documents.remove(tx, item_id) for item_id in ids]))


async def remove_memories(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> Mapping[str, Ids]:
    """Memories, what they were before, and all that ever happened to them."""
    await memory.memories.hold(tx, ids)
    versions = await memory.memories.versions(tx, ids)
    count, history = await memory.memories.erase(tx, ids)
    tally.add("memories", count)
    tally.add("memory_versions", len(versions))
    tally.add("memory_history", history)
    return {PAST_MEMORY: versions}


async def count_memories(memory: Capabilities, db: Statements, ids: Ids, tally: Tally) -> None:
    """The same, counted."""
    count, history = await memory.memories.count(db, ids)
    versions = await memory.memories.versions(db, ids)
    tally.add("memory_versions", len(versions))
    tally.add("passages", await memory.passages.count_of_items(db, PAST_MEMORY, versions))
    tally.add("memories", count)
    tally.add("memory_history", history)


async def remove_resources(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> None:
    """Texts under a URI."""
    tally.add("resources", await memory.resources.remove(tx, ids))


async def count_resources(_memory: Capabilities, _db: Statements, ids: Ids, tally: Tally) -> None:
    """Each is one row."""
    tally.add("resources", len(ids))


async def memory_contents(
    memory: Capabilities, db: Statements, changes: Sequence[Recorded]
) -> Mapping[int, dict[str, Any]]:
    """What memories say now, superseded ones too."""
    found = await memory.memories.find(db, [UUID(change.item_id) for change in changes])
    return {
        change.number: {
            "text": stored.text[:MAX_SHOWN_CHARACTERS],
            "category": stored.category,
            "user_id": stored.user_id,
            "agent_id": stored.agent_id,
            "session_id": stored.session_id,
            "superseded_by": None if stored.superseded_by is None else str(stored.superseded_by),
        }
        for change in changes
        if (stored := found.get(UUID(change.item_id))) is not None
    }


DOCUMENT = Kind(
    documents.RECORD,
    {"content": checks.text, "embedding": checks.embedding, "metadata": rules.json_object},
    item=Item("document", UUIDS, remove_documents, document_source),
    feed=in_feed("document", documents.RECORD),
)
MEMORY_ITEM = Item(
    "memory",
    UUIDS,
    remove_memories,
    memory_source,
    Owned(lambda memory, db, **page: memory.memories.of_user(db, **page), count_memories),
)
MEMORY_KIND = Kind(
    memories.RECORD,
    {
        "text": checks.text,
        "category": rules.one_of(*memories.CATEGORIES),
        "metadata": rules.json_object,
        "user_id": checks.identifier,
        "agent_id": checks.identifier,
        "session_id": rules.own_session,
        "position": rules.at_least(0),
        "key": checks.short_name,
        "trust": rules.one_of(*trust.CLASSES),
    },
    check_memory,
    later=frozenset(
        ("position", "since", "valid_from", "valid_until", "key", "slot", "expires_at", "pinned", "sources", "trust")
    ),
    item=MEMORY_ITEM,
    feed=InFeed("memory", memory_contents, each_imported("memory")),
    shown_with=("memory_history", "memory_versions"),
)
MEMORY_VERSION = Kind(
    memories.VERSION_RECORD,
    {
        "number": rules.at_least(1),
        "text": checks.text,
        "category": rules.one_of(*memories.CATEGORIES),
        "metadata": rules.json_object,
        "user_id": checks.identifier,
        "agent_id": checks.identifier,
        "session_id": checks.identifier,
        "position": rules.at_least(0),
        "key": checks.short_name,
    },
    references={"memory_id": (MEMORY, "id")},
    part_source=version_source,
)
MEMORY_HISTORY = Kind(
    memories.HISTORY_RECORD,
    {
        "number": rules.at_least(1),
        "event": rules.one_of(*memories.EVENTS),
        "old_memory": checks.optional_text,
        "new_memory": checks.optional_text,
        "user_id": checks.identifier,
        "session_id": checks.identifier,
        "author": rules.text_up_to(origin.MAX_AUTHOR_CHARACTERS),
        "door": rules.text_up_to(origin.MAX_AUTHOR_CHARACTERS),
    },
    later=frozenset({"detail", "author", "door"}),
    references={"memory_id": (MEMORY, "id")},
)
RESOURCE = Kind(
    resources.RECORD,
    {
        "user_id": checks.identifier,
        "uri": rules.text_up_to(resources.MAX_URI_CHARACTERS),
        "title": checks.optional_text,
        "content": checks.text,
        "metadata": rules.json_object,
    },
    item=Item(
        "resource",
        UUIDS,
        remove_resources,
        resource_source,
        Owned(lambda memory, db, **page: memory.resources.of_user(db, **page), count_resources),
    ),
    feed=in_feed("resource", resources.RECORD),
)

LONG_TERM = (DOCUMENT, MEMORY_KIND, MEMORY_VERSION, MEMORY_HISTORY)
